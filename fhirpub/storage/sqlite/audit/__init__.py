"""The audit trail in a SQLite file: its tables, and the part of the store that keeps it."""
