"""Tests of the audit trail of a store."""
