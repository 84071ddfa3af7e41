"""The response for each composition passes third-party R4 validators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fhirpub.testing.service import Integrator
from tests import compositions
from tests.corpus.validator import Validator, faults

QUICK = ("fhir.resources", "fhirclient")  # the third takes half a minute to start
COMPOSITIONS = [
    compositions.encounter,
    compositions.medication_request,
    compositions.service_request,
    compositions.device_request,
    compositions.observation,
]


@pytest.fixture(scope="module")
def validators() -> Iterator[list[Validator]]:
    running = [Validator(name) for name in QUICK]
    yield running
    for validator in running:
        validator.close()


@pytest.mark.parametrize("composition", COMPOSITIONS, ids=lambda each: each.__name__)
def test_every_answer_is_valid(
    lab: Integrator, validators: list[Validator], composition: Callable[[str], dict[str, Any]]
) -> None:
    resource = composition("independent")
    type_name = resource["resourceType"]
    registered = lab.register(compositions.register_body(resource), type_name=type_name)
    path = registered.headers["location"].partition("/_history")[0]
    lab.patch(path, {"resourceType": type_name, "status": "unknown"})
    read = lab.get(path).json
    author = next(part for part in str(read).split("'") if part.startswith("Practitioner/"))

    answers = [
        registered.json,
        read,
        lab.get(f"{path}/_history").json,
        lab.get(f"/fhir/r4/{type_name}?_summary=true").json,
        lab.get(f"/fhir/r4/{author}").json,
        lab.get("/metadata").json,
        lab.get(f"/fhir/r4/OperationDefinition/{type_name}-register").json,
    ]

    assert read["meta"]["versionId"] == "2"
    assert [fault for answer in answers for fault in faults(answer, validators)] == []
