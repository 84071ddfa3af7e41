"""Which name was meant, for the first few problems of a body, whatever the body."""

from __future__ import annotations

import pytest

from fhirpub.errors import InvalidContent
from fhirpub.fhir.explanation.unknown_names import (
    MAX_SUGGESTIONS,
    describe_unknown_names,
    suggest_name,
)
from fhirpub.fhir.schema import Schemas, own_schemas
from fhirpub.fhir.strict_json import dumps
from fhirpub.fhir.xml.reader import read_xml

KNOWN = ["conclusion", "conclusionCode", "effectiveDateTime", "effectivePeriod", "status"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("conclusions", "conclusion"),
        ("Conclusion", "conclusion"),
        ("conclusion_code", "conclusionCode"),
        ("effectiveDatetime", "effectiveDateTime"),
        ("effective", "effectiveDateTime"),
        ("staus", "status"),
    ],
)
def test_the_nearest_name_is_suggested(name: str, meant: str) -> None:
    assert suggest_name([name], KNOWN) == f"; did you mean {meant}?"


@pytest.mark.parametrize("name", ["firstName", "x", "", "status\n", "a" * 65, "Conclusión"])
def test_nothing_is_suggested_for_another_name(name: str) -> None:
    assert suggest_name([name], KNOWN) == ""


def test_the_first_of_three_names_that_is_near_to_one_gets_the_suggestion() -> None:
    assert suggest_name(["zzz", "staus", "aaa"], KNOWN) == "; did you mean status?"
    assert suggest_name(["staus", "aaa", "bbb", "ccc"], KNOWN) == ""


def test_a_name_that_begins_with_an_underscore_is_not_compared() -> None:
    assert suggest_name(["_status"], KNOWN) == ""


def test_unknown_names_are_listed_in_order() -> None:
    assert describe_unknown_names("elements", ["b", "a"]) == (
        "has elements that FHIR R4 does not have here: a, b"
    )


def test_only_how_many_there_are_is_named_of_what_is_no_plain_name() -> None:
    assert describe_unknown_names("elements", ["Juan Pérez", "a", "x y"]) == (
        "has elements that FHIR R4 does not have here: a and 2 more"
    )


def test_ten_names_are_listed_and_the_others_counted() -> None:
    names = [f"n{number}" for number in range(12)]

    assert describe_unknown_names("properties", names).endswith(
        "here: n0, n1, n10, n11, n2, n3, n4, n5, n6, n7 and 2 more"
    )


def test_names_of_which_none_is_plain_are_not_repeated() -> None:
    assert describe_unknown_names("properties", ["x y", "ä"]) == "has unknown properties"


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return own_schemas()


def test_few_problems_of_a_body_get_a_suggestion(schemas: Schemas) -> None:
    patient = {"resourceType": "Patient", "name": [{"famili": str(n)} for n in range(40)]}

    problems = list(schemas.problems("Patient", patient))

    suggested = [problem for problem in problems if "did you mean family?" in problem.diagnostics]
    assert len(problems) == 40
    assert len(suggested) == MAX_SUGGESTIONS


def test_few_problems_of_a_body_of_xml_get_a_suggestion() -> None:
    names = "".join(f'<name><famili value="{n}"/></name>' for n in range(40))

    with pytest.raises(InvalidContent) as raised:
        read_xml(f'<Patient xmlns="http://hl7.org/fhir">{names}</Patient>'.encode())

    issues = raised.value.issues
    assert sum("did you mean family?" in issue.diagnostics for issue in issues) == MAX_SUGGESTIONS
    assert {issue.details for issue in issues} == {"element-unknown"}


def test_no_name_of_a_patient_is_repeated(schemas: Schemas) -> None:
    patient = {"resourceType": "Patient", "Juan Pérez": "x"}

    (problem,) = schemas.problems("Patient", patient)

    assert "Juan" not in dumps([problem.diagnostics, problem.expression]).decode()
