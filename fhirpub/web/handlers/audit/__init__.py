"""The audit trail of a tenant, as AuditEvents."""
