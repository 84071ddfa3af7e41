"""Elements of other types, statuses, and schemas that types bring together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import PluginError
from fhirpub.fhir.schema import own_schemas
from fhirpub.plugin_api import IdentifierRule, Part, SearchParameter
from fhirpub.plugin_host.schemas import _against, compile_schema, schema_and_element_problems
from tests.unit.plugin_host.test_schemas import FLAG, REPORT, with_schema


def problems(**fields: Any) -> list[str]:
    return _against(own_schemas(), replace(REPORT, **fields))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"times": ("status",)},
            "times: status is of type diagnostic-report-status, not dateTime or instant",
        ),
        (
            {"attachments": ("code",)},
            "attachments: code is of type CodeableConcept, not Attachment",
        ),
        (
            {"identifier": IdentifierRule(elements=("code",))},
            "identifier: code is of type CodeableConcept, not Identifier",
        ),
        ({"updatable": frozenset({"nothing"})}, "updatable: there is no element nothing"),
        ({"summary": ("nothing",)}, "summary: there is no element nothing"),
    ],
)
def test_an_element_has_the_type_that_its_use_needs(fields: dict[str, Any], said: str) -> None:
    assert problems(**fields) == [f"DiagnosticReport: {said}"]


@pytest.mark.parametrize(
    ("kind", "path", "is_right"),
    [
        ("reference", "subject", True),
        ("reference", "status", False),
        ("token", "status", True),
        ("token", "subject", True),
    ],
)
def test_only_a_reference_is_searched_as_one(kind: Any, path: str, *, is_right: bool) -> None:
    parameter = SearchParameter(name="x", type=kind, paths=(path,))

    found = problems(search=(parameter,))

    said = "search parameter x: status is of type diagnostic-report-status, not Reference"
    assert found == ([] if is_right else [f"DiagnosticReport: {said}"])


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"update_statuses": frozenset({"ammended"})},
            "update_statuses: there is no status ammended; did you mean amended?",
        ),
        (
            {"state_flow": {"finale": frozenset({"amended"})}},
            "state_flow: there is no status finale; did you mean final?",
        ),
        (
            {"state_flow": {"final": frozenset({"ammended"})}},
            "state_flow: there is no status ammended; did you mean amended?",
        ),
    ],
)
def test_a_status_that_the_type_does_not_have_is_named(fields: dict[str, Any], said: str) -> None:
    assert problems(**fields) == [f"DiagnosticReport: {said}"]


def test_elements_of_a_type_with_our_schema_are_checked_by_ours() -> None:
    declared = replace(REPORT, summary=("nothing",))

    (said,) = schema_and_element_problems(declared)

    assert said.startswith("DiagnosticReport: summary: there is no element nothing")


# All types together


def test_schemas_know_ours_and_those_that_types_bring() -> None:
    schemas = compile_schema(
        {"DiagnosticReport": REPORT, "Flag": with_schema(FLAG)}, {"DiagnosticReport": "a"}
    )

    assert schemas.knows("Flag")
    assert schemas.knows("DiagnosticReport")
    assert compile_schema({"DiagnosticReport": REPORT}, {}) is own_schemas()
    assert not own_schemas().knows("Flag")


def test_a_problem_names_the_plugin_of_its_type() -> None:
    types = {
        "DiagnosticReport": replace(REPORT, summary=("nothing",)),
        "Observation": replace(REPORT, name="Observation", summary=("nothing",)),
    }

    with pytest.raises(PluginError) as refused:
        compile_schema(types, {"DiagnosticReport": "one", "Observation": "two"})

    first, second = str(refused.value).splitlines()
    assert first.startswith("plugin one: DiagnosticReport: summary: there is no element nothing")
    assert second.startswith("plugin two: Observation: summary: there is no element nothing")


def test_a_schema_that_cannot_be_compiled_is_named_with_its_plugin() -> None:
    wrong = with_schema(FLAG | {"type": "nonsense"})

    with pytest.raises(PluginError) as refused:
        compile_schema({"Flag": wrong}, {"Flag": "two"})

    assert str(refused.value) == (
        "plugin two: Flag: the schema for Flag is not a JSON Schema at type: 'nonsense' is not "
        "valid under any of the given schemas"
    )


def test_every_part_needs_a_schema_and_an_element_that_refers_to_it() -> None:
    optional = [Part(name=f"p{one}", type=one, referred_by=one, required=False) for one in "ab"]

    assert problems(parts=tuple(optional)) == [
        *(f"DiagnosticReport: no schema for {one}: the plugin must bring one" for one in "ab"),
        *(
            f"DiagnosticReport: part p{one}: referred_by: there is no element {one}"
            for one in "ab"
        ),
    ]


def test_a_part_that_nothing_refers_to_needs_a_schema_only() -> None:
    part = Part(name="p", type="Patient", referred_by="", required=False, repeats=True)

    assert problems(parts=(part,)) == []


def test_a_status_of_the_flow_is_checked_at_both_ends() -> None:
    flow = {"begun": ("final",), "final": ("ended",)}

    found = problems(state_flow={one: frozenset(after) for one, after in flow.items()})

    assert [line.split("no status ")[1].split(";")[0] for line in found] == ["begun", "ended"]


MEMBER = Part(name="m", type="Observation", referred_by="", required=False, repeats=True)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"times": ("issued", "issud")}, "times: there is no element issud; did you mean issued?"),
        ({"times": ("status",)}, "times: status is of type observation-status, not dateTime or "),
        ({"codings": ("code", "subject")}, "codings: subject is of type Reference, not Codeable"),
        ({"patient": "patient"}, "patient: there is no element patient"),
        ({"patient": "code"}, "patient: code is of type CodeableConcept, not Reference"),
        ({"acyclic": ("hasMember", "code")}, "acyclic: code is of type CodeableConcept, not Ref"),
        (
            {"search": (SearchParameter(name="k", type="token", paths=("code", "kind")),)},
            "search parameter k: there is no element kind",
        ),
        (
            {"search": (SearchParameter(name="k", type="reference", paths=("code",)),)},
            "search parameter k: code is of type CodeableConcept, not Reference",
        ),
        (
            {"statuses": frozenset({"final", "finale"})},
            "statuses: there is no status finale; did you mean final?",
        ),
        (
            {"type": "Specimen", "times": ("receivedTyme",), "patient": "subject"},
            "times: there is no element receivedTyme; did you mean receivedTime?",
        ),
        (
            {"type": "Practitioner", "statuses": frozenset({"active"})},
            "statuses: Practitioner has no element status",
        ),
    ],
)
def test_what_a_part_that_repeats_names_is_in_its_own_type(
    fields: dict[str, Any], said: str
) -> None:
    (found,) = problems(parts=(replace(MEMBER, **fields),))

    assert found.startswith(f"DiagnosticReport: part m: {said}")


def test_each_part_that_repeats_is_checked_and_no_part_without_a_schema() -> None:
    wrong = [replace(MEMBER, name=name, patient="x") for name in ("a", "b")]
    strange = replace(MEMBER, name="c", type="Nothing", patient="x")
    right = replace(MEMBER, name="d", patient="subject", statuses=frozenset({"final"}))

    assert problems(parts=(*wrong, strange, right)) == [
        "DiagnosticReport: no schema for Nothing: the plugin must bring one",
        *(f"DiagnosticReport: part {name}: patient: there is no element x" for name in "ab"),
    ]
