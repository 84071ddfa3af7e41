"""Prints or forwards the events of a tenant as they are committed."""
