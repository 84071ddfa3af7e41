"""How the slow engine explains each kind of mistake: where, and with what advice."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.fhir.explanation import work
from fhirpub.fhir.explanation.unknown_names import MAX_SUGGESTIONS
from fhirpub.fhir.schema import own_schemas
from fhirpub.problems import ContentProblem
from tests.unit.fhir.wrong_elements import CODE, EXTENSION, PAIRED, STRING, UNKNOWN, patient

SCHEMAS = own_schemas()
CONCEPT = '{"coding": [{"system": "...", "code": "..."}], "text": "..."}'
ARRAY = "must be an array, because it may repeat"
DATE = "must be a valid date: YYYY, YYYY-MM or YYYY-MM-DD"
INTEGER = "must be a valid integer: a whole number of 32 bits, without fraction or exponent"
EMPTY = "must not be an empty string: leave it out"
LONG = [letter * 64 for letter in "abcd"]


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
        ({"link": ["A"]}, "link[0]", "must be an object"),
        ({"maritalStatus": "S"}, "maritalStatus", f"must be an object, such as {CONCEPT}"),
        ({"maritalStatus": [{}]}, "maritalStatus", "must not be an array: leave out the [ ]"),
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
        ({"name": [{"family": "\u0001"}]}, "name[0].family", STRING),
    ],
)
def test_another_value_is_explained(elements: dict[str, Any], place: str, said: str) -> None:
    assert explained(patient(**elements)) == [(place, said)]


ONCE = "must be given in one of its forms only: leave out the others"


@pytest.mark.parametrize(
    ("elements", "place", "said"),
    [
        ({"name": []}, "name", "must not be an empty array"),
        ({"name": [{}]}, "name[0]", "must not be an empty object"),
        ({"name": [{"id": "a"}]}, "name[0]", "needs more than an id"),
        ({"name": [{"given": [""]}]}, "name[0].given[0]", EMPTY),
        ({"meta": {"profile": [None]}}, "meta.profile[0]", "must not be null: leave it out"),
        ({"_birthDate": {"id": "a"}}, "birthDate", PAIRED),
        ({"name": [{"given": ["A", "B"], "_given": [EXTENSION]}]}, "name[0].given", PAIRED),
        ({"deceasedBoolean": True, "deceasedDateTime": "2020"}, "deceased", ONCE),
        ({"link": [{"other": {"reference": "Patient/2"}}]}, "link[0].type", "is required"),
        ({"text": {"status": "generated"}}, "text.div", "is required"),
        ({"name": [{"text": "x" * 1_048_577}]}, "name[0].text", STRING),
        (
            {"contact": [{"gender": "male"}]},
            "contact[0]",
            "must have name, telecom, address or organization (pat-1)",
        ),
    ],
)
def test_a_rule_of_fhir_that_is_broken_is_explained(
    elements: dict[str, Any], place: str, said: str
) -> None:
    assert explained(patient(**elements)) == [(place, said)]


GLUCOSE = {"coding": [{"system": "http://loinc.org", "code": "2345-7"}]}


@pytest.mark.parametrize(
    ("elements", "place", "said"),
    [
        ({"valueQuantity": {"code": "mg"}}, "value.system", "is required"),
        (
            {"dataAbsentReason": {"text": "x"}, "valueString": "y"},
            "dataAbsentReason",
            "must not stand beside value (obs-6)",
        ),
        (
            {"code": GLUCOSE, "valueString": "x", "component": [{"code": GLUCOSE}]},
            "value",
            "must not stand beside a component of the same code (obs-7)",
        ),
    ],
)
def test_elements_that_need_or_exclude_each_other_are_explained(
    elements: dict[str, Any], place: str, said: str
) -> None:
    assert explained(observation(**elements)) == [(place, said)]


def test_a_required_choice_that_is_missing_is_explained() -> None:
    order = {"status": "active", "intent": "order", "subject": {"reference": "Patient/1"}}

    found = explained({"resourceType": "MedicationRequest", **order})

    assert found == [("medication", "is required, in one of its forms")]


def test_a_list_of_nothing_but_gaps_is_explained() -> None:
    found = explained(patient(name=[{"given": [None], "_given": [None]}]))

    assert found == [
        ("name[0].given", "must hold at least one item that is not null"),
        ("name[0].given", PAIRED),
    ]


def test_without_work_left_it_is_said_where_the_problem_is_nested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(work, "_MIN_WORK", 1)
    monkeypatch.setattr(work, "_WORK_PER_VALUE", 0)
    said = "is not valid FHIR R4 (the resource is too large to explain it)"
    long = patient(name=[*({"family": "A"} for _ in range(20)), {}])

    assert explained(patient(maritalStatus={"coding": [{"code": 5}]})) == [
        ("maritalStatus.coding[0]", said)
    ]
    assert explained(long) == [("name", said)]


def test_a_document_that_is_no_base64_is_explained() -> None:
    ((place, said),) = explained(patient(photo=[{"data": "AAA"}]))

    assert place == "photo[0].data"
    assert said.endswith("its length is no multiple of 4: it is cut short, or lacks = at its end")


def test_each_required_element_is_named_at_its_place() -> None:
    found = explained({"resourceType": "Observation"})

    assert found == [("code", "is required"), ("status", "is required")]


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
    siblings = [*[None] * 9, EXTENSION, None]

    found = explained(patient(name=[{"given": values, "_given": siblings}]))

    assert found == [("name[0].given[10]", f"{STRING}; in quotation marks")]


def test_problems_at_places_too_long_to_show_end_after_a_few() -> None:
    url = "https://lab.example/x"
    nested: list[Any] = [{"url": url, "valueString": ""} for _ in range(40)]
    for _ in range(25):
        nested = [{"url": url, "extension": nested}]

    (place, said), *others = explained(patient(extension=nested))

    assert 280 < len(place) <= 300
    assert (said, others) == ("must not be an empty string: leave it out", [])


def test_a_new_problem_at_a_place_too_long_to_show_lets_the_others_follow() -> None:
    url = "https://lab.example/x"
    same: list[Any] = [{"url": url, "valueString": ""} for _ in range(6)]
    wrong = ({"valueBoolean": 1}, {"valueInteger": 1.5}, {"valueUri": "a b"})
    nested = [item for value in wrong for item in (*same, {"url": url, **value})]
    for _ in range(25):
        nested = [{"url": url, "extension": nested}]

    found = [said.split(":")[0] for _, said in explained(patient(extension=nested))]

    kinds = ["boolean", "integer", "uri"]
    assert found == ["must not be an empty string", *(f"must be a valid {kind}" for kind in kinds)]


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
