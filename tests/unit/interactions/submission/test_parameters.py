"""From a body to a submission, for types with parts that none of our types has."""

from __future__ import annotations

from typing import Any

from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.submission.record import Submission
from fhirpub.plugin_api import Part, ResourceType

_ORDER = ResourceType(
    name="Basic",
    schemas={},
    create_statuses=frozenset(),
    update_statuses=frozenset(),
    parts=(
        Part(name="author", type="Practitioner", referred_by="author"),
        Part(name="witness", type="Practitioner", referred_by="subject"),
    ),
)


def _submission(*, author: dict[str, Any], witness: dict[str, Any]) -> Submission:
    sent = {"basic": {"resourceType": "Basic"}}
    sent |= {"author": {"resourceType": "Practitioner", **author}}
    sent |= {"witness": {"resourceType": "Practitioner", **witness}}
    entries = [{"name": name, "resource": element} for name, element in sent.items()]
    return from_parameters({"resourceType": "Parameters", "parameter": entries}, _ORDER)


def test_two_parts_of_one_type_are_distinguished_by_their_ids() -> None:
    submission = _submission(author={"id": "a"}, witness={"id": "b"})

    assert submission.local == {"Practitioner/a": "author", "Practitioner/b": "witness"}


def test_two_parts_of_one_type_with_one_id_are_refused() -> None:
    (issue,) = _submission(author={"id": "a"}, witness={"id": "a"}).wrong

    assert issue.expression == "Parameters.parameter[2].resource.id"
    assert issue.diagnostics == "is the id of the entry author, too"


def test_a_part_without_an_id_is_what_no_reference_leads_to() -> None:
    assert _submission(author={"id": "None"}, witness={}).local == {"Practitioner/None": "author"}
