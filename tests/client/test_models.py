"""The types of fhirpub-client are those of the OpenAPI document of today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fhirpub_client import models
from tests.client.document import openapi_document


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("models")
    found: dict[str, Any] = openapi_document(folder)["components"]["schemas"]
    return found


def members_of(schema: dict[str, Any]) -> set[str]:
    return {*schema.get("properties", {})}


def test_every_type_has_the_members_that_are_described(schemas: dict[str, Any]) -> None:
    missing = {
        name: members_of(schema) - {*getattr(models, name).__annotations__}
        for name, schema in schemas.items()
        if members_of(schema)
    }

    assert len(missing) > 100
    assert {name: members for name, members in missing.items() if members} == {}


def test_no_type_has_a_member_that_is_not_described(schemas: dict[str, Any]) -> None:
    # A type that extends another has the members of both.
    described = {
        name: members_of(schema) for name, schema in schemas.items() if members_of(schema)
    }
    every = set().union(*described.values())

    assert all({*getattr(models, name).__annotations__} <= every for name in described)
    assert {*models.DiagnosticReport.__annotations__} == described["DiagnosticReport"]


def test_no_type_is_missing(schemas: dict[str, Any]) -> None:
    missing = {name for name, schema in schemas.items() if members_of(schema)} - {*vars(models)}

    assert missing == set()
