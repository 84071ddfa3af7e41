"""What a request that describes a client leaves as it is, and what it does in a race."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import clients
from fhirpub.administration.naming import id_of_key
from fhirpub.errors import NotPossible
from fhirpub.storage.contract import Client
from tests.unit.administration.office import Office


async def test_networks_in_another_form_are_no_change(office: Office, lab: str) -> None:
    first = await office.run(clients.PUT, tenant=lab, key="ward", networks=["192.0.2.7"])
    before = await office.records()

    again = await office.run(clients.PUT, tenant=lab, key="ward", networks=["192.0.2.7"])

    assert again["networks"] == first["networks"] == ["192.0.2.7/32"]
    assert await office.records() == before


@pytest.mark.parametrize("given", [{"name": "x"}, {"scopes": ["system/*.rs"]}, {"networks": []}])
async def test_nothing_of_a_disabled_client_is_changed_by_a_description(
    office: Office, lab: str, given: dict[str, Any]
) -> None:
    first = await office.run(clients.PUT, tenant=lab, key="ward")
    await office.run(clients.DISABLE, client=first["client_id"])
    before = await office.records()

    with pytest.raises(NotPossible, match="disabled for good"):
        await office.run(clients.PUT, tenant=lab, key="ward", **given)

    assert await office.records() == before


async def test_of_two_requests_that_race_the_later_one_changes_what_the_other_added(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = await office.run(clients.PUT, tenant=lab, key="ward", name="first")
    look, looks = office.store.client, list[str]()

    async def late(client_id: str) -> Client | None:
        looks.append(client_id)
        return None if len(looks) == 1 else await look(client_id)

    monkeypatch.setattr(office.store, "client", late)
    again = await office.run(clients.PUT, tenant=lab, key="ward", name="second")

    assert looks[0] == again["client_id"] == id_of_key("client", "ward", tenant=lab)
    assert (again["client_id"], again["name"]) == (added["client_id"], "second")
    assert "client_secret" not in again
