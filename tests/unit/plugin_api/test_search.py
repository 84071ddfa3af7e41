"""Search parameters are declared by the ids of their definitions in FHIR R4."""

from __future__ import annotations

import pytest

from fhirpub.plugin_api.search import (
    DEFINITIONS,
    SEARCH_TYPES,
    SearchParameter,
    r4_composite,
    r4_parameter,
)


@pytest.mark.parametrize(
    ("definition", "name"),
    [
        ("clinical-code", "code"),
        ("Encounter-service-provider", "service-provider"),
        ("DiagnosticReport-based-on", "based-on"),
    ],
)
def test_a_parameter_has_the_name_behind_the_first_hyphen(definition: str, name: str) -> None:
    declared = r4_parameter(definition, "token", "code", "valueCode")

    assert declared == SearchParameter(
        name=name,
        type="token",
        paths=("code", "valueCode"),
        definition=f"{DEFINITIONS}/{definition}",
    )


def test_a_composite_compares_two_parameters_and_no_elements() -> None:
    declared = r4_composite("Observation-code-value-quantity", "code", "value-quantity")

    assert (declared.name, declared.type) == ("code-value-quantity", "composite")
    assert (declared.components, declared.paths) == (("code", "value-quantity"), ())
    assert declared.definition == f"{DEFINITIONS}/Observation-code-value-quantity"


def test_the_types_are_those_of_fhir_but_special() -> None:
    assert {*SEARCH_TYPES} == {
        *("token", "date", "reference", "quantity"),
        *("number", "string", "uri", "composite"),
    }
