"""Authentication of callers: tenants, clients, signing keys and tokens."""
