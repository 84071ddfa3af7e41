"""Tenants, clients and signing keys in the database."""
