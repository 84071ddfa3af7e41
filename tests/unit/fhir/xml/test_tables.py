"""What the tables have of single elements: their form, type, place, order and number."""

from __future__ import annotations

import pytest

from fhirpub.fhir.xml.tables import Element, tables


def element(path: str, name: str) -> Element:
    return tables().objects[path][name]


def test_an_element_has_the_facts_of_its_definition() -> None:
    first = element("Patient", "identifier")

    assert (first.name, first.place, first.type) == ("identifier", "identifier", "Identifier")
    assert (first.many, first.required) == (True, False)


def test_an_element_that_must_be_there_is_required() -> None:
    assert element("Observation", "status").required
    assert not element("Observation", "status").many


def test_an_element_may_repeat_and_be_required() -> None:
    url = element("Bundle.link", "url")
    link = element("ValueSet.compose", "include")

    assert (url.required, url.many) == (True, False)
    assert (link.required, link.many) == (True, True)


def test_a_nested_element_has_the_path_of_its_object() -> None:
    assert element("Patient", "contact").type == "Patient.contact"
    assert "relationship" in tables().objects["Patient.contact"]


def test_each_form_of_a_choice_has_the_place_of_the_choice() -> None:
    forms = [one for one in tables().objects["Patient"].values() if one.place == "deceased"]

    assert [(one.name, one.type) for one in forms] == [
        ("deceasedBoolean", "boolean"),
        ("deceasedDateTime", "dateTime"),
    ]


def test_all_forms_of_a_choice_stand_at_the_same_position() -> None:
    known = tables().objects["Patient"]

    assert known["deceasedBoolean"].order == known["deceasedDateTime"].order
    assert known["deceasedBoolean"].order == known["birthDate"].order + 1


@pytest.mark.parametrize("path", ["HumanName", "Extension", "Patient.contact", "Element"])
def test_the_id_of_a_data_type_is_an_attribute(path: str) -> None:
    assert "id" not in tables().objects[path]


def test_the_id_of_a_resource_is_an_element() -> None:
    assert element("Patient", "id").order == 0


def test_only_the_url_of_an_extension_is_an_attribute() -> None:
    assert "url" not in tables().objects["Extension"]
    assert element("ValueSet", "url").type == "uri"


def test_resources_without_a_schema_here_are_known() -> None:
    assert {"Patient", "Bundle", "VisionPrescription"} <= tables().resources
    assert "HumanName" not in tables().resources


def test_the_tables_are_read_once() -> None:
    assert tables() is tables()
