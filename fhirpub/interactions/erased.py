"""Resources whose content was erased, and those that are registered again since (ADR 36)."""

from __future__ import annotations

from typing import TypeGuard

from fhirpub.errors import FhirpubError
from fhirpub.problems import ContentProblem, RequestProblem
from fhirpub.storage.contract import Resources, Version
from fhirpub.storage.erasure.tombstones import fhir_type, is_erased, tombstone_of


class ResourceErased(FhirpubError):
    """The content of the resource was erased on an order (ADR 36)."""

    details = RequestProblem.RESOURCE_ERASED

    def __init__(self, type_name: str, resource_id: str) -> None:
        super().__init__(f"{type_name}/{resource_id} was erased")


class IdentifierErased(FhirpubError):
    """What had the identifier was erased on an order that does not allow it again (ADR 36)."""

    details = ContentProblem.IDENTIFIER_ERASED

    def __init__(self, type_name: str, resource_id: str) -> None:
        super().__init__(
            f"{type_name}/{resource_id}, which had this identifier, was erased: it cannot be "
            "registered again"
        )


async def first_version(resources: Resources, tenant_id: str, resource_id: str) -> Version | None:
    """Return the version by which a resource was registered, or a member came to be.

    It is version 1, or the one that follows the tombstone if it was registered again. If the
    resource is erased, what is returned is what stands for it; None if there never was one.
    """
    first = await resources.version(tenant_id, resource_id, 1)
    while first is not None and is_erased(first):
        number = tombstone_of(first).version + 1
        again = await resources.version(tenant_id, resource_id, number)
        if again is None:
            return first
        first = again
    return first


def refuse_erased(found: Version | None, type_name: str) -> None:
    """Raise ResourceErased if what was found is the tombstone of a resource of a type."""
    if found is not None and is_erased(found) and fhir_type(found.type) == type_name:
        raise ResourceErased(type_name, found.id)


def number_after(first: Version | None) -> int:
    """Return the number of the version that registers a resource, by what stands there now.

    Raises IdentifierErased if the resource was erased for good.
    """
    if not is_tombstone(first):
        return 1
    tombstone = tombstone_of(first)
    if not tombstone.allows_reuse:
        raise IdentifierErased(fhir_type(first.type), first.id)
    return tombstone.version + 1


def is_tombstone(version: Version | None) -> TypeGuard[Version]:
    """Return whether there is a version, and it is an erased one."""
    return version is not None and is_erased(version)
