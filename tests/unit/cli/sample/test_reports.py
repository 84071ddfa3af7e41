"""The invented reports of ``fhirpub sample``."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import pytest

from fhirpub.cli.sample.reports import DAYS, Plan, Step

FIRST_DAY = date(2025, 1, 1)
MANY = 400


def steps_of(seed: str = "a", *, patients: int | None = None, reports: int = MANY) -> list[Step]:
    plan = Plan(seed=seed, first_day=FIRST_DAY, patients=patients)
    return [step for number in range(reports) for step in plan.steps(number)]


def registered(name: str, *, reports: int = MANY) -> Iterator[Any]:
    """Yield the resources of a name in the first request about each report."""
    for step in steps_of(reports=reports):
        if step.action == "register":
            yield [
                entry["resource"]
                for entry in json.loads(step.body)["parameter"]
                if entry["name"] == name
            ]


def test_a_seed_gives_the_same_bytes_on_every_machine_and_in_every_release() -> None:
    digest = hashlib.sha256(b"".join(step.body for step in steps_of(reports=50))).hexdigest()

    assert digest == "c52ba1be32bb0519e1780deb156f4511b03679028b8920020d6835cdb330aa54"


def test_another_seed_gives_other_reports_under_other_identifiers() -> None:
    bodies = {
        seed: {step.body for step in steps_of(seed, reports=20) if step.action == "register"}
        for seed in "ab"
    }

    assert not bodies["a"] & bodies["b"]
    assert b'"a-0000000"' in b"".join(bodies["a"])
    assert b'"b-0000000"' in b"".join(bodies["b"])


def test_a_report_does_not_depend_on_how_many_there_are() -> None:
    assert steps_of(reports=30) == steps_of(reports=60)[: len(steps_of(reports=30))]


def test_people_have_several_reports_each() -> None:
    people = Counter(json.dumps(patient) for (patient,) in registered("patient"))

    assert MANY / 8 < len(people) < MANY / 4
    assert max(people.values()) > 5


def test_the_number_of_people_can_be_set() -> None:
    bodies = [step.body for step in steps_of(patients=3) if step.action == "register"]

    people = {json.dumps(json.loads(body)["parameter"][0]) for body in bodies}
    assert len(people) == 3


def test_everyone_is_born_before_the_first_report() -> None:
    births = {patient["birthDate"] for (patient,) in registered("patient")}

    assert min(births) > "1930"
    assert max(births) < str(FIRST_DAY)


def test_all_reports_are_issued_within_a_year_and_after_their_specimen() -> None:
    for (report,) in registered("diagnosticReport"):
        taken, issued = (
            datetime.fromisoformat(report[name]) for name in ("effectiveDateTime", "issued")
        )
        assert taken < issued
        assert (issued.date() - FIRST_DAY).days < DAYS


def test_a_culture_takes_two_days_and_a_blood_count_hours() -> None:
    hours: dict[str, set[float]] = {}
    for (report,) in registered("diagnosticReport"):
        taken, issued = (
            datetime.fromisoformat(report[name]) for name in ("effectiveDateTime", "issued")
        )
        hours.setdefault(report["code"]["text"], set()).add(
            (issued - taken).total_seconds() / 3600
        )

    assert min(hours["Urine culture"]) >= 48
    assert max(hours["Complete blood count"]) < 4


def test_what_is_computed_of_a_blood_count_fits_what_is_measured() -> None:
    for results in registered("observation"):
        value = {one["id"]: one.get("valueQuantity", {}).get("value") for one in results}
        if "mch" not in value:
            continue
        assert value["mch"] == pytest.approx(value["hb"] / value["rbc"] * 10, abs=0.06)
        assert value["neut"] + value["lymph"] <= value["wbc"]


def test_a_value_outside_of_its_range_is_marked_and_named_in_the_conclusion() -> None:
    marked = 0
    for (report,), results in zip(
        registered("diagnosticReport"), registered("observation"), strict=True
    ):
        for one in results:
            if "valueQuantity" not in one:
                continue
            (limits,) = one["referenceRange"]
            value = one["valueQuantity"]["value"]
            outside = not limits["low"]["value"] <= value <= limits["high"]["value"]
            assert ("interpretation" in one) == outside
            assert (f"{one['code']['text']} " in report["conclusion"]) >= outside
            marked += outside
    assert marked > MANY / 4


def test_some_reports_are_corrected_or_amended_later() -> None:
    actions = Counter(step.action for step in steps_of())

    assert actions["register"] == MANY
    assert MANY / 8 < actions["revise"] < MANY / 3
    assert MANY / 20 < actions["update"] < MANY / 5
