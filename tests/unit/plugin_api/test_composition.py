"""The event data of a composition, and the name of its author."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.plugin_api import Change, CompositionEvents
from fhirpub.plugin_api.composition import author_of

FORMER = "http://hl7.org/fhir/v2/0203"
V2_0203 = "http://terminology.hl7.org/CodeSystem/v2-0203"


def identifier(value: str, *codes: str, system: str = V2_0203, **more: str) -> dict[str, Any]:
    coding = [{"system": system, "code": code} for code in codes]
    return {"value": value, **({"type": {"coding": coding}} if codes else {}), **more}


def author(**practitioner: Any) -> dict[str, str]:
    return author_of({"resourceType": "Practitioner", "id": "d1", **practitioner})


def test_an_author_without_details_is_sent_as_its_type_alone() -> None:
    assert author() == {"author_type": "practitioner"}


@pytest.mark.parametrize(
    ("names", "lastname"),
    [
        ([{"family": "A"}, {"family": "B"}], "A"),
        ([{"family": "A"}, {"use": "official", "family": "B"}], "B"),
        ([{"use": "old", "family": "A"}, {"use": "usual", "family": "B"}], "B"),
        ([{"use": "maiden", "family": "A"}], "A"),
    ],
)
def test_the_name_is_the_official_one_or_else_of_these_days(
    names: list[dict[str, str]], lastname: str
) -> None:
    assert author(name=names)["lastname"] == lastname


def test_all_given_names_are_sent_without_gaps() -> None:
    assert author(name=[{"given": ["Marta", None, "Sol"]}])["firstname"] == "Marta Sol"


def test_a_name_in_one_text_is_not_split() -> None:
    assert author(name=[{"text": "Marta Ferreyra"}]) == author()


@pytest.mark.parametrize(
    ("identifiers", "expected"),
    [
        ([identifier("1", "MD"), identifier("2", "NI")], ("NI", "2")),
        ([identifier("1", "NNARG")], ("NNARG", "1")),
        ([identifier("1"), identifier("2", "NI", system=FORMER)], ("NI", "2")),
        ([identifier("1"), identifier("2", "PPN")], ("PPN", "2")),
        ([identifier("1", "MD"), identifier("2")], (None, "2")),
        ([identifier("1", "DNI", system="https://registry.example/types")], ("DNI", "1")),
        ([{"value": "1", "type": {"text": "DNI"}}], ("DNI", "1")),
        ([identifier("1", "PPN", use="old"), identifier("2", "PPN")], ("PPN", "2")),
        ([{"type": {"coding": [{"system": V2_0203, "code": "NI"}]}}], (None, None)),
        ([identifier("1", "MD"), identifier("2", "TAX")], (None, None)),
    ],
)
def test_the_document_is_the_first_that_names_a_person_or_may(
    identifiers: list[dict[str, Any]], expected: tuple[str | None, str | None]
) -> None:
    found = author(identifier=identifiers)

    assert (found.get("person_id_type"), found.get("person_id_number")) == expected


def test_the_tax_number_is_sent_separately() -> None:
    found = author(identifier=[identifier("1", "TAX"), identifier("2", "NI")])

    assert (found["tin"], found["person_id_number"]) == ("1", "2")


def test_only_the_elements_that_were_named_are_sent() -> None:
    resource = {
        "identifier": [{"system": "s", "value": "v", "use": "usual"}],
        "status": "final",
        "effectiveInstant": "2026-11-20T10:00:00Z",
        "_issued": {"id": "i"},
        "note": [{"text": "x"}],
    }
    change = Change(id="1", version=1, after=resource, before=None, parts={})

    (event,) = CompositionEvents("observation", elements=("effective[x]", "issued"))(change)

    assert event.type == "observation.created"
    assert event.data == {
        "id": "1",
        "version": 1,
        "identifier": {"system": "s", "value": "v"},
        "status": "final",
        "effectiveInstant": "2026-11-20T10:00:00Z",
    }


def test_a_composition_that_could_never_be_sent_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="<composition_type>"):
        CompositionEvents("Medication Request")
