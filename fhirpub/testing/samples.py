"""Records to try a store with, each unlike all others."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from fhirpub.storage.contract import Version

LAB, OTHER = "0b7e2a54-6d1c-4f0e-9a58-3c41f7d2e901", "f3c9d4e1-58aa-4b6f-8e07-92d1a6b0c735"
REPORT = "DiagnosticReport"
SYSTEM = "https://lab.example/accession"
FOREVER = 2**53


def new_id() -> str:
    """Return an id as a tenant would derive it."""
    return str(uuid.uuid4())


def a_version(**changes: Any) -> Version:
    """Return version 1 of a new resource, with what is asked for."""
    usual = Version(
        id=new_id(),
        version=1,
        type=REPORT,
        system=SYSTEM,
        value=new_id(),
        status="final",
        created=1_700_000_000_000,
        updated=1_700_000_000_000,
        body=b'{"resourceType":"DiagnosticReport"}',
    )
    return replace(usual, **changes)


def successor(version: Version, **changes: Any) -> Version:
    """Return the next version of a resource."""
    later = replace(version, version=version.version + 1, updated=version.updated + 1)
    return replace(later, response=b"", parts=b"", **changes)
