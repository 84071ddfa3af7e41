"""Corrections of a resource together with its members (ADR 25)."""
