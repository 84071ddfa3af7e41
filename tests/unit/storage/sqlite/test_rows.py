"""Tests of what a version costs the writer and of the rows that it becomes."""

from __future__ import annotations

import json

from fhirpub.storage.criteria import SearchValue, encode
from fhirpub.storage.sqlite.rows import PIECE_BYTES, Addition, attached_in
from fhirpub.testing.samples import a_version, new_member_id
from fhirpub.testing.store_contract import LAB, a_blob

PERSON: SearchValue = ("subject", "p", "Patient")


def addition(*members: list[SearchValue]) -> Addition:
    """Return an addition with a member for each list of values."""
    results = [
        a_version(id=new_member_id(), type="Observation", search=encode(values))
        for values in members
    ]
    return Addition(LAB, a_version(members=tuple(results)), (), now=0)


def test_a_value_that_members_share_costs_less_than_one_of_each() -> None:
    apart = addition([("code", "a", "s")], [("code", "b", "s")], [("code", "c", "s")])
    shared = addition([PERSON], [PERSON], [PERSON])

    assert 0 < addition([], [], []).cost < shared.cost < apart.cost


def test_documents_that_a_row_holds_are_read_apart() -> None:
    blobs = [a_blob(b"%d" % number * number) for number in (3, 1, 7, 2)]
    (row,) = Addition(LAB, a_version(attached=tuple(blobs)), (), now=0).rows

    assert [*attached_in(row[17])] == blobs


def test_several_values_in_one_field_are_all_entries() -> None:
    (*_row, found_by, _place) = addition([("code", 'a"', "s"), ("code", "b", "s")]).rows[-1]

    pairs = json.loads(found_by, object_pairs_hook=list)
    assert [value for _field, value in pairs] == ['a"', "b"]
    assert len({field for field, _value in pairs}) == 1


def test_an_entry_of_each_of_several_fields_is_one_member_of_an_object() -> None:
    (*_row, found_by, _place) = addition([PERSON, ("date", 1, 2**60)]).rows[-1]

    assert sorted(map(str, json.loads(found_by).values())) == sorted(["p", str(2**60)])


def test_no_entry_leads_from_a_version_to_its_own_member() -> None:
    own, other = a_version(id=new_member_id(), type="Observation"), new_member_id()
    values: list[SearchValue] = [("result", each, "Observation") for each in (own.id, other)]
    version = a_version(members=(own,), search=encode([*values, ("name", own.id, "family")]))

    (*_row, found_by, _members), _of_member = Addition(LAB, version, (), now=0).rows

    assert sorted(json.loads(found_by).values()) == sorted([other, own.id])


def test_each_of_several_large_documents_goes_in_pieces() -> None:
    blobs = [a_blob(bytes([number]) * (PIECE_BYTES + 1)) for number in range(3)]

    addition = Addition(LAB, a_version(), blobs, now=1)

    assert addition.in_pieces == addition.large == blobs
