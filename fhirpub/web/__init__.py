"""HTTP in, one interaction called, HTTP out; the only place with handlers."""
