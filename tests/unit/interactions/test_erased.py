"""Which version registers a resource, before and after its content was erased."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.interactions.erased import (
    IdentifierErased,
    ResourceErased,
    first_version,
    is_tombstone,
    number_after,
    refuse_erased,
)
from fhirpub.storage.contract import Version
from fhirpub.storage.erasure.tombstones import Tombstone, husk_of
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import LAB, OTHER, a_version, new_id

ID = new_id()


def version(number: int) -> Version:
    return a_version(id=ID, version=number)


def tombstone(number: int, *, below: int | None = None, reuse: bool = True) -> Version:
    """Return the tombstone with a number, or what remains of a version below it."""
    stands = Tombstone(version=number, at=5, operator="a", reason="b", allows_reuse=reuse)
    return husk_of(version(below or number), stands)


async def stored(store: SqliteStore, *versions: Version) -> Version | None:
    for one in versions:
        assert await store.add(LAB, one)
    return await first_version(store, LAB, ID)


async def test_the_first_version_registers_a_resource(store: SqliteStore) -> None:
    found = await stored(store, version(1), version(2))

    assert found is not None
    assert found.version == 1


async def test_nothing_registers_what_is_unknown(store: SqliteStore) -> None:
    assert await first_version(store, LAB, ID) is None


async def test_a_resource_of_another_tenant_is_unknown(store: SqliteStore) -> None:
    await stored(store, version(1))

    assert await first_version(store, OTHER, ID) is None


async def test_what_is_erased_is_found_as_what_stands_for_it(store: SqliteStore) -> None:
    found = await stored(store, tombstone(2, below=1), tombstone(2))

    assert is_tombstone(found)
    assert number_after(found) == 3


async def test_the_version_behind_the_tombstone_registers_it_again(store: SqliteStore) -> None:
    found = await stored(store, tombstone(2, below=1), tombstone(2), version(3), version(4))

    assert found is not None
    assert (found.version, is_tombstone(found)) == (3, False)


async def test_a_resource_may_be_erased_and_registered_twice(store: SqliteStore) -> None:
    first = (tombstone(2, below=1), tombstone(2))
    second = (tombstone(4, below=3), tombstone(4))

    found = await stored(store, *first, *second)
    assert number_after(found) == 5

    again = await stored(store, version(5))
    assert again is not None
    assert again.version == 5


def test_a_new_resource_begins_with_version_1() -> None:
    assert number_after(None) == 1
    assert number_after(version(1)) == 1


def test_an_identifier_that_was_erased_for_good_cannot_be_registered_again() -> None:
    with pytest.raises(IdentifierErased) as refused:
        number_after(tombstone(2, below=1, reuse=False))

    assert str(refused.value) == (
        f"DiagnosticReport/{ID}, which had this identifier, was erased: it cannot be registered "
        "again"
    )


def test_what_is_erased_is_refused_by_its_type() -> None:
    with pytest.raises(ResourceErased, match=f"^DiagnosticReport/{ID} was erased$"):
        refuse_erased(tombstone(2), "DiagnosticReport")


def test_what_is_there_or_of_another_type_is_not_refused_as_erased() -> None:
    refuse_erased(None, "DiagnosticReport")
    refuse_erased(version(1), "DiagnosticReport")
    refuse_erased(tombstone(2), "Observation")
    refuse_erased(replace(tombstone(2), type="!Observation"), "DiagnosticReport")


def test_only_an_erased_version_is_a_tombstone() -> None:
    assert not is_tombstone(None)
    assert not is_tombstone(version(1))
    assert is_tombstone(tombstone(2))
