"""The key of a resource: which of its identifiers it is, and in which form (ADR 41)."""
