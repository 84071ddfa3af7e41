"""What an erasure of a resource covers: its versions, members, documents and events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fhirpub.errors import NotPossible
from fhirpub.fhir.elements import literals_of, objects_in
from fhirpub.fhir.strict_json import loads_stored
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.runtime.turns import in_turns
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import decode
from fhirpub.storage.erasure.tombstones import Tombstone, fhir_type, is_erased, tombstone_of
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant, is_member_id

_PAGE = 100
_OF_PATIENT = re.compile(rf"(?:.*/)?{PATIENT}/([^/?#|]+)(?:/_history/.*)?", re.DOTALL)
"""What refers to a Patient, to one of another server with the same id, too."""


class NotErasable(NotPossible):
    """A resource that cannot be erased; the text is the reason."""


@dataclass(slots=True)
class Extent:
    """What is stored of a resource, as far as it is not erased.

    Attributes:
        type: The FHIR type of the resource.
        id: The id of the resource.
        newest: The newest version; a tombstone if the resource is erased.
        versions: The number of versions.
        members: The newest version of each member, by id, erased or not.
        documents: The SHA-256 names of all documents.
        size: The total size of versions, with their members, in bytes.
        subjects: What the names of its events begin with, such as ``diagnostic_report``.
        tombstones: The tombstones that it has, oldest first.
        patients: The ids of the Patients that some version or some member refers to, or is found
            by. They are read from what is stored: no plugin need know the type.
    """

    type: str
    id: str
    newest: Version
    versions: int = 0
    members: dict[str, Version] = field(default_factory=dict)
    documents: set[str] = field(default_factory=set)
    size: int = 0
    subjects: set[str] = field(default_factory=set)
    tombstones: list[Tombstone] = field(default_factory=list)
    patients: set[str] = field(default_factory=set)

    @property
    def names(self) -> Iterator[tuple[str, str]]:
        """The type and id of the resource and of each of its members."""
        yield self.type, self.id
        for member in self.members.values():
            yield fhir_type(member.type), member.id

    def take(self, version: Version) -> None:
        """Take one version into account, newer than those before."""
        self.newest = version
        self.members |= {member.id: member for member in version.members}
        if is_erased(version):
            tombstone = tombstone_of(version)
            if tombstone.version == version.version:
                self.tombstones.append(tombstone)
            return
        self.versions += 1
        self.documents |= {*version.documents}
        self.size += version.size
        events = loads_stored(version.events)
        self.subjects |= {one["type"].partition(".")[0] for one in events}


async def extent_of(resource_id: str, *, tenant: Tenant, store: Store) -> Extent:
    """Return what is stored of a resource. Raises NotErasable, StoreUnavailable."""
    if is_member_id(resource_id):
        raise NotErasable(
            f"{resource_id} came with another resource: it is erased together with that one"
        )
    found: Extent | None = None
    number, is_last = 0, False
    while not is_last:
        page = await store.scan(after=(resource_id, number), limit=_PAGE)
        ours = [*_of(resource_id, page, tenant)]
        for version in ours:
            if found is None:
                found = Extent(fhir_type(version.type), resource_id, version)
            found.take(version)
            if not is_erased(version):  # others go on: a version may have thousands of members
                patients = await in_turns(_patients_of, (version, *version.members))
                found.patients |= frozenset().union(*patients)
        number, is_last = (ours[-1].version if ours else 0), len(ours) < len(page) or not page
    if found is None:
        raise NotErasable(f"the tenant has no resource {resource_id} with versions of its own")
    return found


def _patients_of(version: Version) -> set[str]:
    """Return the ids of the Patients that a version refers to, or is found by."""
    literals = map(_OF_PATIENT.fullmatch, literals_of(objects_in(loads_stored(version.body))))
    # Also a person that no reference leads to.
    values = {
        str(code) for _name, code, system in decode(version.search) if system == PATIENT and code
    }
    return values | {literal[1] for literal in literals if literal}


def _of(
    resource_id: str, page: Iterable[tuple[str, Version]], tenant: Tenant
) -> Iterator[Version]:
    return (one for owner, one in page if one.id == resource_id and owner == tenant.id)
