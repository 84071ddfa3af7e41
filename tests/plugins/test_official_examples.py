"""HL7's own examples of each composition: registered, read back and updated as they are."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import parameters, patient

CORPUS = Path(__file__).parents[1] / "corpus" / "compositions.jsonl.gz"
WITHDRAWN = "entered-in-error"


def examples() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(CORPUS, "rt", encoding="utf-8") as lines:
        for line in lines:
            resource = json.loads(line)["resource"]
            found.setdefault(resource["resourceType"], []).append(resource)
    return found


EXAMPLES = examples()


def completed(example: dict[str, Any], value: str) -> dict[str, Any]:
    """Return an example with an identifier of its own, about our patient."""
    subject = example.get("subject", {}).get("reference", "")
    others = [
        contained_resource
        for contained_resource in example.get("contained", ())
        if f"#{contained_resource['id']}" != subject
    ]
    resource = {name: item for name, item in example.items() if name != "contained"}
    return {
        **resource,
        **({"contained": others} if others else {}),
        "identifier": [{"system": "https://contract.example/examples", "value": value}],
        "subject": {"reference": "Patient/p1"},
    }


def registered(lab: Integrator, resource: dict[str, Any]) -> Answer:
    name = resource["resourceType"]
    own = {name[0].lower() + name[1:]: resource}
    return lab.register(parameters(patient=patient(), **own), type_name=name)


@pytest.mark.parametrize("type_name", EXAMPLES)
def test_every_example_is_taken_and_comes_back_as_it_was(
    service: RunningService, lab: Integrator, type_name: str
) -> None:
    ours = {"id", "meta", "subject"}
    times = {path.partition(".")[0] for path in service.services.types[type_name].times}
    for number, example in enumerate(EXAMPLES[type_name]):
        resource = completed(example, f"{type_name}-{number}")

        answer = registered(lab, resource)

        if resource["status"] == WITHDRAWN:
            assert answer.issue_expressions == {"Parameters.parameter[1].resource.status"}
            continue
        assert answer.status == 201, (example["id"], answer.body)
        read = lab.get(answer.headers["location"]).json
        kept = resource.keys() - ours - times
        assert {name: read[name] for name in kept} == {name: resource[name] for name in kept}


def test_an_update_of_an_example_fails_only_because_of_what_people_wrote(lab: Integrator) -> None:
    for type_name, found in EXAMPLES.items():
        for number, example in enumerate(found):
            resource = completed(example, f"{type_name}-update-{number}")
            location = registered(lab, resource).headers.get("location", "")
            path = location.partition("/_history")[0]
            if not path:
                continue

            answer = lab.patch(path, {"resourceType": type_name, "status": "unknown"})

            written = resource.get("text", {}).get("status") == "additional"
            assert answer.status == (422 if written else 204), (example["id"], answer.body)
