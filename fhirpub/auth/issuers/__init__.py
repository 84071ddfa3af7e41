"""Access tokens of other issuers, which plugins declare."""
