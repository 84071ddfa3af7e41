"""Managing webhook endpoints, their secrets and their delivery logs."""
