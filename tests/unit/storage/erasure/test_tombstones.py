"""What stands for an erased resource: its fields, and what remains of its versions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.storage.erasure.tombstones import (
    Tombstone,
    erased_type,
    fhir_type,
    husk_of,
    is_emptied,
    is_erased,
    member_body,
    tombstone_of,
)
from fhirpub.storage.records import Version
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import REPORT, a_version

AT = 1_800_000_000_000
TOMBSTONE = Tombstone(version=3, at=AT, operator="eve", reason="order 7", allows_reuse=True)
BLOB = a_blob()
FULL = a_version(
    version=2,
    created=AT - 9,
    updated=AT - 5,
    response=b"response",
    parts=b"parts",
    digest=b"digest",
    events=b"[1]",
    search=b'[["code","a",""]]',
    documents=(BLOB.sha256,),
    attached=(BLOB,),
    members=(a_result(),),
    audit=b'{"who":"c"}',
)


def test_a_tombstone_is_encoded_in_the_order_of_its_names() -> None:
    assert TOMBSTONE.encode() == (
        b'{"allows_reuse":true,"at":1800000000000,"operator":"eve","reason":"order 7","version":3}'
    )


def test_what_is_empty_is_not_encoded() -> None:
    assert Tombstone(version=3, at=AT).encode() == b'{"at":1800000000000,"version":3}'


def test_by_default_it_names_no_operator_and_the_identifier_stays_taken() -> None:
    assert Tombstone(version=3, at=AT) == Tombstone(
        version=3, at=AT, operator="", reason="", allows_reuse=False
    )


@pytest.mark.parametrize("tombstone", [TOMBSTONE, Tombstone(version=1, at=1, reason="ü")])
def test_an_encoded_tombstone_is_read_back(tombstone: Tombstone) -> None:
    assert tombstone_of(husk_of(FULL, tombstone)) == tombstone


def test_members_have_neither_the_operator_nor_the_reason() -> None:
    assert TOMBSTONE.of_member() == Tombstone(version=3, at=AT, allows_reuse=True)


def test_the_body_of_members_is_that_of_the_tombstone_without_words() -> None:
    assert member_body(husk_of(FULL, TOMBSTONE)) == TOMBSTONE.of_member().encode()


def test_of_a_version_its_key_its_times_and_its_audit_record_remain() -> None:
    assert husk_of(FULL, TOMBSTONE) == Version(
        id=FULL.id,
        version=2,
        type="!DiagnosticReport",
        system="",
        value="",
        status="",
        created=AT - 9,
        updated=AT - 5,
        body=TOMBSTONE.encode(),
        audit=b'{"who":"c"}',
    )


def test_what_was_erased_twice_has_one_mark() -> None:
    once = husk_of(FULL, TOMBSTONE)

    assert husk_of(once, TOMBSTONE) == once


def test_the_type_of_an_erased_version_is_that_of_its_resource_with_a_mark() -> None:
    assert erased_type(REPORT) == erased_type("!DiagnosticReport") == "!DiagnosticReport"


@pytest.mark.parametrize("stored", ["!DiagnosticReport", "DiagnosticReport"])
def test_the_fhir_type_has_no_mark(stored: str) -> None:
    assert fhir_type(stored) == REPORT


def test_only_a_type_with_a_mark_is_erased() -> None:
    assert not is_erased(FULL)
    assert not is_erased(replace(FULL, type="Diagnostic!Report"))
    assert is_erased(husk_of(FULL, TOMBSTONE))


def test_a_version_below_its_tombstone_is_emptied() -> None:
    assert is_emptied(husk_of(FULL, TOMBSTONE))


def test_a_tombstone_was_never_emptied() -> None:
    assert not is_emptied(husk_of(replace(FULL, version=3), TOMBSTONE))


def test_a_version_with_content_is_not_emptied() -> None:
    assert not is_emptied(FULL)
    assert not is_emptied(replace(FULL, body=TOMBSTONE.encode()))
