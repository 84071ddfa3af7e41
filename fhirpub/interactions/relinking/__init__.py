"""Resources moved to another Patient (ADR 26)."""
