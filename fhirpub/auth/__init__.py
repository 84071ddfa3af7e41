"""Who is calling: tenants, clients, signing keys and tokens."""
