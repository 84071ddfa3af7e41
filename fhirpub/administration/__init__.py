"""What operators do, once for the command line and for HTTP: each act is one operation."""
