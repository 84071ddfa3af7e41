"""Versions and documents become rows of the file, and come back from them as they were."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.storage.contract import SMALL_BYTES, Blob, Version
from fhirpub.storage.criteria import encode, field_number
from fhirpub.storage.sqlite.rows import (
    PIECE_BYTES,
    Addition,
    OtherWrite,
    Row,
    attached_in,
    blob_row,
    content_of,
    cost_of,
    has_bytes,
    pages_of,
    reference_in,
    size_of,
    version_of,
)
from fhirpub.storage.sqlite.schema import ADDITION_COLUMNS
from fhirpub.testing.samples import LAB, OTHER, REPORT, a_version
from fhirpub.testing.store_contract import a_blob

SMALL = a_blob(b"small", "text/plain"), a_blob(b"", "image/png"), a_blob(b"\0" * 9)
FULL = a_version(
    version=7,
    type="Observation",
    system="s",
    value="v",
    status="amended",
    created=3,
    updated=4,
    body=b'{"b":1}',
    documents=tuple(blob.sha256 for blob in SMALL),
    attached=SMALL,
    response=b"response",
    parts=b"the parts",
    events=b'[{"e":1}]',
    search=encode([("code", "a", "s")]),
    digest=b"d" * 32,
    audit=b'{"a":1}',
)


def an_addition(version: Version, *blobs: Blob, tenant: str = LAB) -> Addition:
    return Addition(tenant, version, blobs, now=9)


def row_of(version: Version) -> Row:
    """Return the row of a version as it is stored."""
    (row,) = an_addition(version).rows
    return row


# Versions


def test_a_version_comes_back_from_its_row_as_it_was() -> None:
    assert version_of(row_of(FULL)) == FULL


def test_a_version_without_anything_that_it_may_lack_comes_back_so() -> None:
    version = a_version()

    assert version_of(row_of(version)) == version


def test_a_row_has_the_columns_of_an_addition() -> None:
    addition = an_addition(replace(FULL, members=(a_version(),)), a_blob())

    assert {len(row) for row in addition.rows} == {ADDITION_COLUMNS}


def test_a_row_has_the_tenant_and_how_much_the_version_has() -> None:
    row = row_of(FULL)

    assert row[2] == LAB
    assert size_of(row) == FULL.own_size


def test_the_values_of_a_version_are_entries_of_its_tenant_and_type() -> None:
    version = a_version(search=encode([("code", "a", "s"), ("date", 5, 8), ("name", None, None)]))

    for tenant in (LAB, OTHER):
        entries = json.loads(an_addition(version, tenant=tenant).rows[0][19])

        assert entries == {
            str(field_number(tenant, REPORT, "code")): "a",
            str(field_number(tenant, REPORT, "date")): 8,
        }


def test_members_stand_behind_their_version_which_has_their_number() -> None:
    members = (a_version(type="Observation"), a_version(type="Observation"))
    version = a_version(members=members)

    rows = an_addition(version).rows

    assert [row[0] for row in rows] == [version.id, members[0].id, members[1].id]
    assert [row[-1] for row in rows] == [2, 0, 0]


def test_documents_stand_before_their_version() -> None:
    blob, version = a_blob(), a_version()

    rows = an_addition(version, blob).rows

    assert rows[0] == blob_row(LAB, blob, now=9)
    assert rows[1] == row_of(version)


def test_an_addition_is_known_by_its_tenant_and_key() -> None:
    addition = an_addition(FULL, tenant=OTHER)

    assert (addition.tenant, addition.key) == (OTHER, (FULL.id, 7))


def test_a_row_that_was_read_without_its_bytes_is_known() -> None:
    row = row_of(FULL)

    assert has_bytes(row)
    assert not has_bytes((*row[:14], None, *row[15:]))


# What is large


@pytest.mark.parametrize(
    ("size", "is_large", "in_pieces"),
    [
        (SMALL_BYTES, False, False),
        (SMALL_BYTES + 1, True, False),
        (PIECE_BYTES, True, False),
        (PIECE_BYTES + 1, True, True),
    ],
)
def test_a_document_is_stored_by_its_size(size: int, *, is_large: bool, in_pieces: bool) -> None:
    blob = a_blob(bytes(size))

    addition = an_addition(a_version(), blob, a_blob())

    assert addition.large == [blob] * is_large
    assert addition.in_pieces == [blob] * in_pieces
    assert blob_row(LAB, blob, now=9)[14] == (None if is_large else blob.data)


def test_a_version_of_the_size_of_a_piece_is_in_its_row() -> None:
    version = a_version(body=bytes(PIECE_BYTES - len(b"[]")))

    addition = an_addition(version)

    assert addition.large == []
    assert version_of(addition.rows[-1]) == version


@pytest.mark.parametrize("in_field", ["body", "response", "parts"])
def test_of_a_larger_version_the_row_refers_to_the_content(in_field: str) -> None:
    fields: dict[str, Any] = {"body": b"{}", "response": b"r", "parts": b"parts"}
    fields[in_field] = b"x" * PIECE_BYTES
    version = replace(FULL, **fields)
    content = content_of(version)

    addition = an_addition(version)

    assert addition.large == addition.in_pieces == [content]
    assert [row[5] for row in addition.rows] == [content.sha256, "v"]
    row = addition.rows[-1]
    sizes = [len(fields[name]) for name in ("body", "response", "parts")]
    assert reference_in(row) == (content.sha256, sizes)
    assert (row[15], row[16]) == (b"", b"")
    assert size_of(row) == version.own_size


def test_what_a_row_refers_to_is_no_document_of_the_version() -> None:
    version = replace(FULL, body=b"x" * PIECE_BYTES)

    row = an_addition(version).rows[-1]

    assert row[9].split() == [*FULL.documents, content_of(version).sha256]
    assert version_of(row).documents == FULL.documents


def test_a_row_with_its_content_refers_to_nothing() -> None:
    assert reference_in(row_of(FULL)) is None


def test_a_large_member_is_stored_in_pieces_beside_its_version() -> None:
    member = a_version(type="Observation", body=b"x" * (PIECE_BYTES + 1))

    addition = an_addition(a_version(members=(member,)))

    assert addition.in_pieces == [content_of(member)]
    assert reference_in(addition.rows[1]) is None
    found = reference_in(addition.rows[2])
    assert found is not None
    assert found[0] == content_of(member).sha256


def test_the_content_of_a_version_is_all_that_can_be_large_in_its_order() -> None:
    assert content_of(FULL).data == b'{"b":1}responsethe parts'


def test_the_content_of_a_version_is_named_by_its_bytes_and_as_no_document_is() -> None:
    content = content_of(FULL)

    digest = hashlib.sha256(content.data).hexdigest()
    assert content.sha256 == f"version-{digest[8:]}"
    assert len(content.sha256) == len(digest)
    assert content.content_type == "application/fhir+json"


# Documents


def test_the_row_of_a_document_has_what_is_known_of_it() -> None:
    blob = a_blob(b"small", "text/plain")

    row = blob_row(OTHER, blob, now=77)

    known = {2: OTHER, 3: "text/plain", 5: blob.sha256, 7: 77, 10: 5, 14: b"small"}
    assert {place: item for place, item in enumerate(row) if item is not None} == known


def test_the_content_of_a_version_is_not_counted_beside_it() -> None:
    assert blob_row(LAB, content_of(FULL), now=1)[10] == 0


def test_documents_within_a_version_come_back_as_they_were() -> None:
    row = row_of(FULL)

    assert tuple(attached_in(row[17])) == SMALL


def test_documents_come_back_without_a_record_of_the_write() -> None:
    version = replace(FULL, audit=b"")

    assert version_of(row_of(version)) == version


def test_a_version_without_documents_has_no_bytes_of_them() -> None:
    assert row_of(a_version())[17] == b""
    assert list(attached_in(b"")) == []


# What a write costs


@pytest.mark.parametrize(
    ("size", "index_rows", "beside", "cost"),
    [
        (0, 0, 0, 20),
        (399, 0, 0, 20),
        (400, 0, 0, 21),
        (1_000_000, 0, 0, 2_520),
        (0, 1, 0, 30),
        (0, 10, 0, 120),
        (0, 0, 10, 40),
        (800, 2, 3, 48),
    ],
)
def test_a_write_takes_microseconds_by_its_bytes_and_rows(
    size: int, index_rows: int, beside: int, cost: int
) -> None:
    assert cost_of(size, index_rows, beside=beside) == cost


@pytest.mark.parametrize(("cost", "pages"), [(0, 0), (9, 0), (10, 1), (2_520, 252)])
def test_a_write_changes_a_page_in_ten_microseconds(cost: int, pages: int) -> None:
    assert pages_of(cost) == pages


def test_a_version_costs_its_bytes_values_and_names_of_documents() -> None:
    version = a_version(
        body=bytes(4_000 - len(b"[]")),
        search=encode([("code", "a", ""), ("code", "b", "")]),
        documents=("0" * 64,),
    )

    assert an_addition(version).cost == cost_of(4_000, 3)


def test_documents_cost_their_bytes_and_two_rows_each() -> None:
    version = a_version()
    blobs = [a_blob(bytes(4_000)), a_blob(bytes(8_000))]

    cost = an_addition(version, *blobs).cost

    assert cost == an_addition(version).cost + cost_of(12_000, 4)


@pytest.mark.parametrize(
    ("size", "counted"),
    [(PIECE_BYTES, PIECE_BYTES), (PIECE_BYTES + 1, 0)],
    ids=["whole", "pieces"],
)
def test_what_is_committed_in_pieces_costs_nothing_with_its_version(
    size: int, counted: int
) -> None:
    version = a_version()

    cost = an_addition(version, a_blob(bytes(size))).cost

    assert cost == an_addition(version).cost + cost_of(counted, 2)


def test_of_a_version_in_pieces_the_row_costs_its_events_alone() -> None:
    version = a_version(body=bytes(PIECE_BYTES + 1), events=b"e" * 4_000)

    # The row of the content, with two of indexes, and that of the version with its name.
    assert an_addition(version).cost == cost_of(0, 2) + cost_of(4_000, 1)


def test_values_that_members_have_in_common_cost_little() -> None:
    search = encode([("subject", "p", "Patient"), ("code", "a", "")])
    members = tuple(a_version(type="Observation", search=search) for _ in range(3))

    cost = an_addition(a_version(members=members)).cost

    size = members[0].own_size
    assert cost == cost_of(size) + cost_of(size, 2) + 2 * cost_of(size, beside=2)


def test_another_write_is_called_with_the_connection() -> None:
    write = OtherWrite(lambda connection: [connection], cost=7)

    assert (write("it"), write.cost) == (["it"], 7)
