"""What is on hold is not erased, until the hold is released."""

from __future__ import annotations

import pytest

from fhirpub.administration import tenants
from fhirpub.administration.erasure import holds
from fhirpub.audit.record import BEGUN
from fhirpub.errors import NotPossible
from fhirpub.testing.samples import new_id
from tests.unit.administration.declared import declared
from tests.unit.administration.erasure.test_operations import erase, name_of, published
from tests.unit.administration.office import AGENT, Office
from tests.unit.interactions.erasure.registered import patient_of


async def test_a_hold_is_added_listed_and_released(office: Office, lab: str, other: str) -> None:
    report = await published(office, lab)
    named = {"tenant": lab, "type": report.type, "id": report.id}

    added = await office.run(holds.ADD, **named, reason=" case 7 ")

    assert added == {
        **named,
        "since": office.clock(),
        "operator": AGENT.user,
        "reason": "case 7",
    }
    assert await office.run(holds.LIST, tenant="Lab") == [added]
    assert await office.run(holds.LIST, tenant=other) == []
    assert await office.run(holds.RELEASE, **named) == {"released": name_of(report)}
    assert await office.run(holds.LIST, tenant=lab) == []


async def test_a_hold_and_its_end_are_in_the_chain_of_the_tenant(office: Office, lab: str) -> None:
    report = await published(office, lab)
    named = {"tenant": lab, "type": report.type, "id": report.id}
    before = len(await office.records())

    added = await office.run(holds.ADD, **named, reason="case 7", operator="eva")
    await office.run(holds.RELEASE, **named)

    assert added["operator"] == "eva"
    assert (await office.records())[before:] == [
        (lab, f"hold.{act}", status, [name_of(report)])
        for act in ("add", "release")
        for status in (BEGUN, 200)
    ]


async def test_a_hold_that_there_is_not_cannot_be_released(
    office: Office, lab: str, other: str
) -> None:
    report = await published(office, lab)
    named = {"type": report.type, "id": report.id}
    await office.run(holds.ADD, tenant=lab, **named, reason="case 7")

    with pytest.raises(NotPossible, match="is not on hold"):
        await office.run(holds.RELEASE, tenant=other, **named)

    assert len(await office.run(holds.LIST, tenant=lab)) == 1


async def test_what_does_not_exist_is_not_put_on_hold(office: Office, lab: str) -> None:
    with pytest.raises(NotPossible, match="put the report on hold, one of its results"):
        await office.run(
            holds.ADD, tenant=lab, type="DiagnosticReport", id=new_id(), reason="case 7"
        )

    assert await office.store.holds(lab) == []


async def test_a_hold_that_is_none_is_not_released_of_a_disabled_tenant_either(
    office: Office, lab: str
) -> None:
    await office.run(tenants.DISABLE, tenant=lab)

    with pytest.raises(NotPossible, match="is not on hold"):
        await office.run(holds.RELEASE, tenant=lab, type="DiagnosticReport", id=new_id())


async def test_a_patient_is_put_on_hold_with_all_that_refers_to_it(
    office: Office, lab: str
) -> None:
    report = await published(office, lab)
    patient = patient_of(report)

    await office.run(holds.ADD, tenant=lab, type="Patient", id=patient, reason="c", operator="Eva")

    (hold,) = await office.store.holds(lab)
    assert (hold.type, hold.id, hold.operator) == ("Patient", patient, "Eva")
    assert (await erase(office, lab, name_of(report)))["erased"] == []


def test_the_operations_are_those_that_clients_know() -> None:
    assert declared(holds.OPERATIONS) == {
        "hold add": [
            "PUT /tenants/{tenant}/holds/{type}/{id} 200",
            "path tenant! string",
            "path type! string",
            "path id! string",
            "body reason! string 500 characters",
            "body operator string 500 characters",
        ],
        "hold release": [
            "DELETE /tenants/{tenant}/holds/{type}/{id} 200",
            "path tenant! string",
            "path type! string",
            "path id! string",
        ],
        "hold list": [
            "GET /tenants/{tenant}/holds 200",
            "path tenant! string",
        ],
    }
