"""From a body to a submission, for types with parts that none of our types has."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import InvalidContent
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


def _registered(*extensions: dict[str, Any], **more: Any) -> Submission:
    entry: dict[str, Any] = {"name": "basic", "resource": {"resourceType": "Basic"}}
    if extensions:
        entry["extension"] = [*extensions]
    return from_parameters({"resourceType": "Parameters", "parameter": [entry], **more}, _ORDER)


def test_parameters_of_names_and_resources_alone_need_no_look_at_the_rest() -> None:
    assert _registered().envelope is None


def test_what_stands_beside_the_entries_is_looked_at() -> None:
    for submission in (_registered({"url": "urn:x"}), _registered(id="x")):
        assert submission.envelope is not None
        assert submission.envelope.at == "Parameters"
        assert submission.envelope.resource["parameter"][0]["name"] == "basic"


def test_a_resource_alone_is_refused_with_where_it_is_sent() -> None:
    with pytest.raises(InvalidContent) as refused:
        from_parameters({"resourceType": "Basic"}, _ORDER)

    (issue,) = refused.value.issues
    assert issue.diagnostics.endswith(
        "is a Basic: send it to Basic itself (create), or here as the resource of the entry basic"
    )


def test_an_entry_that_is_wrong_and_repeated_is_refused_for_both() -> None:
    entries = [
        {"name": "basic", "resource": {"resourceType": "Basic"}},
        {"name": "author", "resource": {"resourceType": "Patient"}},
        {"name": "author", "resource": {"resourceType": "Practitioner", "id": "a"}},
        {"name": "witness", "resource": {"resourceType": "Practitioner", "id": "b"}},
    ]

    submission = from_parameters({"resourceType": "Parameters", "parameter": entries}, _ORDER)

    assert [(one.expression, str(one.details)) for one in submission.wrong] == [
        ("Parameters.parameter[1]", "entry-invalid"),
        ("Parameters.parameter[2]", "entry-repeated"),
    ]
