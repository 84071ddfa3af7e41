"""Parameters, headers, refusals and scopes that operations share."""

from __future__ import annotations

from typing import Any

from tests.unit.web.openapi import described


def test_what_operations_share_is_described_as_it_is_wanted(document: Any) -> None:
    assert [*described.parameters(document)] == described.wanted("parameters")


def test_each_shared_parameter_and_header_has_its_words(document: Any) -> None:
    parts = document["components"]

    assert all(one["description"] for one in parts["parameters"].values())
    assert all(one["description"] for one in parts["headers"].values())
