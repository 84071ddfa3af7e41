"""Limits of XML on its way in: at each, and one beyond; and numbers that stay texts."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import Issue
from fhirpub.fhir.xml.reader import read_xml
from fhirpub.problems import ContentProblem
from tests.unit.fhir.xml.reading import refused, words, xml

MANY = "must not have more than 64 attributes"


@pytest.mark.parametrize(("many", "said"), [(64, "has attributes that"), (65, MANY)])
def test_an_element_has_at_most_64_attributes(many: int, said: str) -> None:
    attributes = " ".join(f'a{number}="b"' for number in range(many))

    [(place, words_of_it)] = words(xml(f'<name {attributes}><family value="a"/></name>'))

    assert place == "Patient.name[0]"
    assert words_of_it.startswith(said)


@pytest.mark.parametrize(("many", "expected"), [(64, []), (65, [("Patient.text.div", MANY)])])
def test_an_element_of_a_narrative_has_at_most_64_attributes(
    many: int, expected: list[tuple[str, str]]
) -> None:
    attributes = " ".join(f'a{number}="b"' for number in range(many))
    div = f'<div xmlns="http://www.w3.org/1999/xhtml"><b {attributes}/></div>'
    raw = xml(f'<text><status value="generated"/>{div}</text>')

    if expected:
        assert words(raw) == expected
    else:
        assert 'a63="b"' in read_xml(raw)["text"]["div"]


@pytest.mark.parametrize("quote", ['"', "'"])
def test_a_namespace_has_at_most_256_characters(quote: str) -> None:
    fits = xml("", more=f" xmlns:a={quote}{'u' * 256}{quote}")
    beyond = xml("", more=f" xmlns:a={quote}{'u' * 257}{quote}")

    assert read_xml(fits) == {"resourceType": "Patient"}
    assert words(beyond) == [("", "the body declares a namespace of more than 256 characters")]


def integer(text: str) -> Any:
    return read_xml(xml(f'<multipleBirthInteger value="{text}"/>'))["multipleBirthInteger"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("-5", -5),
        ("+5", 5),
        ("9" * 18, int("9" * 18)),
        ("9" * 19, "9" * 19),
        ("01", "01"),
        ("1.0", "1.0"),
        (" 1", " 1"),
        ("1\u0661", "1\u0661"),
        ("", ""),
    ],
)
def test_only_a_whole_number_becomes_one(text: str, expected: Any) -> None:
    assert integer(text) == expected
    assert type(integer(text)) is type(expected)


@pytest.mark.parametrize("text", ["", "True", "TRUE", "1", " true", "yes"])
def test_only_true_and_false_become_booleans(text: str) -> None:
    assert read_xml(xml(f'<active value="{text}"/>'))["active"] == text


def test_true_and_false_become_booleans() -> None:
    assert read_xml(xml('<active value="true"/>'))["active"] is True
    assert read_xml(xml('<active value="false"/>'))["active"] is False


@pytest.mark.parametrize("text", ["", "1.", ".5", "+1", "01", "NaN", "1e", " 1", "1,5"])
def test_a_decimal_in_another_form_stays_a_text(text: str) -> None:
    raw = xml(f'<valueQuantity><value value="{text}"/></valueQuantity>', name="Observation")

    assert read_xml(raw)["valueQuantity"]["value"] == text


@pytest.mark.parametrize("name", ["UTF-8", "utf-8", "UTF8", "utf8"])
def test_utf8_may_be_declared_in_any_letters(name: str) -> None:
    raw = xml("", head=f'<?xml version="1.0" encoding="{name}"?>')

    assert read_xml(raw) == {"resourceType": "Patient"}


def test_another_encoding_has_a_problem_of_its_own() -> None:
    [issue] = refused(xml("", head='<?xml version="1.0" encoding="US-ASCII"?>'))

    assert issue.details == ContentProblem.BODY_NOT_UTF8


def test_forms_of_one_choice_are_left_to_the_schema() -> None:
    raw = xml('<deceasedDateTime value="2020"/><deceasedBoolean value="true"/>')

    assert read_xml(raw) == {
        "resourceType": "Patient",
        "deceasedDateTime": "2020",
        "deceasedBoolean": True,
    }


def test_a_primitive_may_have_an_id_and_an_extension_beside_its_value() -> None:
    raw = xml('<gender id="a" value="male"><extension url="u:a"/></gender>')

    assert read_xml(raw)["gender"] == "male"
    assert read_xml(raw)["_gender"] == {"id": "a", "extension": [{"url": "u:a"}]}


def test_an_id_alone_is_no_value() -> None:
    [issue] = refused(xml('<gender id="a"/>'))

    assert issue == Issue.error(
        ContentProblem.VALUE_EMPTY, "needs a value or an extension", "Patient.gender"
    )


def test_a_name_nearly_right_is_suggested() -> None:
    [(_place, said)] = words(xml('<birthdate value="1980"/>'))

    assert said.endswith("; did you mean birthDate?")


def test_only_the_first_ten_problems_get_a_suggestion() -> None:
    found = words(xml("<contact><gendr/></contact>" * 12))

    assert [said.endswith("did you mean gender?") for _at, said in found] == [True] * 10 + [
        False,
        False,
    ]


def test_a_comment_between_elements_hides_no_text_behind_it() -> None:
    raw = xml('<active value="true"/><!-- a -->b')

    said = "must not hold text: FHIR's XML has values in attributes"
    assert words(raw) == [("Patient", said)]
