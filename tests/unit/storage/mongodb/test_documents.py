"""Versions and blobs as documents, and what weighs in a batch."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import bson
import pytest
from pymongo import UpdateOne

from fhirpub.errors import InvalidContent, TooLarge
from fhirpub.problems import ContentProblem
from fhirpub.storage.contract import SMALL_BYTES, Blob, BlobInfo, Version
from fhirpub.storage.criteria import SearchValue, encode, field_number
from fhirpub.storage.mongodb import documents
from fhirpub.storage.mongodb.documents import MAX_BYTES, PIECE_BYTES, encode_addition
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import LAB, OTHER, REPORT, a_version, new_member_id

NOW = 1_700_000_000_000
SMALL = a_blob(b"small")
VALUES: list[SearchValue] = [
    ("code", "a", "s"),
    ("code", "", "P"),
    ("date", 5, 9),
    ("date", None, None),
]
STORED_VALUES = [
    {"name": "code", "field": field_number(LAB, REPORT, "code"), "key": "a", "rest": "s"},
    {"name": "code", "rest": "P"},
    {"name": "date", "field": field_number(LAB, REPORT, "date"), "key": 9, "rest": 5},
    {"name": "date", "rest": None},
]
PLAIN = a_version(response=b"response", parts=b"parts")


def a_member(**changes: Any) -> Version:
    """Return a member as a store returns it."""
    return a_version(id=new_member_id(), type="Observation", **changes)


def stored(version: Version) -> dict[str, Any]:
    """Return the document of a version, as the server gets it."""
    return bson.decode(encode_addition(LAB, version, (), now=NOW).document.raw)


def test_a_version_is_stored_with_what_every_version_has_and_no_more() -> None:
    document = stored(PLAIN)

    addition = encode_addition(LAB, PLAIN, (), now=NOW)
    assert document.pop("_id") != addition.nonce
    assert document == {
        "id": PLAIN.id,
        "version": 1,
        "tenant": LAB,
        "type": REPORT,
        "system": PLAIN.system,
        "value": PLAIN.value,
        "status": "final",
        "created": PLAIN.created,
        "updated": PLAIN.updated,
        "events": b"[]",
        "body": PLAIN.body,
        "response": b"response",
        "parts": b"parts",
        "search": [],
    }


def test_a_call_is_known_by_the_id_of_what_it_inserts() -> None:
    addition = encode_addition(LAB, PLAIN, (), now=NOW)

    assert bson.decode(addition.document.raw)["_id"] == addition.nonce


def test_what_a_version_need_not_have_is_stored_if_it_has_it() -> None:
    whole = a_version(
        digest=b"digest",
        attached=(SMALL,),
        documents=(SMALL.sha256,),
        events=b'[{"id":"1"}]',
        audit=b'{"who":"c"}',
    )

    document = stored(whole)

    expected = {
        "digest": b"digest",
        "attached": [
            {"sha256": SMALL.sha256, "content_type": SMALL.content_type, "data": SMALL.data}
        ],
        "documents": [SMALL.sha256],
        "unrelayed": True,
        "audit": b'{"who":"c"}',
        "unsealed": True,
    }
    assert {name: document[name] for name in document.keys() - stored(PLAIN).keys()} == expected


def test_values_are_stored_in_the_form_of_the_index() -> None:
    assert stored(a_version(search=encode(VALUES)))["search"] == STORED_VALUES


def test_members_are_stored_at_the_end_with_what_is_their_own() -> None:
    member = a_member(search=encode([("code", "a", "")]))

    document = stored(a_version(members=(member, a_member(), a_version(type="A"))))

    assert [*document][-2:] == ["member_types", "members"]
    assert document["member_types"] == sorted(
        documents.member_type(LAB, name) for name in ("Observation", "A")
    )
    assert document["members"][0] == {
        "id": member.id,
        "version": 1,
        "type": "Observation",
        "system": member.system,
        "value": member.value,
        "status": "final",
        "created": member.created,
        "body": member.body,
        "search": [
            {
                "name": "code",
                "field": field_number(LAB, "Observation", "code"),
                "key": "a",
                "rest": "",
            }
        ],
    }


def test_types_of_members_are_the_tenants() -> None:
    assert documents.member_type(LAB, "A") != documents.member_type(OTHER, "A")
    assert documents.member_type(LAB, "A") == field_number(LAB, "A", "")


@pytest.mark.parametrize(
    "version",
    [
        PLAIN,
        a_version(search=encode(VALUES), digest=b"d", audit=b"{}", events=b"[1]"),
        a_version(documents=(SMALL.sha256,), attached=(SMALL,)),
        a_version(members=(a_member(search=encode([("code", "", "P")])), a_member())),
    ],
    ids=["plain", "values", "documents", "members"],
)
def test_a_version_is_read_as_it_was_stored(version: Version) -> None:
    assert documents.version_with_members(stored(version)) == version


def test_a_version_is_read_without_its_members() -> None:
    version = a_version(members=(a_member(),))

    assert documents.version_of(stored(version)) == replace(version, members=())


def test_a_version_of_which_not_all_is_shown_has_defaults_for_the_rest() -> None:
    version = a_version(
        search=encode(VALUES), digest=b"d", audit=b"{}", events=b"[1]", response=b"r", parts=b"p"
    )
    document = stored(version)
    for name in documents.NOT_SHOWN:
        del document[name]

    assert documents.version_of(document) == version.without_internal_fields()


def test_members_have_the_tenant_the_time_and_the_key_of_their_carrier() -> None:
    document = stored(a_version(version=3, members=(a_member(),)))

    (member,) = documents.members_of(document)

    assert member["tenant"] == LAB
    assert member["updated"] == document["updated"]
    assert member["carrier"] == {"id": document["id"], "version": 3}
    assert [*documents.members_of(stored(PLAIN))] == []


def test_the_key_of_an_addition_is_that_of_its_version() -> None:
    addition = encode_addition(LAB, PLAIN, (), now=NOW)

    assert addition.key == documents.version_key_of(stored(PLAIN)) == (PLAIN.id, 1)
    assert addition.tenant == LAB


def test_an_addition_weighs_its_bytes_and_its_values() -> None:
    member = a_member(search=encode([("code", "a", ""), ("code", "b", "")]))
    version = a_version(search=encode(VALUES), members=(member,))
    blobs = [SMALL, a_blob(bytes(SMALL_BYTES + 1))]

    addition = encode_addition(LAB, version, blobs, now=NOW)

    assert addition.values == 6
    of_blobs = len(SMALL.data) + SMALL_BYTES + 1
    assert addition.size == len(addition.document.raw) + of_blobs + 6 * 2048
    assert addition.stored == version.size


def test_what_is_left_without_the_pieces_weighs_less() -> None:
    blob = a_blob(bytes(SMALL_BYTES + 1))
    addition = encode_addition(LAB, PLAIN, [SMALL, blob], now=NOW)

    left = addition.without_pieces()

    assert left.pieces == ()
    assert left.blobs == addition.blobs
    assert left.size == addition.size - len(blob.data)


def test_a_small_blob_is_stored_whole_and_loose() -> None:
    blob = a_blob(bytes(SMALL_BYTES))

    addition = encode_addition(LAB, PLAIN, [blob], now=NOW)

    assert addition.pieces == ()
    assert addition.blobs == (
        {
            "_id": f"{LAB}/{blob.sha256}",
            "tenant": LAB,
            "sha256": blob.sha256,
            "content_type": blob.content_type,
            "size": SMALL_BYTES,
            "loose": True,
            "added": NOW,
            "data": blob.data,
        },
    )


def test_a_large_blob_is_stored_in_pieces() -> None:
    blob = a_blob(os.urandom(2 * PIECE_BYTES + 1))

    addition = encode_addition(LAB, PLAIN, [blob], now=NOW)

    (kept,) = addition.blobs
    assert "data" not in kept
    assert kept["size"] == len(blob.data)
    key = f"{LAB}/{blob.sha256}"
    assert [piece["_id"] for piece in addition.pieces] == [f"{key}/{n}" for n in range(3)]
    assert [len(piece["data"]) for piece in addition.pieces] == [PIECE_BYTES, PIECE_BYTES, 1]
    assert b"".join(piece.pop("data") for piece in addition.pieces) == blob.data
    common = {"tenant": LAB, "blob": key, "loose": True, "added": NOW}
    assert all(piece == {"_id": piece["_id"], **common} for piece in addition.pieces)


def test_a_blob_of_full_pieces_has_no_empty_one() -> None:
    addition = encode_addition(LAB, PLAIN, [a_blob(bytes(2 * PIECE_BYTES))], now=NOW)

    assert [len(piece["data"]) for piece in addition.pieces] == [PIECE_BYTES] * 2


@pytest.mark.parametrize(
    ("version", "blobs"),
    [
        (a_version(version=2**63), []),
        (a_version(value="\ud800"), []),
        (a_version(updated=2**63), []),
        (PLAIN, [replace(SMALL, content_type="\ud800")]),
    ],
    ids=["a number", "a text", "a time", "a media type"],
)
def test_what_the_server_cannot_hold_is_refused(version: Version, blobs: list[Blob]) -> None:
    with pytest.raises(InvalidContent) as refused:
        encode_addition(LAB, version, blobs, now=NOW)

    (issue,) = refused.value.issues
    assert issue.diagnostics == "the resource cannot be stored as it is"
    assert issue.details == ContentProblem.CHARACTER_FORBIDDEN
    assert refused.value.__suppress_context__


def test_a_version_as_large_as_the_server_takes_is_accepted() -> None:
    other = len(encode_addition(LAB, replace(PLAIN, body=b""), (), now=NOW).document.raw)
    largest = replace(PLAIN, body=bytes(MAX_BYTES - other))

    assert len(encode_addition(LAB, largest, (), now=NOW).document.raw) == MAX_BYTES

    with pytest.raises(TooLarge) as refused:
        encode_addition(LAB, replace(largest, body=largest.body + b"x"), (), now=NOW)

    (issue,) = refused.value.issues
    assert issue.diagnostics == "the resource is larger than the store can keep"
    assert issue.details == ContentProblem.BODY_TOO_LARGE


def test_a_blob_that_is_added_again_becomes_fresh_and_is_kept_as_it_was() -> None:
    (blob,) = encode_addition(LAB, PLAIN, [SMALL], now=NOW).blobs

    kept = {name: item for name, item in blob.items() if name not in ("_id", "added")}
    assert documents.refresh_update(blob) == UpdateOne(
        {"_id": f"{LAB}/{SMALL.sha256}"},
        {"$setOnInsert": kept, "$max": {"added": NOW}},
        upsert=True,
    )


def test_a_blob_is_read_with_its_bytes_if_they_are_few() -> None:
    large = a_blob(bytes(SMALL_BYTES + 1))
    kept = encode_addition(LAB, PLAIN, [SMALL, large], now=NOW).blobs

    assert [documents.blob_of(document) for document in kept] == [
        SMALL.info,
        BlobInfo(large.sha256, large.content_type, SMALL_BYTES + 1, None),
    ]
