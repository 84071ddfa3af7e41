"""Adds DiagnosticReport to the service."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.plugin_api import ResourceType, hookimpl
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT


@hookimpl
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Add DiagnosticReport."""
    return [DIAGNOSTIC_REPORT]
