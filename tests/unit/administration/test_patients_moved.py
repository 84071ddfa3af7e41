"""Whose decision a move is, in which order reports go, and which identifiers are shown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.administration import patients
from fhirpub.interactions.relinking.relink import Relink, plan_relink
from tests.bodies import patient
from tests.panels import panel
from tests.unit.administration.office import AGENT, Office
from tests.unit.administration.test_patients import (
    gathered,
    patient_now,
    published,
    relink,
)
from tests.unit.interactions.erasure.registered import patient_of, registered

SYSTEM = "https://lab.example/persons"


@pytest.mark.parametrize(("given", "named"), [({}, AGENT.user), ({"operator": "dr x"}, "dr x")])
async def test_a_move_is_stated_with_who_decided_it(
    office: Office, lab: str, given: dict[str, str], named: str
) -> None:
    _reports, target = await gathered(office, lab, 1)
    report = await published(office, lab, "R-9")

    await relink(office, lab, report.id, patient=target, reason="the last move", **given)

    shown = await office.run(patients.SHOW, tenant=lab, patient=target)
    stated = {one["reason"]: one["operator"] for one in shown["statements"]}
    assert stated["the last move"] == named


async def test_reports_that_state_nothing_are_moved_before_those_that_they_refer_to(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _reports, target = await gathered(office, lab, 1)
    ids = [(await published(office, lab, f"R-{number}")).id for number in range(5, 9)]
    stating = {ids[0], ids[2]}

    async def planned(id_: str, *given: Any, **named: Any) -> Relink:
        return replace(await plan_relink(id_, *given, **named), states=id_ in stating)

    monkeypatch.setattr(patients, "plan_relink", planned)
    before = len(await office.records())
    await relink(office, lab, *ids, patient=target)

    records = (await office.records())[before:]
    moved = [what[0] for _chain, action, _status, what in records if action == "patient.relink"]
    in_order = list(dict.fromkeys(name.partition("/")[2] for name in moved))
    assert in_order == [ids[1], ids[3], ids[0], ids[2]]


async def test_what_would_be_stranded_is_judged_by_all_that_moves_together(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _reports, target = await gathered(office, lab, 1)
    ids = [(await published(office, lab, f"R-{number}")).id for number in range(5, 8)]
    judged: list[list[str]] = []

    async def judge(planned: Sequence[Relink], **_named: Any) -> None:
        judged.append([one.id for one in planned])

    monkeypatch.setattr(patients, "refuse_stranded", judge)
    await relink(office, lab, *ids, patient=target)

    assert judged == [ids]


async def test_all_identifiers_of_a_person_are_shown_and_no_others(
    office: Office, lab: str
) -> None:
    numbers = [{"system": SYSTEM, "value": value} for value in ("b", "a")]
    other = {"system": "https://other.example", "value": "c"}
    body = panel("R-1")
    body["parameter"][0]["resource"] = patient(identifier=[*numbers, other])
    owner, store = await office.administration.tenant(lab), office.store
    report = await registered(store, body, tenant=owner)  # type: ignore[arg-type]
    person_systems = replace(office.administration.config.patients, person_systems=[SYSTEM])

    shown = await office.with_config(patients=person_systems).run(
        patients.SHOW, tenant=lab, patient=patient_of(report)
    )

    (statement,) = shown["statements"]
    assert statement["identifiers"] == [f"{SYSTEM}|a", f"{SYSTEM}|b"]
    assert await patient_now(office, lab, report) == shown["patient"]


async def test_a_patient_may_be_named_with_its_type(office: Office, lab: str) -> None:
    _reports, target = await gathered(office, lab, 1)
    report = await published(office, lab, "R-9")

    await relink(office, lab, report.id, patient=f"Patient/{target}")

    assert await patient_now(office, lab, report) == target


class Found:
    """A search that has found two conflicts, and may have more to read."""

    after, read, is_more = ("id", 7), 9, True

    def __init__(self, **_given: Any) -> None:
        pass

    async def conflicts(self, *, max_read: int) -> AsyncIterator[Any]:
        assert max_read == 10_000
        for value in "ab":
            yield SimpleNamespace(system=SYSTEM, value=value, patients=("1", "2"))


@pytest.mark.parametrize(("is_more", "following"), [(True, "id/7"), (False, None)])
async def test_all_conflicts_that_were_found_are_listed(
    office: Office,
    lab: str,
    monkeypatch: pytest.MonkeyPatch,
    following: str | None,
    *,
    is_more: bool,
) -> None:
    monkeypatch.setattr(patients, "ConflictSearch", Found)
    monkeypatch.setattr(Found, "is_more", is_more)

    found = await office.run(patients.CONFLICTS, tenant=lab)

    assert found["conflicts"] == [
        {"identifier": f"{SYSTEM}|{value}", "patients": ["1", "2"]} for value in "ab"
    ]
    assert (found["read"], found["following"]) == (9, following)
