"""Request handlers: each reads a request, calls one interaction and writes the response."""
