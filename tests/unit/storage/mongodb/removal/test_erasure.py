"""What stays of a version, and of a member, that is erased."""

from __future__ import annotations

from dataclasses import replace

import bson
import pytest

from fhirpub.storage.erasure.tombstones import husk_of, member_body, tombstone_of
from fhirpub.storage.mongodb import documents
from fhirpub.storage.mongodb.removal.erasure import _GONE, _erased_fields, _erased_member
from fhirpub.testing.contracts.erasure.content import a_tombstone
from fhirpub.testing.contracts.store.members import a_result
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import LAB, REPORT, a_version

BLOB = a_blob()
FULL = a_version(
    response=b"response",
    parts=b"parts",
    digest=b"digest",
    events=b"[1]",
    search=b'[["code","a",""]]',
    documents=(BLOB.sha256,),
    attached=(BLOB,),
    audit=b'{"who":"c"}',
)


def test_of_a_version_its_key_its_times_and_its_record_stay() -> None:
    tombstone = a_tombstone(FULL)
    addition = documents.encode_addition(LAB, FULL, (), now=1)
    stored = bson.decode(addition.document.raw)

    erased = {**stored, **_erased_fields(REPORT, tombstone, [])}
    for name in _GONE:
        erased.pop(name, None)

    husk = husk_of(FULL, tombstone_of(tombstone))
    assert documents.version_of(erased) == replace(husk, audit=FULL.audit)
    assert erased.keys() - stored.keys() == set()


@pytest.mark.parametrize("type_name", ["DiagnosticReport", "!DiagnosticReport"])
def test_an_erased_type_has_one_mark(type_name: str) -> None:
    assert _erased_fields(type_name, a_tombstone(FULL), [])["type"] == "!DiagnosticReport"


def test_the_fields_of_an_erased_version_are_empty() -> None:
    tombstone = a_tombstone(FULL)

    assert _erased_fields(REPORT, tombstone, []) == {
        "type": "!DiagnosticReport",
        "system": "",
        "value": "",
        "status": "",
        "events": b"[]",
        "body": tombstone.body,
        "response": b"",
        "parts": b"",
        "search": [],
    }


def test_members_are_replaced_where_there_are_some() -> None:
    members = [{"id": "1"}]

    assert _erased_fields(REPORT, a_tombstone(FULL), members)["members"] == members


def test_of_a_member_its_key_and_its_first_time_stay() -> None:
    member = a_result(version=3, value="v", status="final", search=b'[["code","a",""]]')
    tombstone = a_tombstone(FULL, member)
    addition = documents.encode_addition(LAB, a_version(members=(member,)), (), now=1)
    (stored,) = bson.decode(addition.document.raw)["members"]

    assert _erased_member(stored, member_body(tombstone)) == {
        "id": member.id,
        "version": 3,
        "type": "!Observation",
        "system": "",
        "value": "",
        "status": "",
        "created": member.created,
        "body": member_body(tombstone),
        "search": [],
    }
