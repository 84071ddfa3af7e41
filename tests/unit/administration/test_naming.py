"""How callers name things: what a key may be, and which id follows from it."""

from __future__ import annotations

import pytest

from fhirpub.administration.naming import (
    KEY_RULE,
    id_of,
    id_of_key,
    identifier_in,
    resource_in,
    why_no_id,
    why_no_identifier,
    why_no_key,
    why_no_resource,
)

UUID = "5a5b5c5d-0000-4000-8000-aabbccddeeff"


@pytest.mark.parametrize("key", ["a", "0", "lab-1", "a.b_c-d", "x" * 100, f"{UUID}x", UUID[:-1]])
def test_a_key_is_of_lower_case_letters_digits_and_signs(key: str) -> None:
    assert why_no_key(key) == ""


@pytest.mark.parametrize(
    "key", ["", "x" * 101, "A", "-a", ".a", "_a", "a b", "ä", "a/b", "a\n", UUID]
)
def test_a_key_is_nothing_else_and_no_uuid(key: str) -> None:
    assert why_no_key(key) == KEY_RULE


def test_the_id_of_a_key_never_changes() -> None:
    assert id_of_key("tenant", "lab") == "fbe2a3e4-261c-51cc-8d9a-adc674443111"
    assert id_of_key("client", "ward", tenant="t") == "105e451e-815f-56aa-876e-9f71dad31dd1"


def test_the_id_of_a_key_depends_on_its_kind_and_its_tenant() -> None:
    ids = {
        id_of_key(kind, "ward", tenant=tenant)
        for kind in ("client", "endpoint")
        for tenant in ("t", "u", "")
    }

    assert len(ids) == 6


@pytest.mark.parametrize("text", ["s|v", "https://lab.example/id|a|b", "s|a b", "s|a|"])
def test_an_identifier_has_a_system_and_a_value(text: str) -> None:
    assert why_no_identifier(text) == ""


@pytest.mark.parametrize("text", ["", "s", "s|", "|v", "s| ", "s| v", "s|v "])
def test_what_has_not_both_is_no_identifier(text: str) -> None:
    assert why_no_identifier(text) == "must be a system, a bar and a value"


def test_the_value_of_an_identifier_begins_behind_the_first_bar() -> None:
    assert identifier_in("s|a|b") == ("s", "a|b")


@pytest.mark.parametrize(
    "text", ["7d1a", "Patient/7d1a", "https://x.example/fhir/r4/Patient/7d1a"]
)
def test_an_address_ends_with_its_id(text: str) -> None:
    assert id_of(text) == "7d1a"


def test_the_type_of_a_resource_stands_before_its_id() -> None:
    assert resource_in(f"Patient/{UUID}") == ("Patient", UUID)
    assert resource_in("a/b/c") == ("a/b", "c")


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        (f"Patient/{UUID}", True),
        (f"Patient/{UUID.upper()}", False),
        (f"/{UUID}", False),
        (UUID, False),
        (f"Pat1ent/{UUID}", False),
        (f"Pätient/{UUID}", False),
        (f"a/Patient/{UUID}", False),
        ("Patient/", False),
        ("Patient/1", False),
    ],
)
def test_a_resource_is_named_by_its_type_and_its_id(text: str, *, is_right: bool) -> None:
    assert why_no_resource(text) == ("" if is_right else "must be TYPE/ID, such as Patient/7d1a…")


def test_an_id_alone_must_be_that_of_a_resource() -> None:
    assert why_no_id(UUID) == ""
    assert why_no_id("1") == why_no_id(f"Patient/{UUID}") == "must be the id of a resource"
