"""What a request that describes an endpoint changes, and what it does in a race."""

from __future__ import annotations

import pytest

from fhirpub.administration import endpoint_acts, endpoints
from fhirpub.administration.naming import id_of_key
from fhirpub.administration.operation import Operation
from fhirpub.storage.webhook_contract import Endpoint
from tests.unit.administration.office import URL, Office

MOVED = "https://93.184.216.34/moved"


async def test_an_endpoint_that_an_operator_moves_stays_as_it_is(office: Office, lis: str) -> None:
    changed = await office.run(endpoints.SET, endpoint=lis, url=MOVED)

    assert (changed["url"], changed["state"]) == (MOVED, "active")


async def test_a_description_that_is_emptied_is_a_change(office: Office, lab: str) -> None:
    await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL, description="x")

    again = await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL, description="")

    assert again["description"] == ""
    assert (await office.run(endpoints.SHOW, endpoint=again["id"]))["description"] == ""


@pytest.mark.parametrize("act", [endpoint_acts.PAUSE, endpoint_acts.DISABLE])
async def test_an_endpoint_that_is_held_is_changed_and_not_replaced(
    office: Office, lab: str, act: Operation
) -> None:
    first = await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL)
    held = await office.run(act, endpoint=first["id"])

    again = await office.run(endpoints.PUT, tenant=lab, key="lis", url=MOVED)

    assert (again["id"], again["state"]) == (held["id"], held["state"])
    assert again["url"] == MOVED
    assert len(await office.run(endpoints.LIST)) == 1


async def test_of_two_requests_that_race_the_later_one_changes_what_the_other_added(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL)
    look, looks = office.store.endpoint, list[str]()

    async def late(tenant: str, endpoint_id: str) -> Endpoint | None:
        looks.append(endpoint_id)
        return None if len(looks) == 1 else await look(tenant, endpoint_id)

    monkeypatch.setattr(office.store, "endpoint", late)
    again = await office.run(endpoints.PUT, tenant=lab, key="lis", url=MOVED)

    assert looks[0] == again["id"] == added["id"] == id_of_key("endpoint", "lis", tenant=lab)
    assert again["url"] == MOVED
    assert "signing_secret" not in again


async def test_an_endpoint_that_is_removed_in_between_is_replaced(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await office.run(endpoints.PUT, tenant=lab, key="lis", url=URL)
    look, looks = office.store.endpoint, list[str]()

    async def early(tenant: str, endpoint_id: str) -> Endpoint | None:
        found = await look(tenant, endpoint_id)
        looks.append(endpoint_id)
        if len(looks) == 1:
            await office.run(endpoints.REMOVE, endpoint=endpoint_id)
        return found

    monkeypatch.setattr(office.store, "endpoint", early)
    second = await office.run(endpoints.PUT, tenant=lab, key="lis", url=MOVED)

    assert second["id"] != first["id"]
    assert (second["url"], second["state"]) == (MOVED, "active")
    assert "signing_secret" in second
