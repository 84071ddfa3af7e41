"""A submission as it was received: its key, and the resources in entries that are not taken."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import InvalidContent
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.submission.record import ANY_RESOURCE, parse, resources_in
from fhirpub.plugin_api import Entry
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT
from tests.bodies import register_body
from tests.indexers import SCHEMAS
from tests.unit.interactions.submission.test_contained import PATIENT, body, contained, read, to


def found(entry: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one.resource["id"], one.at) for one in resources_in(Entry(entry, "at"))]


def test_resources_are_found_in_an_entry_and_in_its_parts() -> None:
    part: dict[str, Any] = {"resource": {"id": "c"}}
    deeper = {"part": [{"name": "x"}, part]}
    entry = {"resource": {"id": "a"}, "part": [{"resource": {"id": "b"}}, "x", deeper]}

    assert found(entry) == [
        ("a", "at.resource"),
        ("b", "at.part[0].resource"),
        ("c", "at.part[2].part[1].resource"),
    ]


@pytest.mark.parametrize("entry", [{}, {"resource": "x"}, {"part": {"resource": {}}}])
def test_what_is_no_resource_is_not_found(entry: dict[str, Any]) -> None:
    assert found(entry) == []


def test_a_submission_that_is_accepted_has_a_key() -> None:
    submission = read(body(PATIENT))
    with pytest.raises(ValueError, match="what is accepted has a key"):
        _ = submission.known_key

    submission.key = ("s", "v")

    assert submission.known_key == ("s", "v")


def test_a_submission_is_version_1_unless_it_is_numbered() -> None:
    submission = read(body(PATIENT))

    assert (submission.number, submission.held, submission.documents) == (1, (), ())


def test_a_body_is_read_as_what_it_is() -> None:
    xml = b'<Patient xmlns="http://hl7.org/fhir"><id value="p"/></Patient>'

    assert parse(b'{"resourceType":"Patient","id":"p"}', is_xml=False) == PATIENT
    assert parse(xml, is_xml=True) == PATIENT
    with pytest.raises(InvalidContent):
        parse(xml, is_xml=False)
    with pytest.raises(InvalidContent):
        parse(b"{}", is_xml=True)


def test_what_only_a_part_needs_goes_into_the_part_without_placeholders() -> None:
    employer = contained("Organization", "e")
    employed = contained("Patient", "p", managingOrganization=to("e"))
    submission = read(body(employed, employer))

    submission.remove_placeholders()

    assert "contained" not in submission.entry.resource
    assert submission.parts["patient"].resource == {**employed, "contained": [employer]}
    assert submission.parts["patient"].at == "Basic.contained[0]"


def test_all_that_only_a_part_needs_goes_into_it() -> None:
    employer, doctor = contained("Organization", "e"), contained("Practitioner", "d")
    one = contained("Patient", "p", managingOrganization=to("e"), generalPractitioner=[to("d")])
    submission = read(body(one, doctor, employer))

    submission.remove_placeholders()

    found = submission.parts["patient"].resource["contained"]
    assert sorted(each["id"] for each in found) == ["d", "e"]


def test_what_no_part_needs_stays_without_placeholders() -> None:
    group = contained("Group", "g")
    submission = read(body(PATIENT, group, focus=to("g")))

    submission.remove_placeholders()

    assert submission.entry.resource["contained"] == [group]
    assert submission.parts["patient"].resource == PATIENT


def test_what_a_resource_in_parameters_contains_stays() -> None:
    group = contained("Group", "g")
    sent = register_body("A-1", contained=[group])
    submission = from_parameters(sent, DIAGNOSTIC_REPORT)

    submission.remove_placeholders()

    assert submission.entry.resource["contained"] == [group]


def test_what_stands_for_a_resource_has_what_r4_requires_of_it() -> None:
    assert {*ANY_RESOURCE} == {"resourceType", "id", "code"}
    assert ANY_RESOURCE["code"] == {"text": "-"}
    assert SCHEMAS.accepts(
        "Parameters",
        {"resourceType": "Parameters", "parameter": [{"name": "x", "resource": ANY_RESOURCE}]},
    )
