"""The body of create: which contained resources are parts, which stay, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import InvalidContent
from fhirpub.interactions.submission.contained import from_contained
from fhirpub.interactions.submission.record import Submission
from fhirpub.plugin_api import Part, ResourceType

VISIT = ResourceType(
    name="Basic",
    schemas={},
    create_statuses=frozenset(),
    update_statuses=frozenset(),
    parts=(
        Part(name="patient", type="Patient", referred_by="subject"),
        Part(name="author", type="Practitioner", referred_by="author", required=False),
        Part(name="result", type="Observation", referred_by="result", repeats=True),
    ),
)


def to(local_id: str) -> dict[str, str]:
    return {"reference": f"#{local_id}"}


def contained(type_name: str, local_id: str, **more: Any) -> dict[str, Any]:
    return {"resourceType": type_name, "id": local_id, **more}


def body(*resources: Any, **changes: Any) -> dict[str, Any]:
    return {
        "resourceType": "Basic",
        "subject": to("p"),
        "contained": [*resources],
        **changes,
    }


def read(sent: Any) -> Submission:
    return from_contained(sent, VISIT)


def wrong(sent: Any) -> list[tuple[str, str]]:
    return [(issue.expression, issue.diagnostics) for issue in read(sent).wrong]


def refusal(sent: Any) -> tuple[str, str]:
    with pytest.raises(InvalidContent) as refused:
        read(sent)
    (issue,) = refused.value.issues
    return issue.expression, issue.diagnostics


PATIENT = contained("Patient", "p")


def test_a_contained_resource_that_is_referred_to_is_a_part() -> None:
    submission = read(body(contained("Group", "g"), PATIENT))

    assert submission.wrong == []
    assert {*submission.parts} == {"patient"}
    part = submission.parts["patient"]
    assert (part.resource, part.at) == (PATIENT, "Basic.contained[1]")
    assert submission.local == {"#p": "patient"}
    assert submission.entry.at == "Basic"
    assert {*submission.declared} == {"patient", "author"}
    assert submission.members == {}


@pytest.mark.parametrize(
    "sent",
    [
        body(),
        body(PATIENT, subject=to("q")),
        body(PATIENT, subject={"reference": "Patient/p"}),
        body(PATIENT, subject={"display": "p"}),
        body(contained("Group", "p")),
        body({"resourceType": "Patient"}),
        body(contained("Patient", "p") | {"id": 7}),
        body("p"),
        body(PATIENT, subject=None, author=to("p")),
    ],
)
def test_a_part_that_is_required_and_missing_is_named(sent: dict[str, Any]) -> None:
    assert wrong(sent) == [("Basic", "a contained Patient that subject refers to is required")]


def test_a_part_that_is_not_required_may_be_missing() -> None:
    assert wrong(body(PATIENT, author=to("unknown"))) == []


def test_the_first_that_is_referred_to_is_the_part() -> None:
    others = (contained("PractitionerRole", "r"), contained("Practitioner", "b"))
    authors = [to("r"), to("a"), to("b")]
    sent = body(PATIENT, *others, contained("Practitioner", "a"), author=authors)

    submission = read(sent)

    assert submission.parts["author"].resource["id"] == "a"
    assert submission.local == {"#p": "patient", "#a": "author"}
    assert [one["id"] for one in submission.kept] == ["r", "b"]


def test_what_repeats_is_no_part_of_create() -> None:
    submission = read(body(PATIENT, contained("Observation", "o"), result=[to("o")]))

    assert {*submission.parts} == {"patient"}
    assert [one["id"] for one in submission.kept] == ["o"]


def test_what_only_a_part_needs_goes_with_it() -> None:
    employer = contained("Organization", "e")
    sent = body(contained("Patient", "p", managingOrganization=to("e")), employer)

    submission = read(sent)

    assert submission.contained_of_parts == {"patient": {"#e": employer}}
    assert submission.kept == []
    submission.remove_placeholders()
    assert submission.parts["patient"].resource["contained"] == [employer]
    assert "contained" not in submission.entry.resource


def test_what_the_resource_needs_as_well_stays_in_it() -> None:
    employer = contained("Organization", "e")
    sent = body(
        contained("Patient", "p", managingOrganization=to("e")), employer, performer=to("e")
    )

    submission = read(sent)
    submission.remove_placeholders()

    assert submission.entry.resource["contained"] == [employer]
    assert submission.parts["patient"].resource["contained"] == [employer]


def test_what_nobody_refers_to_stays_in_the_resource() -> None:
    submission = read(body(PATIENT, contained("Group", "g")))
    submission.remove_placeholders()

    assert [one["id"] for one in submission.entry.resource["contained"]] == ["g"]


def test_a_part_goes_with_no_other_part() -> None:
    doctor = contained("Practitioner", "a")
    sent = body(contained("Patient", "p", generalPractitioner=[to("a")]), doctor, author=to("a"))

    assert read(sent).contained_of_parts == {}


def test_a_placeholder_stands_where_a_part_was() -> None:
    employer = contained("Organization", "e")
    sent = body(contained("Patient", "p", managingOrganization=to("e")), employer)

    submission = read(sent)

    (placeholder,) = submission.placeholders
    assert submission.entry.resource["contained"] == [placeholder, employer]
    assert (placeholder["resourceType"], placeholder["id"]) == ("Basic", "p")
    assert placeholder["extension"] == [{"url": "urn:fhirpub:leads-to", "valueUri": "#e"}]


def test_a_placeholder_of_what_leads_nowhere_has_no_extensions() -> None:
    (placeholder,) = read(body(PATIENT)).placeholders

    assert "extension" not in placeholder


def test_without_parts_all_that_is_contained_stays() -> None:
    group = contained("Group", "g")
    submission = read(body(group, subject=None))

    assert submission.kept == [group]
    assert submission.placeholders == ()
    submission.remove_placeholders()
    assert submission.entry.resource["contained"] == [group]


def test_the_content_is_what_would_be_registered() -> None:
    employer = contained("Organization", "e")
    sent = body(contained("Patient", "p", managingOrganization=to("e")), employer)

    assert read(sent).content == [
        {"name": "basic", "resource": {"resourceType": "Basic", "subject": to("p")}},
        {
            "name": "patient",
            "resource": contained(
                "Patient", "p", managingOrganization=to("e"), contained=[employer]
            ),
        },
    ]


def test_without_contained_resources_the_parts_are_missing() -> None:
    assert len(wrong({"resourceType": "Basic", "subject": to("p")})) == 1


@pytest.mark.parametrize("value", [{}, "x", None, 7])
def test_what_is_contained_must_be_a_list(value: Any) -> None:
    assert refusal(body(contained=value)) == ("Basic.contained", "must be a list")


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"resourceType": "Parameters"}, "a Parameters: send it to Basic/$register"),
        ({"resourceType": "Group"}, "a Group"),
        ([], "an array: send each resource in a request of its own"),
        ("x", "a string: it was written as JSON twice"),
    ],
)
def test_another_body_is_refused_with_what_it_is(sent: Any, words: str) -> None:
    assert refusal(sent) == ("Basic", f"the body must be a Basic, and is {words}")


def test_a_part_that_no_element_names_is_what_any_reference_leads_to() -> None:
    anywhere = replace(VISIT, parts=(Part(name="patient", type="Patient", referred_by=""),))
    sent = body(PATIENT, subject=None, extension=[{"url": "urn:x", "valueReference": to("p")}])

    submission = from_contained(sent, anywhere)

    assert submission.parts["patient"].resource == PATIENT
    assert submission.local == {"#p": "patient"}


def test_a_part_that_contains_resources_of_its_own_keeps_them() -> None:
    nested = [contained("Organization", "n")]
    employed = contained("Patient", "p", managingOrganization=to("e"), contained=nested)

    submission = read(body(employed, contained("Organization", "e")))
    submission.remove_placeholders()

    assert submission.contained_of_parts == {}
    assert submission.parts["patient"].resource["contained"] == nested
