"""Publish diagnostic reports over FHIR R4: one call, safe to repeat, never a duplicate."""

from __future__ import annotations

__version__ = "0.2.0"
RELEASED = "2026-11-24"
"""Date of the release, which is also that of the CapabilityStatement."""
