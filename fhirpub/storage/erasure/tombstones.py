"""Tombstones: what remains of a resource whose content was erased (ADR 36).

The tombstone is the newest version of the resource, and each version below it keeps its key and
nothing else, so that no late write can bring content back. The type of all of them has a mark
before it: no search for the type finds them, and what does not expect them takes them for another
type.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson

from fhirpub.storage.records import Version

MARK = "!"
"""No FHIR type begins with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """Why and when a resource was erased; it has nothing of the resource.

    Attributes:
        version: The number of the version that is the tombstone.
        at: When the resource was erased, in milliseconds.
        operator: The person that ordered it.
        reason: Why.
        allows_reuse: Whether the identifier may be registered again.
    """

    version: int
    at: int
    operator: str = ""
    reason: str = ""
    allows_reuse: bool = False

    def encode(self) -> bytes:
        """Return it as the body of the versions that it stands for."""
        given = {name: value for name, value in asdict(self).items() if value}
        return orjson.dumps(given, option=orjson.OPT_SORT_KEYS)

    def of_member(self) -> Tombstone:
        """Return it as members have it, of which there may be thousands."""
        return replace(self, operator="", reason="")


def is_erased(version: Version) -> bool:
    """Return whether the content of a version was erased, or it is a tombstone."""
    return version.type.startswith(MARK)


def is_emptied(version: Version) -> bool:
    """Return whether the content of a version was erased: a tombstone never had any."""
    return is_erased(version) and tombstone_of(version).version != version.version


def tombstone_of(version: Version) -> Tombstone:
    """Return the tombstone that stands for an erased version."""
    fields: dict[str, Any] = orjson.loads(version.body)
    return Tombstone(**fields)


def erased_type(type_name: str) -> str:
    """Return the type of an erased version; that of one that is erased already stays."""
    return MARK + type_name.removeprefix(MARK)


def fhir_type(stored: str) -> str:
    """Return the FHIR type of a version by its stored type, whether it is erased or not."""
    return stored.removeprefix(MARK)


def member_body(tombstone: Version) -> bytes:
    """Return the body of the members of erased versions, by the tombstone of these."""
    return tombstone_of(tombstone).of_member().encode()


def husk_of(version: Version, tombstone: Tombstone) -> Version:
    """Return what remains of a version, or the tombstone itself if the number is its own.

    The record of its write stays until it is sealed in the audit trail, with the time of it.
    """
    return Version(
        id=version.id,
        version=version.version,
        type=erased_type(version.type),
        system="",
        value="",
        status="",
        created=version.created,
        updated=version.updated,
        body=tombstone.encode(),
        audit=version.audit,
    )
