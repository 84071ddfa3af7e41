"""Patients over HTTP, and bodies that refer to one (ADR 26)."""
