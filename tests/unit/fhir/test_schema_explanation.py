"""What the slow engine says of each kind of mistake, where, and with what advice."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import MAX_ISSUES
from fhirpub.fhir.explanation.unknown_names import MAX_SUGGESTIONS
from fhirpub.fhir.schema import own_schemas
from fhirpub.problems import ContentProblem

SCHEMAS = own_schemas()
WHY: dict[str, Any] = {"extension": [{"url": "https://lab.example/why", "valueCode": "masked"}]}
CONCEPT = '{"coding": [{"system": "...", "code": "..."}], "text": "..."}'
ARRAY = "must be an array, because it may repeat"
DATE = "must be a valid date: YYYY, YYYY-MM or YYYY-MM-DD"
INTEGER = "must be a valid integer: a whole number of 32 bits, without fraction or exponent"
STRING = (
    "must be a valid string: 1 to 1,048,576 characters, no control characters but tab, CR and LF"
)
DECIMAL = "must be a valid decimal: a number, without quotation marks"
CODE = "must be a valid code: one of male, female, other, unknown"
UNKNOWN = "has properties that FHIR R4 does not have here: "
POSITION = "needs a value or an extension at each position, and as many values as siblings"
LONG = [letter * 64 for letter in "abcd"]
ONE_FORM = "must be given in one of its forms only: leave out the others"


def patient(**elements: Any) -> dict[str, Any]:
    return {"resourceType": "Patient", **elements}


def observation(**elements: Any) -> dict[str, Any]:
    code = {"text": "Glucose"}
    return {"resourceType": "Observation", "status": "final", "code": code, **elements}


def explained(resource: dict[str, Any]) -> list[tuple[str, str]]:
    found = SCHEMAS.explain(resource["resourceType"], resource)
    return [(issue.expression, issue.diagnostics or "") for issue in found]


@pytest.mark.parametrize(
    ("elements", "place", "said"),
    [
        ({"name": "A"}, "name", f'{ARRAY}, such as [{{"family": "...", "given": ["..."]}}]'),
        ({"name": 7}, "name", f'{ARRAY}, such as [{{"family": "...", "given": ["..."]}}]'),
        ({"name": {"family": "A"}}, "name", f"{ARRAY}: put [ ] around it"),
        ({"link": ["A"]}, "link[0]", "must be an object"),
        ({"maritalStatus": "S"}, "maritalStatus", f"must be an object, such as {CONCEPT}"),
        ({"maritalStatus": [{}]}, "maritalStatus", "must not be an array: leave out the [ ]"),
        ({"name": []}, "name", "must not be an empty array"),
        ({"name": [{}]}, "name[0]", "must not be an empty object"),
        ({"name": [{"id": "a"}]}, "name[0]", "needs more than an id"),
        ({"name": [None]}, "name[0]", "must not be null: leave it out"),
        ({"name": None}, "name", "must not be null: leave it out"),
    ],
)
def test_another_shape_is_explained(elements: dict[str, Any], place: str, said: str) -> None:
    assert explained(patient(**elements)) == [(place, said)]


@pytest.mark.parametrize(
    ("elements", "place", "said"),
    [
        ({"birthDate": {"x": 1}}, "birthDate", f"{DATE}; here is an object"),
        ({"birthDate": ["1984"]}, "birthDate", f"{DATE}; here is an array"),
        ({"birthDate": 1984}, "birthDate", f"{DATE}; in quotation marks"),
        ({"birthDate": ""}, "birthDate", DATE),
        ({"gender": "Male"}, "gender", f"{CODE}; did you mean male?"),
        ({"gender": ""}, "gender", CODE),
        ({"multipleBirthInteger": "2"}, "multipleBirth", f"{INTEGER}; without quotation marks"),
        ({"multipleBirthInteger": 2.0}, "multipleBirth", INTEGER),
        ({"multipleBirthInteger": True}, "multipleBirth", INTEGER),
        ({"name": [{"family": "x" * 1_048_577}]}, "name[0].family", STRING),
        ({"name": [{"family": "\u0001"}]}, "name[0].family", STRING),
    ],
)
def test_another_value_is_explained(elements: dict[str, Any], place: str, said: str) -> None:
    assert explained(patient(**elements)) == [(place, said)]


@pytest.mark.parametrize("value", ["5", True, float("inf"), float("nan")])
def test_a_decimal_that_is_none_is_explained(value: Any) -> None:
    found = explained(observation(valueQuantity={"value": value}))

    assert found == [("value.value", DECIMAL)]


def test_a_document_that_is_no_base64_is_explained() -> None:
    ((place, said),) = explained(patient(photo=[{"data": "AAA"}]))

    assert place == "photo[0].data"
    assert said.endswith("its length is no multiple of 4: it is cut short, or lacks = at its end")


def test_each_required_element_is_named_at_its_place() -> None:
    found = explained({"resourceType": "Observation"})

    assert found == [("code", "is required"), ("status", "is required")]


def test_a_required_choice_is_named_by_its_stem() -> None:
    person = {"reference": "Patient/p"}
    order = {"resourceType": "MedicationRequest", "status": "active", "intent": "order"}

    found = explained({**order, "subject": person})

    assert found == [("medication", "is required, in one of its forms")]


def test_two_forms_of_a_choice_are_one_problem() -> None:
    elements = {"deceasedBoolean": True, "deceasedDateTime": "2020"}

    assert explained(patient(**elements)) == [("deceased", ONE_FORM)]


def test_a_sibling_without_a_value_needs_an_extension() -> None:
    assert explained(patient(_birthDate={"id": "a"})) == [("birthDate", POSITION)]


def test_more_siblings_than_values_are_reported_at_the_values() -> None:
    name = {"given": ["A"], "_given": [WHY, WHY]}

    assert explained(patient(name=[name])) == [("name[0].given", POSITION)]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["gendr"], "gendr; did you mean gender?"),
        (["zzz"], "zzz; leave it out, or send it as an extension"),
        (["<x>", "gendr"], "gendr and 1 more; did you mean gender?"),
    ],
)
def test_unknown_names_are_named_with_what_was_meant(names: list[str], said: str) -> None:
    found = explained(patient(**dict.fromkeys(names, 1)))

    assert found == [("", UNKNOWN + said)]


def test_only_the_first_problems_get_a_suggestion() -> None:
    names = [{"famly": "A"} for _ in range(MAX_SUGGESTIONS + 2)]

    found = explained(patient(name=names))

    advised = [said.endswith("; did you mean family?") for _, said in found]
    assert advised == [*[True] * MAX_SUGGESTIONS, False, False]


@pytest.mark.parametrize("place", [0, 7, 8, 9, 16, 20, 39])
def test_a_wrong_item_of_a_long_array_is_found_at_its_place(place: int) -> None:
    parts: list[Any] = [{"code": {"text": "Glucose"}} for _ in range(40)]
    parts[place] = {"code": 7}

    ((at, said),) = explained(observation(component=parts))

    assert at == f"component[{place}].code"
    assert said == f"must be an object, such as {CONCEPT}"


def test_wrong_items_of_a_long_array_are_found_in_their_order() -> None:
    names: list[Any] = [{"family": "A"} for _ in range(40)]
    for place in (3, 12, 30):
        names[place] = {}

    found = [at for at, _ in explained(patient(name=names))]

    assert found == ["name[3]", "name[12]", "name[30]"]


def test_a_gap_in_a_long_array_is_no_problem_beside_another() -> None:
    values = [*["A"] * 9, None, 7]
    siblings = [*[None] * 9, WHY, None]

    found = explained(patient(name=[{"given": values, "_given": siblings}]))

    assert found == [("name[0].given[10]", f"{STRING}; in quotation marks")]


@pytest.mark.parametrize(("count", "expected"), [(99, 99), (100, 100), (101, 100)])
def test_problems_are_explained_up_to_the_limit(count: int, expected: int) -> None:
    assert MAX_ISSUES == 100
    assert len(explained(patient(name=[{}] * count))) == expected


def test_problems_at_places_too_long_to_show_end_after_a_few() -> None:
    url = "https://lab.example/x"
    nested: list[Any] = [{"url": url, "valueString": ""} for _ in range(40)]
    for _ in range(25):
        nested = [{"url": url, "extension": nested}]

    (place, said), *others = explained(patient(extension=nested))

    assert 280 < len(place) <= 300
    assert (said, others) == ("must not be an empty string: leave it out", [])


def test_the_kind_of_each_problem_is_its_details() -> None:
    wrong = patient(gender="x", birthDate="x", name=[{}], zzz=1)

    found = SCHEMAS.explain("Patient", wrong)

    assert {issue.expression: issue.details for issue in found} == {
        "gender": ContentProblem.CODE_NOT_ALLOWED,
        "birthDate": ContentProblem.TIME_INVALID,
        "name[0]": ContentProblem.VALUE_EMPTY,
        "": ContentProblem.ELEMENT_UNKNOWN,
    }


def test_two_explanations_at_a_time_do_not_disturb_each_other() -> None:
    one = SCHEMAS.explain("Patient", patient(name=[{}, {}]))
    other = SCHEMAS.explain("Patient", patient(address=[{}, {}]))

    in_turns = [next(each).expression for each in (one, other, one, other)]

    assert in_turns == ["name[0]", "address[0]", "name[1]", "address[1]"]


@pytest.mark.parametrize(
    ("path", "expression"),
    [
        (["name", 0, "_given", 1], "name[0].given[1]"),
        (["valueQuantity", "value"], "value.value"),
        (["_effectiveDateTime"], "effective"),
        (["name", "<x>", "given"], "name"),
        ([], ""),
        ([*LONG, "e" * 39], ".".join([*LONG, "e" * 39])),
        ([*LONG, "e" * 40], ".".join(LONG)),
    ],
)
def test_a_path_of_json_is_shown_as_fhirpath(path: list[str | int], expression: str) -> None:
    assert SCHEMAS._explainer.expression(path) == expression
