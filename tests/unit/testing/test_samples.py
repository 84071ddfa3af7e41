"""The published samples are new records each time, and successors follow from the one before."""

from __future__ import annotations

import uuid

from fhirpub.testing.samples import a_version, new_id, new_member_id, successor


def test_each_version_is_one_of_a_new_resource() -> None:
    one, other = a_version(), a_version()

    assert one.id != other.id
    assert one.value != other.value
    assert one.version == 1


def test_fields_that_are_given_replace_those_of_the_sample() -> None:
    made = a_version(status="amended", value="A-1")

    assert (made.status, made.value, made.version) == ("amended", "A-1", 1)


def test_a_successor_is_the_next_version_a_millisecond_later() -> None:
    first = a_version(version=4, response=b"r", parts=b"p", digest=b"d", status="preliminary")

    second = successor(first)

    assert (second.id, second.value, second.status) == (first.id, first.value, "preliminary")
    assert (second.version, second.updated) == (5, first.updated + 1)
    assert second.created == first.created
    assert (second.response, second.parts, second.digest) == (b"", b"", b"")


def test_a_successor_has_the_fields_that_are_given() -> None:
    made = successor(a_version(), status="amended", body=b"{}")

    assert (made.status, made.body, made.version) == ("amended", b"{}", 2)


def test_ids_of_resources_and_of_members_are_told_apart_by_their_version() -> None:
    ids, members = [new_id() for _ in range(9)], [new_member_id() for _ in range(9)]

    assert {uuid.UUID(one).version for one in ids} == {4}
    assert {uuid.UUID(one).version for one in members} == {8}
    assert {uuid.UUID(one).variant for one in [*ids, *members]} == {uuid.RFC_4122}
    assert len({*ids, *members}) == 18
