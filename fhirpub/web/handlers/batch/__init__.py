"""Batches: the entries of a Bundle, each answered as the request that it stands for (ADR 27)."""
