"""Assertions: short JWTs that a client signs with its private key to authenticate (RFC 7523)."""
