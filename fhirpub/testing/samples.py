"""Records to test a store with, each with an id of its own."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

from fhirpub.storage.contract import Version

LAB, OTHER = "0b7e2a54-6d1c-4f0e-9a58-3c41f7d2e901", "f3c9d4e1-58aa-4b6f-8e07-92d1a6b0c735"
"""The ids of two tenants."""
REPORT = "DiagnosticReport"
"""The FHIR type of the sample versions."""
SYSTEM = "https://lab.example/accession"
"""The identifier system of the sample versions."""
FOREVER = 2**53
"""A time in milliseconds that no clock reaches."""


def new_id() -> str:
    """Return a random id in the form of a resource id."""
    return str(uuid.uuid4())


def new_member_id() -> str:
    """Return a random id in the form of the id of a member (ADR 24)."""
    return str(uuid.UUID(int=uuid.uuid4().int & ~(0xF << 76) | (8 << 76)))


def a_version(**changes: Any) -> Version:
    """Return version 1 of a new resource.

    Args:
        **changes: The fields that differ from the sample.

    Returns:
        The version, with an id and an identifier value of its own.
    """
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
    """Return the next version of a resource.

    Args:
        version: The previous version.
        **changes: The fields that differ from it.

    Returns:
        The version, one millisecond later, and without ``response``, ``parts`` and ``digest``.
    """
    later = replace(version, version=version.version + 1, updated=version.updated + 1)
    return replace(later, response=b"", parts=b"", digest=b"", **changes)
