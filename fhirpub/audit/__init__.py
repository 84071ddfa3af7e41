"""The audit trail: who did what, recorded durably and sealed into a chain for each tenant."""
