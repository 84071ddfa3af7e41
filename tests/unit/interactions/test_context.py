"""What every interaction works with: addresses, types of parts, and the day of a rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.config.settings import Config, FhirConfig, ServerConfig
from fhirpub.interactions.context import Context, fhir_url, run_at
from fhirpub.runtime.stages import Stages
from tests.unit.interactions.updating import CONTEXT, NOW

DAY = 86_400_000


def test_the_fhir_base_is_below_the_url_of_the_service() -> None:
    config = replace(Config(), server=ServerConfig(base_url="https://x.example/a"))

    assert fhir_url(config) == "https://x.example/a/fhir/r4"
    assert replace(CONTEXT, config=config).fhir_url == "https://x.example/a/fhir/r4"


def test_types_of_parts_are_sorted_without_those_of_members() -> None:
    assert CONTEXT.part_types == sorted({*CONTEXT.part_types})
    assert {"Patient", "Organization"} <= {*CONTEXT.part_types}
    assert "Observation" not in CONTEXT.part_types


def test_patients_are_parts_unless_they_are_resources_of_their_own() -> None:
    patient: Any = CONTEXT.types["DiagnosticReport"]

    assert CONTEXT.has_patients
    assert not replace(CONTEXT, types={**CONTEXT.types, "Patient": patient}).has_patients
    assert not replace(CONTEXT, members={**CONTEXT.members, "Patient": patient}).has_patients
    assert not replace(CONTEXT, searched={}).has_patients


@pytest.mark.parametrize(
    ("now", "today"),
    [(0, "1970-01-01"), (DAY - 1, "1970-01-01"), (DAY, "1970-01-02"), (NOW, "2027-01-15")],
)
def test_rules_know_the_day_in_utc(now: int, today: str) -> None:
    assert replace(CONTEXT, clock=lambda: now).rules_for("t").today == today


def test_rules_know_the_tenant_and_the_settings() -> None:
    fhir = FhirConfig(allow_gender_unknown=True, organization_namespaces=["urn:a", "urn:b"])
    context = replace(CONTEXT, config=replace(Config(), fhir=fhir))

    found = context.rules_for("t-1")

    assert (found.tenant_id, found.allow_gender_unknown) == ("t-1", True)
    assert found.organization_namespaces == ("urn:a", "urn:b")
    assert found.terminology is context.terminology
    assert not CONTEXT.rules_for("t-1").allow_gender_unknown


def asked_at(context: Context, body: bytes) -> Stages[tuple[int, bytes]]:
    yield
    return context.clock(), body


def test_a_computation_runs_at_the_time_that_is_given() -> None:
    assert run_at(CONTEXT, b"a", now=5, work=asked_at) == (5, b"a")
    assert run_at(CONTEXT, b"a", now=0, work=asked_at) == (0, b"a")
    assert run_at(CONTEXT, b"a", now=None, work=asked_at) == (NOW, b"a")
