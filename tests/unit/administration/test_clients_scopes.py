"""Scopes of a client are replaced, and the change is recorded in the chain of its tenant."""

from __future__ import annotations

from fhirpub.administration import clients
from fhirpub.audit.record import BEGUN
from tests.unit.administration.office import Office


async def test_new_scopes_take_the_place_of_those_before(office: Office, lab: str) -> None:
    scopes = ["system/DiagnosticReport.rs", "webhooks.read"]
    client = (await office.run(clients.ADD, tenant=lab, name="ward", scopes=scopes))["client_id"]

    shown = await office.run(clients.SCOPES, client="ward", scopes=["webhooks.read"])

    found = await office.store.client(client)
    assert found is not None
    assert (shown["scopes"], found.scopes) == (["webhooks.read"], ("webhooks.read",))


async def test_new_scopes_are_recorded_in_the_chain_of_the_tenant(
    office: Office, lab: str
) -> None:
    client = (await office.run(clients.ADD, tenant=lab, name="ward"))["client_id"]
    before = len(await office.records())

    await office.run(clients.SCOPES, client="ward", scopes=["webhooks.read"])

    assert (await office.records())[before:] == [
        (lab, "client.scopes", BEGUN, [f"Client/{client}"]),
        (lab, "client.scopes", 200, [f"Client/{client}"]),
    ]
