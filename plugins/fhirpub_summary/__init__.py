"""Adds ``DiagnosticReport/{id}/$summary``: a report as one HTML document."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.plugin_api import Operation, hookimpl
from fhirpub_summary.operation import SUMMARY


@hookimpl
def fhirpub_operations() -> Sequence[Operation]:
    """Add the operation."""
    return [SUMMARY]
