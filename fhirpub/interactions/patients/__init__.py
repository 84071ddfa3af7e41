"""Patients as resources: read, searched and found by what reports state about them (ADR 26)."""
