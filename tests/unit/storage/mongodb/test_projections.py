"""Which fields of a version are read for a page."""

from __future__ import annotations

import pytest

from fhirpub.storage.mongodb.projections import ALONE, listed_with, members_with


def test_a_version_alone_has_all_but_its_members() -> None:
    assert ALONE == {"members": 0}


def test_a_list_leaves_out_members_documents_and_records() -> None:
    assert listed_with(None) == {"members": 0, "attached": 0, "audit": 0}


@pytest.mark.parametrize("names", [(), frozenset[str]()])
def test_without_names_no_search_value_is_read(names: frozenset[str]) -> None:
    assert listed_with(names) == {"members": 0, "attached": 0, "audit": 0, "search": 0}


def test_with_names_only_their_search_values_are_read() -> None:
    found = listed_with(["code", "$date"])

    assert found["search"] == {
        "$filter": {
            "input": "$search",
            "as": "value",
            "cond": {"$in": ["$$value.name", {"$literal": ["code", "$date"]}]},
        }
    }


def test_with_names_a_list_has_everything_but_what_it_leaves_out_otherwise() -> None:
    assert {*listed_with(["code"])} == {
        *("id", "version", "tenant", "type", "system", "value", "status", "created", "updated"),
        *("documents", "body", "response", "parts", "events", "digest", "search"),
    }


def test_members_are_found_by_their_ids() -> None:
    has_id = {"$in": ["$$this.id", {"$literal": ["$a", "b"]}]}

    assert members_with(["$a", "b"], None) == {"$filter": {"input": "$members", "cond": has_id}}


def test_members_without_names_have_no_search_values() -> None:
    made = members_with(["a"], ())["$map"]["in"]

    assert made == {"$setField": {"field": "search", "input": "$$this", "value": "$$REMOVE"}}


def test_members_keep_the_search_values_under_names() -> None:
    made = members_with(["a"], ["code"])["$map"]["in"]["$setField"]["value"]["$filter"]

    assert made["input"] == "$$this.search"
    assert made["cond"] == {"$in": ["$$value.name", {"$literal": ["code"]}]}
