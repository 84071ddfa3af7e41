"""Values that the schemas of R4 accept or refuse, and the text of the refusal."""

from __future__ import annotations

import json
import tracemalloc
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from fhirpub.errors import MAX_ISSUES, ConfigurationError, Issue
from fhirpub.fhir.definitions.schema_documents import documents, forms_of_choices
from fhirpub.fhir.schema import Schemas, own_schemas, schema_problems
from fhirpub.fhir.strict_json import loads
from fhirpub.problems import ContentProblem
from tests.unit.fhir.wrong_elements import (
    ADVICE,
    CODE,
    EXTENSION,
    PAIRED,
    STRING,
    UNKNOWN,
    patient,
)

SCHEMAS = own_schemas()
ORDINARY = Path(__file__).parents[3] / "schemas" / "source" / "fhir_r4_elements.json"
UCUM = "http://unitsofmeasure.org"
SECRET = "Quixote\u0001"


def report(**elements: Any) -> dict[str, Any]:
    required = {"status": "final", "code": {"text": "Blood count"}}
    return {"resourceType": "DiagnosticReport", **required, **elements}


def problems_of(resource: dict[str, Any]) -> list[tuple[str, str]]:
    """The place and sentence of every problem; both engines are asked."""
    problems = [*SCHEMAS.problems(resource["resourceType"], resource)]
    assert SCHEMAS.accepts(resource["resourceType"], resource) == (problems == [])
    return [(problem.expression, problem.diagnostics) for problem in problems]


@pytest.mark.parametrize(
    "elements",
    [
        {},
        {"birthDate": "1980-02-03", "gender": "unknown", "active": False},
        {"name": [{"given": ["A", None], "_given": [None, EXTENSION]}]},
        {"name": [{"_given": [EXTENSION]}]},
        {"_birthDate": EXTENSION},
        {"birthDate": "1980", "_birthDate": {"id": "b", **EXTENSION}},
        {
            "birthDate": "1980",
            "_birthDate": {"extension": [{"url": "u", "_valueCode": EXTENSION}]},
        },
        {"birthDate": "1980", "_birthDate": {"id": "b"}},
        {"name": [{"given": ["A", "B"], "_given": [{"id": "a"}, None]}]},
        {"link": [{"other": {"reference": "Patient/2"}, "_type": EXTENSION}]},
        {"contained": [{"resourceType": "Media", "note": [{"text": "?"}], "n": [None, 1]}]},
        {"multipleBirthInteger": 2},
        {"photo": [{"data": "a" * 2_000_000}]},
        {"name": [{"text": "line one\r\n\tline two \u00a0 \u2028"}]},
        {"name": [{"text": "x" * 1_048_576}]},
    ],
)
def test_a_valid_patient_has_no_problems(elements: dict[str, Any]) -> None:
    assert problems_of(patient(**elements)) == []


@pytest.mark.parametrize(
    "time",
    [
        *("2024", "2024-02", "2024-02-29", "2024-02-29T10:20:30Z", "2024-02-29T23:59:60+14:00"),
        *("2024-02-29T10:20:30.123456789Z", "2024-02-29T10:20:30.5-03:30", "2000-02-29"),
    ],
)
def test_a_date_time_of_the_calendar_is_taken(time: str) -> None:
    assert problems_of(report(effectiveDateTime=time)) == []
    assert problems_of(report(issued=time)) == [] or "T" not in time


@pytest.mark.parametrize(
    "time",
    [
        *("", "0000", "24", "2024-13", "2024-02-32", "2024-02-29T", "2024-02-29T10:20"),
        *("2024-02-29T24:00:00Z", "2024-02-29T10:20:61Z", "2024-02-29T10:20:30z", "2024\n"),
        *("2024-02-29T10:20:30+15:00", "2024-02-29 10:20:30Z", "2024-02-29T10:20:30.Z"),
        *("2024-02-29T10:20:30", "2023-02-29", "1900-02-29", "2024-02-30", "2024-04-31"),
        *("\u0662\u0660\u0662\u0664", " 2024", "2024-02-29T10:20:30Z\n", "2024-02-29Z"),
    ],
)
def test_a_date_time_of_another_shape_is_refused(time: str) -> None:
    [(place, sentence)] = problems_of(report(effectiveDateTime=time))

    assert place == "effective"
    assert sentence.startswith("must be a valid dateTime: YYYY, ")


@pytest.mark.parametrize(
    "number", [2.0, Decimal("2.0"), Decimal(2), 2**31, -(2**31) - 1, True, "2"]
)
def test_what_is_not_written_as_an_integer_of_32_bits_is_none(number: object) -> None:
    [(place, sentence)] = problems_of(patient(multipleBirthInteger=number))

    assert place == "multipleBirth"
    assert sentence.startswith(
        "must be a valid integer: a whole number of 32 bits, without fraction or exponent"
    )


@pytest.mark.parametrize("number", [2, 2.5, Decimal("2.50"), Decimal("1E-400"), 10**40])
def test_a_decimal_is_any_number(number: object) -> None:
    quantity = {"resourceType": "Observation", "status": "final", "code": {"text": "x"}}

    assert problems_of({**quantity, "valueQuantity": {"value": number}}) == []


@pytest.mark.parametrize("number", [float("nan"), float("inf"), Decimal("NaN"), "2.5", "5", True])
def test_a_decimal_is_nothing_but_a_number(number: object) -> None:
    quantity = {"resourceType": "Observation", "status": "final", "code": {"text": "x"}}

    assert problems_of({**quantity, "valueQuantity": {"value": number}}) == [
        ("value.value", "must be a valid decimal: a number, without quotation marks")
    ]


ID = "must be a valid id: 1 to 64 of the characters A-Z, a-z, 0-9, hyphen and full stop"
KIND = "must be a valid resourceType: a resource type of FHIR R4"


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ({"gender": "x"}, ("gender", CODE)),
        ({"gender": None}, ("gender", "must not be null: leave it out")),
        ({"name": {"family": "A"}},
         ("name", "must be an array, because it may repeat: put [ ] around it")),
        ({"name": []}, ("name", "must not be an empty array")),
        ({"name": [{}]}, ("name[0]", "must not be an empty object")),
        ({"name": [{"id": "1"}]}, ("name[0]", "needs more than an id")),
        ({"name": [{"family": ""}]},
         ("name[0].family", "must not be an empty string: leave it out")),
        ({"name": [{"family": "A\u0000"}]}, ("name[0].family", STRING)),
        ({"name": [{"family": "x" * 1_048_577}]}, ("name[0].family", STRING)),
        ({"name": [{"given": ["A", None]}]},
         ("name[0].given[1]", "must not be null: leave it out")),
        ({"name": ["A"]},
         ("name[0]", 'must be an object, such as {"family": "...", "given": ["..."]}')),
        ({"maritalStatus": [{"text": "?"}]},
         ("maritalStatus", "must not be an array: leave out the [ ]")),
        ({"id": "a\n"}, ("id", ID)),
        ({"link": [{"type": "seealso"}]}, ("link[0].other", "is required")),
        ({"link": [{"other": {"display": "?"}}]}, ("link[0].type", "is required")),
        ({"deceasedBoolean": True, "deceasedDateTime": "2020"},
         ("deceased", "must be given in one of its forms only: leave out the others")),
        ({"deceasedBoolean": True, "_deceasedDateTime": EXTENSION},
         ("deceased", "must be given in one of its forms only: leave out the others")),
        ({"extension": [{"url": "u", "_valueCode": EXTENSION, "_valueString": EXTENSION}]},
         ("extension[0].value", "must be given in one of its forms only: leave out the others")),
        ({"extension": [{"valueString": "x"}]}, ("extension[0].url", "is required")),
        ({"extension": [{"url": "u", "_url": EXTENSION}]},
         ("extension[0]", f"{UNKNOWN}_url{ADVICE}")),
        ({"_birthDate": {"id": "1"}}, ("birthDate", PAIRED)),
        ({"name": [{"given": ["A"], "_given": [EXTENSION, EXTENSION]}]},
         ("name[0].given", PAIRED)),
        ({"name": [{"given": ["A", None], "_given": [EXTENSION, {"id": "b"}]}]},
         ("name[0].given", PAIRED)),
        ({"name": [{"given": [None], "_given": [EXTENSION]}]},
         ("name[0].given", "must hold at least one item that is not null")),
        ({"_birthDate": {"extension": [{"url": ""}]}},
         ("birthDate.extension[0].url", "must not be an empty string: leave it out")),
        ({"contained": [{"resourceType": "Media", "note": [None]}]},
         ("contained[0].note", "must hold at least one item that is not null")),
        ({"contained": [{"resourceType": "Media", "note": ""}]},
         ("contained[0].note", "must not be an empty string: leave it out")),
        ({"contained": [{"resourceType": "Media", "note": SECRET}]},
         ("contained[0].note", STRING)),
        ({"contained": [{"resourceType": "Media", "note": {"a b": {}}}]},
         ("contained[0].note", "must not be an empty object")),
        ({"contained": [{"resourceType": "Nothing"}]},
         ("contained[0].resourceType", KIND)),
        ({"contained": [{"id": "1"}]}, ("contained[0].resourceType", "is required")),
        ({"contained": [7]}, ("contained[0]", "must be an object")),
    ],
)  # fmt: skip
def test_a_problem_is_reported_with_its_place(
    elements: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert problems_of(patient(**elements)) == [expected]


def test_every_problem_is_reported_at_once() -> None:
    wrong = {
        "resourceType": "Parameters",
        "parameter": [{"name": "a", "resource": patient(gender="x")}, {"valueString": "b"}],
        "more": 1,
    }

    assert sorted(place for place, _ in problems_of(wrong)) == [
        *("", "parameter[0].resource.gender", "parameter[1].name"),
    ]


@pytest.mark.parametrize(
    ("missing", "others"),
    [
        ({}, []),
        (
            {"_medicationReference": EXTENSION},
            [
                (
                    "",
                    f"{UNKNOWN}_medicationReference{ADVICE}",
                )
            ],
        ),
    ],
)
def test_a_required_choice_is_missed(
    missing: dict[str, Any], others: list[tuple[str, str]]
) -> None:
    ordered = {"resourceType": "MedicationRequest", "status": "active", "intent": "order"}

    problems = problems_of({**ordered, "subject": {"display": "?"}, **missing})

    assert problems == [("medication", "is required, in one of its forms"), *others]


def request(**elements: Any) -> dict[str, Any]:
    required = {"status": "active", "intent": "order", "subject": {"display": "Ana"}}
    return {"resourceType": "ServiceRequest", **required, **elements}


@pytest.mark.parametrize(
    ("elements", "place"),
    [
        ({"quantityQuantity": {"value": 3, "code": "mg"}}, "quantity.system"),
        ({"extension": [{"url": "urn:x", "valueAge": {"value": 3}}]}, "extension[0].value.code"),
        ({"quantityRatio": {"numerator": {"value": 1}}}, "quantity.denominator"),
        ({"quantityRatio": {"denominator": {"value": 1}}}, "quantity.numerator"),
        ({"occurrenceTiming": {"repeat": {"period": 1}}}, "occurrence.repeat.periodUnit"),
        ({"occurrenceTiming": {"repeat": {"offset": 30}}}, "occurrence.repeat.when"),
        ({"orderDetail": [{"text": "Fasting"}]}, "code"),
    ],
)
def test_the_sibling_that_an_element_requires_is_reported_as_missing(
    elements: dict[str, Any], place: str
) -> None:
    assert problems_of(request(**elements)) == [(place, "is required")]


def test_what_an_element_needs_may_be_an_extension() -> None:
    quantity = {"value": 3, "code": "mg", "_system": EXTENSION}

    assert problems_of(request(quantityQuantity=quantity)) == []


OF_AN_ORGANIZATION: list[tuple[dict[str, Any], str, str]] = [
    ({"alias": ["NQ"]}, "", "must have name or identifier (org-1)"),
    ({"name": "NQ", "address": [{"use": "home"}]}, "address[0].use", "must not be home (org-2)"),
    ({"name": "NQ", "telecom": [{"use": "home"}]}, "telecom[0].use", "must not be home (org-3)"),
]


@pytest.mark.parametrize(("elements", "place", "sentence"), OF_AN_ORGANIZATION)
def test_invariants_of_organizations_are_reported_by_their_keys(
    elements: dict[str, Any], place: str, sentence: str
) -> None:
    resource = {"resourceType": "Organization", **elements}

    assert problems_of(resource) == [(place, sentence)]


def test_what_must_be_there_may_be_an_extension_alone() -> None:
    assert problems_of({"resourceType": "Organization", "_name": EXTENSION}) == []


@pytest.mark.parametrize("value", [{"valueString": "x"}, {"_valueString": EXTENSION}])
def test_a_reason_for_absence_with_a_value_is_reported(value: dict[str, Any]) -> None:
    code = {"text": "x"}
    resource = {"resourceType": "Observation", "status": "final", "code": code, **value}

    sentence = "must not stand beside value (obs-6)"
    assert problems_of({**resource, "dataAbsentReason": code}) == [("dataAbsentReason", sentence)]


NA = {"system": "http://loinc.org", "code": "2951-2"}
K = {"system": "http://loinc.org", "code": "2823-3"}


@pytest.mark.parametrize(
    ("value", "codings", "places"),
    [
        ({"valueString": "x"}, [K, NA | {"display": "Na"}], ["value"]),
        ({"_valueString": EXTENSION}, [NA], ["value"]),
        ({"valueString": "x"}, [K, {"code": "2951-2"}, {"display": "Na"}], []),
        ({}, [NA], []),
    ],
)
def test_a_value_with_a_component_of_the_same_code_is_reported(
    value: dict[str, Any], codings: list[dict[str, str]], places: list[str]
) -> None:
    component = [{"code": {"text": "x"}}, {"code": {"coding": codings}}]
    code = {"coding": [{"display": "Na"}, NA]}
    resource = {"resourceType": "Observation", "status": "final", "code": code}

    sentence = "must not stand beside a component of the same code (obs-7)"
    assert problems_of({**resource, **value, "component": component}) == [
        (at, sentence) for at in places
    ]


OF_NO_CODE: list[dict[str, Any]] = [
    {"component": {}},
    {"component": 3},
    {"component": [None]},
    {"component": [{"code": 3}]},
    {"component": [{}]},
    {"code": []},
    {"code": {"coding": 3}},
    {"code": {"coding": [3]}},
    {"code": {"coding": [{"code": []}]}, "component": [{"code": {"coding": [{"code": {}}]}}]},
]


@pytest.mark.parametrize("changes", OF_NO_CODE)
def test_codes_that_are_none_are_reported_and_not_compared(changes: dict[str, Any]) -> None:
    resource = {"resourceType": "Observation", "status": "final", "code": {"coding": [NA]}}

    places = [
        place for place, _sentence in problems_of({**resource, "valueString": "x", **changes})
    ]

    assert places
    assert "value" not in places


@pytest.mark.parametrize("times", [{"timeOfDay": ["08:00:00"]}, {"_timeOfDay": [EXTENSION]}])
def test_elements_that_exclude_each_other_are_reported(times: dict[str, Any]) -> None:
    repeat = {**times, "when": ["MORN"]}

    sentence = "must not stand beside when (tim-10)"
    assert problems_of(request(occurrenceTiming={"repeat": repeat})) == [
        ("occurrence.repeat.timeOfDay", sentence)
    ]


OF_DATA_TYPES: list[tuple[str, dict[str, Any], str, str]] = [
    ("Timing", {"repeat": {"duration": -1, "durationUnit": "h"}}, ".repeat.duration", "tim-4"),
    (
        "Timing",
        {"repeat": {"period": Decimal("-0.5"), "periodUnit": "d"}},
        ".repeat.period",
        "tim-5",
    ),
    ("Expression", {"language": "text/cql"}, "", "exp-1"),
    ("Age", {"value": 0, "system": UCUM, "code": "a"}, ".value", "age-1"),
    ("Age", {"value": 1, "system": "urn:x", "code": "a"}, ".system", "age-1"),
    ("Count", {"value": Decimal("1.5"), "system": UCUM, "code": "1"}, ".value", "cnt-3"),
    ("Count", {"value": 1, "system": "urn:x", "code": "1"}, ".system", "cnt-3"),
    ("Count", {"value": 1, "system": UCUM, "code": "kg"}, ".code", "cnt-3"),
    ("Distance", {"value": 1, "system": "urn:x", "code": "m"}, ".system", "dis-1"),
    ("Duration", {"value": 1, "system": "urn:x", "code": "h"}, ".system", "drt-1"),
    ("Range", {"low": {"value": 1, "comparator": "<"}}, ".low.comparator", "sqty-1"),
    ("Range", {"high": {"value": 1, "comparator": "<"}}, ".high.comparator", "sqty-1"),
    (
        "Dosage",
        {"doseAndRate": [{"doseQuantity": {"value": 1, "comparator": "<"}}]},
        ".doseAndRate[0].dose.comparator",
        "sqty-1",
    ),
    (
        "DataRequirement",
        {"type": "Task", "codeFilter": [{"valueSet": "urn:x"}]},
        ".codeFilter[0]",
        "drq-1",
    ),
    (
        "DataRequirement",
        {"type": "Task", "dateFilter": [{"path": "for", "searchParam": "patient"}]},
        ".dateFilter[0].path",
        "drq-2",
    ),
    (
        "TriggerDefinition",
        {"type": "periodic", "timingDate": "2026", "data": [{"type": "Task"}]},
        ".data",
        "trd-1",
    ),
]


@pytest.mark.parametrize(("type_name", "value", "place", "key"), OF_DATA_TYPES)
def test_invariants_of_data_types_are_reported_by_their_keys(
    type_name: str, value: dict[str, Any], place: str, key: str
) -> None:
    [(at, sentence)] = problems_of(
        patient(extension=[{"url": "urn:x", f"value{type_name}": value}])
    )

    assert at == f"extension[0].value{place}"
    assert sentence.endswith(f" ({key})")


@pytest.mark.parametrize("period", [0, Decimal("-0.0"), Decimal("1E-30")])
def test_a_period_of_a_timing_may_be_anything_from_zero(period: Any) -> None:
    timing = {"repeat": {"period": period, "periodUnit": "d"}}

    assert problems_of(request(occurrenceTiming=timing)) == []


def test_unknown_properties_are_named_when_their_names_are_plain() -> None:
    [(place, sentence)] = problems_of(
        patient(beeta=1, lambda_=2, **{"Señor Gonzalez": 3, "x" * 65: 4})
    )

    assert place == ""
    named = "has properties that FHIR R4 does not have here: beeta, lambda_ and 2 more"
    assert sentence.startswith(named)


def test_a_property_whose_name_is_not_plain_is_not_named() -> None:
    assert problems_of(patient(**{"Señor Gonzalez": 3})) == [
        ("", f"has unknown properties{ADVICE}")
    ]


def test_problems_are_errors_of_the_code_exception() -> None:
    [issue] = SCHEMAS.problems("Patient", patient(gender="x"))

    assert (issue.severity, issue.code) == ("error", "exception")


def test_a_resource_of_another_type_is_refused() -> None:
    assert [*SCHEMAS.problems("Organization", patient(identifier=[{"value": "1"}]))] == [
        Issue(
            "error",
            "exception",
            "must be a valid resourceType: Organization",
            "resourceType",
            ContentProblem.VALUE_INVALID,
        )
    ]


def test_no_sentence_repeats_a_value() -> None:
    wrong = dict.fromkeys(("gender", "birthDate", "name", "contact", "link", "active"), SECRET)
    nested = {"resourceType": "Media", "note": [SECRET], "text": SECRET, "meta": SECRET}
    choice = {"deceasedBoolean": SECRET, "deceasedDateTime": SECRET, "extension": [{"valueA": 1}]}

    problems = [
        *SCHEMAS.problems("Patient", patient(**wrong, **choice, contained=[nested, SECRET]))
    ]

    assert len(problems) > 10
    assert not [problem for problem in problems if "Quixote" in repr(problem)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([{}] * 99, 99),
        ([{}] * 100, 100),
        ([{}] * 101, 100),
        ([{"use": f"x{n}"} for n in range(150)], 100),
    ],
    ids=["99", "100", "101", "150"],
)
def test_no_more_than_a_hundred_problems_are_reported(
    names: list[dict[str, str]], expected: int
) -> None:
    assert MAX_ISSUES == 100
    assert len(problems_of(patient(name=names))) == expected


def test_a_problem_behind_many_values_is_described() -> None:
    names = [{"family": "A"} for _ in range(20_000)]

    problems = problems_of(patient(name=[*names, {"family": 1}]))

    assert [place for place, _sentence in problems] == ["name[20000].family"]
    assert "must be a valid string" in problems[0][1]


def test_a_problem_that_takes_too_much_work_to_find_is_reported_where_it_is_nested() -> None:
    problem: dict[str, Any] = {"url": "u", "valueInteger": "x"}
    for _ in range(28):  # the values next to the problem are visited at every level
        problem = {"url": "u", "extension": [*[{"url": "u", "valueCode": "a"}] * 1_000, problem]}

    [issue] = SCHEMAS.problems("Patient", patient(extension=[problem]))

    assert issue.diagnostics.startswith("is not valid FHIR R4")
    assert issue.expression.startswith("extension[0].extension[1000].extension[1000]")


def test_a_place_has_at_most_some_hundred_characters() -> None:
    problem: dict[str, Any] = {"url": "u", "valueInteger": "x"}
    for _ in range(50):
        problem = {"url": "u", "extension": [problem]}

    [issue] = SCHEMAS.problems("Patient", patient(extension=[problem]))

    assert len(issue.expression) <= 300


@pytest.mark.parametrize(
    "broken",
    [
        {"extension": [{}] * 20_000},
        {"name": [{"use": "x"}] * 20_000},
        {f"unknown{number}": 1 for number in range(20_000)},
        {"name": [{"given": [*["a"] * 50_000, 1]}]},
    ],
    ids=["empty extensions", "wrong codes", "unknown names", "a long array"],
)
def test_explaining_takes_memory_for_a_hundred_problems_whatever_the_resource(
    broken: dict[str, Any],
) -> None:
    resource = patient(**broken)
    tracemalloc.start()
    try:
        problems = [*SCHEMAS.problems("Patient", resource)]
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 1 <= len(problems) <= 100
    assert peak < 8_000_000  # a weight for each value, and the problems


def test_resources_within_resources_end_in_a_refusal_not_in_a_crash() -> None:
    deepest = patient(gender="x")
    for _ in range(31):
        deepest = {"resourceType": "ServiceRequest", "contained": [deepest]}

    assert problems_of(patient(contained=[deepest]))


def test_a_lone_surrogate_is_refused() -> None:
    assert [*SCHEMAS.problems("Patient", patient(name=[{"family": "\ud800"}]))] == [
        Issue.error(ContentProblem.ELEMENT_MALFORMED, "the resource is not valid FHIR R4")
    ]


def test_the_types_with_element_tables_are_known_and_others_are_not() -> None:
    assert SCHEMAS.knows("DiagnosticReport")
    assert not SCHEMAS.knows("Media")
    assert not SCHEMAS.knows("Resource")
    assert not SCHEMAS.accepts("Media", {"resourceType": "Media"})


def test_no_form_of_a_choice_is_also_the_name_of_an_element() -> None:
    forms = dict(forms_of_choices(list(documents({}).values())))
    tables = json.loads(ORDINARY.read_bytes())["types"].values()
    names = {
        element["path"].rpartition(".")[2] for table in tables for element in table["elements"]
    }

    assert forms["valueString"] == forms["_valueString"] == "value"
    assert not forms.keys() & names


MEDIA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "resourceType": {"const": "Media"},
        "type": {"$ref": "urn:fhirpub:schemas:r4:datatypes#/$defs/CodeableConcept"},
        "size": {"oneOf": [{"type": "string"}, {"enum": [1]}]},
    },
    "required": ["resourceType"],
    "additionalProperties": False,
}


def test_a_plugin_may_bring_a_type_that_is_then_known_wherever_it_stands() -> None:
    schemas = Schemas({"Media": MEDIA})
    wrong = {"resourceType": "Media", "type": {"coding": []}, "size": 2}

    alone = [*schemas.problems("Media", wrong)]
    contained = [*schemas.problems("Patient", patient(contained=[wrong]))]

    assert schemas.knows("Media")
    assert [*schemas.problems("Media", {"resourceType": "Media", "size": 1})] == []
    assert {issue.expression for issue in alone} == {"type.coding", "size"}
    assert [issue.below("contained[0]") for issue in alone] == contained


@pytest.mark.parametrize(
    ("type_name", "document", "problem"),
    [
        ("Patient", MEDIA, "there is a schema for Patient already"),
        ("Substance", MEDIA, "needs the $id urn:fhirpub:schemas:r4:Substance"),
        ("Media", {**MEDIA, "$id": "urn:other"}, "needs the $id"),
        ("Media", {**MEDIA, "type": 7}, "the schemas cannot be compiled"),
        ("Media", {**MEDIA, "anyOf": [{"$ref": "urn:none"}]}, "cannot be compiled"),
        ("Media", {**MEDIA, "pattern": "("}, "cannot be compiled"),
    ],
)
def test_a_plugins_schema_that_cannot_be_used_stops_the_start(
    type_name: str, document: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Schemas({type_name: document})

    assert problem in str(refused.value)


@pytest.mark.parametrize("text", ["1e+2", "0.0000001", "1.0E1", "1.50"])
def test_a_number_is_accepted_however_it_was_written(text: str) -> None:
    value = loads(f'{{"value": {text}}}'.encode())
    observation = {"resourceType": "Observation", "status": "final", "code": {"text": "x"}}

    assert own_schemas().accepts("Observation", {**observation, "valueQuantity": value})
    assert own_schemas().accepts_primitive("decimal", value["value"])


def test_each_place_where_a_document_is_no_schema_is_named() -> None:
    found = schema_problems("Goal", {"properties": {"a": {"type": 5}, "b": {"enum": 5}}})

    assert sorted(said.partition(":")[0] for said in found) == [
        f"the schema for Goal is not a JSON Schema at properties.{place}"
        for place in ("a.type", "b.enum")
    ]
