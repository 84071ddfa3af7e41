"""Bodies and their schemas, and examples that work."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.testing.service import Integrator
from tests.unit.web.handlers.asking import REPORTS, path_of
from tests.unit.web.openapi import described


def test_the_own_schemas_are_described_as_they_are_wanted(document: Any) -> None:
    assert [*described.schemas(document)] == described.wanted("schemas")


def examples(document: Any, path: str, method: str = "post") -> list[Any]:
    content = document["paths"][path][method]["requestBody"]["content"]
    found = content["application/fhir+json"]
    named = [one["value"] for one in found.get("examples", {}).values()]
    return named or [found["example"]]


@pytest.mark.parametrize(("name", "status"), [("/$register", 201), ("", 201), ("/$validate", 200)])
def test_the_examples_of_bodies_are_taken(
    lab: Integrator, document: Any, name: str, status: int
) -> None:
    for example in examples(document, f"{REPORTS}{name}"):
        assert lab.request("POST", f"{REPORTS}{name}", example).status == status


def test_the_example_of_an_update_is_taken(lab: Integrator, document: Any) -> None:
    (registration,) = examples(document, f"{REPORTS}/$register")
    path = path_of(lab.register(registration))

    for example in examples(document, f"{REPORTS}/{{id}}", "patch"):
        assert lab.patch(path, example).status == 204
