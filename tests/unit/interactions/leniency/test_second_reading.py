"""A corrected body becomes what the right one becomes, and nothing else is corrected."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fhirpub.app.context import create_context
from fhirpub.config.settings import Config, FhirConfig
from fhirpub.errors import InvalidContent, Refused
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.interactions.leniency.second_reading import read_again
from fhirpub.interactions.register import Candidate, Rejected, prepare_registration
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.runtime.stages import run_to_completion
from fhirpub.tenant import Tenant
from tests.bodies import register_body

TENANT = Tenant("00000000-0000-4000-8000-000000000001", "Lab", b"s" * 32, 0, disabled=False)
LENIENT = FhirConfig(empty_values="drop", time_forms="lenient")
STRICT = create_context(Config(), clock=lambda: 0)
CONTEXT = create_context(replace(Config(), fhir=LENIENT), clock=lambda: 0)
EMPTY: st.SearchStrategy[Any] = st.sampled_from([None, "", [], {}])
ELEMENTS = (
    "conclusion",
    "language",
    "specimen",
    "text",
    "code",
    "coding",
    "period",
    "start",
    "x y",
)


def prepare(body: Any, context: Any = CONTEXT) -> Candidate:
    work = prepare_registration(
        context,
        dumps(body),
        is_xml=False,
        read_body=from_parameters,
        type_name="DiagnosticReport",
        tenant=TENANT,
    )
    prepared = run_to_completion(work)
    if isinstance(prepared, Rejected):
        raise prepared.refusal
    return prepared


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of the resources of a body."""
    if isinstance(value, dict):
        yield value
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for member in below:
        yield from objects(member)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 500), st.sampled_from(ELEMENTS), EMPTY), min_size=1))
def test_a_body_with_empty_values_becomes_what_it_becomes_without(
    inserted: list[tuple[int, str, Any]],
) -> None:
    body, plain = register_body("A"), register_body("A")
    holders = list(objects([entry["resource"] for entry in body["parameter"]]))
    for number, name, empty in inserted:
        holders[number % len(holders)].setdefault(name, copy.deepcopy(empty))

    candidate, expected = prepare(body), prepare(plain)

    assert candidate.version.body == expected.version.body
    assert candidate.version.parts == expected.version.parts
    assert (candidate.version.response == expected.version.response) == (body == plain)


@settings(deadline=None)
@given(
    st.recursive(
        st.one_of(EMPTY, st.sampled_from(["2026-11-20T10:05-0300", "Ana", 1, True])),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(ELEMENTS), inner, max_size=3),
        ),
    ),
    st.integers(0, 500),
    st.sampled_from([*ELEMENTS, "resourceType", "identifier", "name", "status", "data"]),
)
def test_whatever_a_body_holds_it_is_registered_or_refused(
    value: Any, number: int, name: str
) -> None:
    body = register_body("A")
    holders = list(objects(body))
    holders[number % len(holders)][name] = value

    try:
        candidate = prepare(body)
    except Refused:
        return

    assert prepare_again(candidate)


def prepare_again(candidate: Candidate) -> bool:
    """Return whether what is stored is right by the schema, without any leniency."""
    resource = loads(candidate.version.body.replace(b"\\u0000", b""))
    for form in resource["presentedForm"]:
        form.pop("data", None)
    return not list(STRICT.schemas.problems("DiagnosticReport", resource))


@pytest.mark.parametrize(
    ("settings", "corrects"),
    [
        (FhirConfig(), set()),
        (FhirConfig(empty_values="drop"), {"conclusion"}),
        (FhirConfig(time_forms="lenient"), {"issued"}),
        (LENIENT, {"conclusion", "issued"}),
    ],
)
def test_each_setting_corrects_its_own_kind(settings: FhirConfig, corrects: set[str]) -> None:
    report = {
        "resourceType": "DiagnosticReport",
        "conclusion": "",
        "issued": "2026-11-20T10:05-0300",
    }

    work = read_again(dumps(report), is_xml=False, settings=settings)
    _, warnings = run_to_completion(work)

    assert {issue.expression.rpartition(".")[2] for issue in warnings} == corrects


def test_a_body_that_stays_wrong_is_refused_with_what_was_corrected() -> None:
    body = register_body("A", conclusion="", status="final", issued="yesterday")

    with pytest.raises(InvalidContent) as refusal:
        prepare(body)

    assert [issue.severity for issue in refusal.value.issues] == ["error", "warning"]
