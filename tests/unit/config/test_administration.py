"""Who may administer the service, and where."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.administration import (
    AdminConfig,
    admin_base_url,
    admin_callers,
    admin_contradictions,
)

NO_CALLER = (
    "[admin] port: no caller could authenticate; set bootstrap_key_hash, of a key that "
    "`fhirpub admin new-key` creates, or callers"
)


def contradictions(**given: Any) -> list[str]:
    return list(admin_contradictions(AdminConfig(**given)))


def test_administration_is_not_served_unless_set() -> None:
    assert dataclasses.asdict(AdminConfig()) == {
        "host": "127.0.0.1",
        "port": 0,
        "base_url": "",
        "bootstrap_key_hash": "",
        "callers": [],
        "token_seconds": 300,
    }
    assert contradictions() == []


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"port": 9}, "http://127.0.0.1:9"),
        ({"port": 9, "host": "::1"}, "http://[::1]:9"),
        ({"port": 9, "base_url": "https://a.example/b/"}, "https://a.example/b"),
        ({"base_url": "https://admin.example/a/"}, "https://admin.example/a"),
    ],
)
def test_the_audience_of_operators_is_the_url_without_a_slash(
    given: dict[str, Any], url: str
) -> None:
    assert admin_base_url(AdminConfig(**given)) == url


def test_callers_are_names_with_files() -> None:
    callers = ["a=b=c", "wrong", "A.b_-9=/d", "terraform=/etc/a=b.json", "x" * 64 + "=c"]

    assert admin_callers(AdminConfig(callers=callers)) == {
        "a": Path("b=c"),
        "A.b_-9": Path("/d"),
        "terraform": Path("/etc/a=b.json"),
        "x" * 64: Path("c"),
    }


@pytest.mark.parametrize("given", [{"callers": ["a=b"]}, {"bootstrap_key_hash": "0f" * 32}])
def test_one_way_to_authenticate_is_enough(given: dict[str, Any]) -> None:
    assert contradictions(port=65_535, **given) == []


def test_a_port_without_a_caller_is_of_no_use() -> None:
    assert contradictions(port=1) == [NO_CALLER]


def test_a_port_beyond_the_last_is_refused() -> None:
    assert contradictions(port=65_536, callers=["a=b"]) == ["[admin] port must be at most 65535"]


@pytest.mark.parametrize("text", ["0" * 63, "0" * 65, "0F" * 32, "g" * 64])
def test_a_hash_has_64_digits_in_lower_case(text: str) -> None:
    assert contradictions(bootstrap_key_hash=text) == [
        "[admin] bootstrap_key_hash must be 64 hexadecimal digits, in lower case"
    ]


def test_each_caller_that_is_wrong_is_named() -> None:
    assert contradictions(callers=["x", "a=1", "a=2", "a=3", "bootstrap=4", "b=1"]) == [
        "[admin] callers: 'x' must be NAME=FILE, such as terraform=keys.json",
        "[admin] callers: a is named 3 times: put all of its keys into one file",
        "[admin] callers: bootstrap is the name of who has the bootstrap key: use another one",
    ]


def test_a_caller_that_is_named_twice_is_refused() -> None:
    assert contradictions(callers=["a=b", "c=d", "a=e"]) == [
        "[admin] callers: a is named 2 times: put all of its keys into one file"
    ]


def test_a_caller_with_the_name_of_the_bootstrap_key_may_be_named_twice_as_well() -> None:
    found = contradictions(callers=["bootstrap=a", "bootstrap=b"])

    assert [line.removeprefix("[admin] callers: bootstrap is ")[:13] for line in found] == [
        "named 2 times",
        "the name of w",
    ]
