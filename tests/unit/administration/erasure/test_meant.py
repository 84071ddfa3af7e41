"""Which resources an order means by an identifier, of a patient, or beyond their retention."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration.erasure import holds, operations
from fhirpub.config.retention import RetentionConfig
from fhirpub.errors import FhirpubError, InvalidContent
from fhirpub.runtime.clock import DAY_MS
from fhirpub.storage.contract import Version
from fhirpub.testing.samples import new_id
from tests.unit.administration.erasure.test_operations import published
from tests.unit.administration.office import Office
from tests.unit.interactions.erasure.registered import registered
from tests.unit.interactions.erasure.test_patients import KEY, of_person


async def of_patient(office: Office, tenant: str, value: str, number: str) -> Version:
    owner, store = await office.administration.tenant(tenant), office.store
    anything: Any = store
    return await registered(anything, of_person(value, number), tenant=owner)


async def planned(office: Office, tenant: str, **given: Any) -> list[str]:
    plan = await office.run(operations.PLAN, tenant=tenant, **given)
    return [one["id"] for one in plan["planned"]]


async def test_a_report_is_meant_by_its_identifier(office: Office, lab: str) -> None:
    report = await published(office, lab)
    await published(office, lab, "R-2")

    found = await planned(
        office, lab, report_identifier=f"{report.system}|{report.value}", type=report.type
    )

    assert found == [report.id]


async def test_the_identifier_of_a_report_of_another_tenant_means_nothing(
    office: Office, lab: str, other: str
) -> None:
    report = await published(office, lab)

    with pytest.raises(FhirpubError):
        await planned(
            office, other, report_identifier=f"{report.system}|{report.value}", type=report.type
        )


async def test_a_patient_is_meant_by_an_identifier(office: Office, lab: str) -> None:
    reports = [await of_patient(office, lab, f"R-{number}", KEY[1]) for number in range(2)]
    await of_patient(office, lab, "R-9", "AAB999999")

    found = await planned(office, lab, patient_identifier="|".join(KEY))

    assert {*found} == {one.id for one in reports}


async def test_patients_of_another_tenant_are_not_meant(
    office: Office, lab: str, other: str
) -> None:
    await of_patient(office, lab, "R-1", KEY[1])

    assert await planned(office, other, patient_identifier="|".join(KEY)) == []


@pytest.mark.parametrize("name", ["report_identifier", "patient_identifier"])
async def test_what_is_no_identifier_is_refused(office: Office, lab: str, name: str) -> None:
    with pytest.raises(InvalidContent, match=f"{name}: must be a system, a bar and a value"):
        await planned(office, lab, **{name: "nonsense"})


async def test_an_id_that_nothing_has_is_refused(office: Office, lab: str) -> None:
    with pytest.raises(FhirpubError):
        await planned(office, lab, reports=[new_id()])


async def test_what_is_on_hold_cannot_be_planned(office: Office, lab: str) -> None:
    report = await published(office, lab)
    await office.run(holds.ADD, tenant=lab, type=report.type, id=report.id, reason="c")

    with pytest.raises(FhirpubError, match="hold"):
        await planned(office, lab, reports=[report.id])


async def test_what_has_expired_is_meant_without_what_is_on_hold(office: Office, lab: str) -> None:
    kept, gone = [await published(office, lab, value) for value in ("R-1", "R-2")]
    await office.run(holds.ADD, tenant=lab, type=kept.type, id=kept.id, reason="c")
    policies = RetentionConfig(policies=["DiagnosticReport after 3 days"])
    later = office.with_config(retention=policies)

    office.clock.now = gone.updated + 3 * DAY_MS - 1
    assert await planned(later, lab, expired=True) == []
    office.clock.now = gone.updated + 4 * DAY_MS
    assert await planned(later, lab, expired=True) == [gone.id]
