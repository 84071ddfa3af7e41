"""Admission control: the memory budget for bodies, body timeouts and rate limits."""
