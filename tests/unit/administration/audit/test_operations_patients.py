"""The records of a chain that name a patient, or a resource of one."""

from __future__ import annotations

import pytest

from fhirpub.administration.audit import operations
from fhirpub.administration.naming import id_of_key
from fhirpub.auth.tenants import add_tenant
from tests.audit_trail import NOON, a_record, seal
from tests.unit.administration.office import Office

HALF_HOUR = 1_800_000


@pytest.fixture
async def lab(office: Office) -> str:
    id_ = id_of_key("tenant", "lab")
    await add_tenant(office.store, "Lab", clock=office.clock, tenant_id=id_)
    return id_


@pytest.mark.parametrize("asked_for", ["Patient/1", "Patient/1/_history/2"])
async def test_a_patient_is_found_by_whom_a_record_concerns_and_by_what_it_names(
    office: Office, lab: str, asked_for: str
) -> None:
    records = [
        a_record("read", patients=("Patient/1",)),
        a_record("hold.add", what=("Patient/1",)),
        a_record("vread", what=("Patient/1/_history/3",)),
        a_record("other", what=("Patient/10",), patients=("Patient/2",)),
    ]
    await seal(office.store, lab, records)

    page = await office.run(operations.LIST, chain=lab, patient=asked_for)

    assert {one["action"] for one in page["records"]} == {"read", "hold.add", "vread"}


async def test_blocks_that_concern_a_patient_and_those_that_name_it_come_in_one_order(
    office: Office, lab: str
) -> None:
    patient = ("Patient/1",)
    records = [
        a_record(f"a-{number}", at=NOON + number * HALF_HOUR, what=patient)
        if number % 2
        else a_record(f"a-{number}", at=NOON + number * HALF_HOUR, patients=patient)
        for number in range(6)
    ]
    await seal(office.store, lab, records)
    found: list[str] = []
    place: dict[str, str] = {}
    while True:
        page = await office.run(operations.LIST, chain=lab, patient="Patient/1", limit=2, **place)
        found += [one["action"] for one in page["records"]]
        if page["following"] is None:
            break
        place = {"from": page["following"]}

    assert found == [f"a-{number}" for number in reversed(range(6))]


async def test_what_one_of_two_searches_has_not_reached_is_found_by_the_next(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "_PAGE", 1)
    patient = ("Patient/1",)
    records = [
        a_record("older", at=NOON, what=patient),
        a_record("newer", at=NOON + 2 * HALF_HOUR, patients=patient),
        a_record("newest", at=NOON + 4 * HALF_HOUR, patients=patient),
    ]
    await seal(office.store, lab, records)

    page = await office.run(operations.LIST, chain=lab, patient="Patient/1")

    assert [one["action"] for one in page["records"]] == ["newest", "newer", "older"]


async def test_a_patient_and_an_agent_are_both_meant(office: Office, lab: str) -> None:
    other = a_record("named", what=("Patient/1",))
    await seal(office.store, lab, [other])

    page = await office.run(operations.LIST, chain=lab, patient="Patient/1", agent="other")

    assert page["records"] == []
