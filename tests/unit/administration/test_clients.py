"""Clients are added, changed and disabled; a secret is shown once, and never again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.administration import clients, tenants
from fhirpub.administration.naming import id_of_key
from fhirpub.audit.record import BEGUN
from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.auth.clients import authenticate
from fhirpub.config.loader import MAX_SECRET_DAYS
from fhirpub.errors import ConfigurationError, InvalidContent, NoSuchRecord, NotPossible
from fhirpub.fhir.times import instant
from fhirpub.runtime.clock import DAY_MS
from tests.unit.administration.office import Office

SCOPES = ["system/DiagnosticReport.cruds"]


async def is_right(office: Office, client: str, secret: str) -> bool:
    environment = office.administration.config.auth.environment
    found = await authenticate(
        office.store, client, secret, environment=environment, clock=office.clock
    )
    return found is not None


async def test_a_client_is_added_with_what_was_asked_for(office: Office, lab: str) -> None:
    added = await office.run(
        clients.ADD, tenant="Lab", name="ward", scopes=SCOPES, networks=["192.0.2.0/24"]
    )

    assert {name: added[name] for name in ("tenant", "name", "environment", "keys")} == {
        "tenant": lab,
        "name": "ward",
        "environment": "sandbox",
        "keys": None,
    }
    assert (added["scopes"], added["networks"]) == (SCOPES, ["192.0.2.0/24"])
    assert await is_right(office, added["client_id"], added["client_secret"])


async def test_a_secret_is_shown_once(office: Office, lab: str) -> None:
    id_ = (await office.run(clients.ADD, tenant=lab))["client_id"]

    shown = await office.run(clients.SHOW, client=id_)

    assert shown.keys() == {
        *("client_id", "tenant", "name", "environment", "scopes", "networks", "keys"),
        *("created", "valid_until", "disabled"),
    }
    assert shown["created"] == instant(office.clock())
    assert (shown["valid_until"], shown["disabled"]) == (None, False)


async def test_the_environment_of_a_client_is_that_of_the_service(
    office: Office, lab: str
) -> None:
    auth = replace(office.administration.config.auth, environment="production")

    added = await office.with_config(auth=auth).run(clients.ADD, tenant=lab)

    assert added["environment"] == "production"


@pytest.mark.parametrize(("given", "days"), [({}, 90), ({"valid_days": 5}, 5)])
async def test_a_secret_is_valid_for_the_days_that_are_given_or_set(
    office: Office, lab: str, given: dict[str, int], days: int
) -> None:
    auth = replace(office.administration.config.auth, secret_days=90)
    bounded = office.with_config(auth=auth)

    added = await bounded.run(clients.ADD, tenant=lab, **given)
    rotated = await bounded.run(clients.ROTATE, client=added["client_id"], **given)

    end = instant(office.clock() + days * DAY_MS)
    assert added["valid_until"] == end
    assert rotated["valid_until"] == end


async def test_no_days_are_no_end_although_others_are_set(office: Office, lab: str) -> None:
    auth = replace(office.administration.config.auth, secret_days=90)
    bounded = office.with_config(auth=auth)

    added = await bounded.run(clients.ADD, tenant=lab, valid_days=0)
    rotated = await bounded.run(
        clients.ROTATE, client=added["client_id"], valid_days=0, grace_seconds=0
    )

    assert (added["valid_until"], rotated["valid_until"]) == (None, None)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("valid_days", MAX_SECRET_DAYS, MAX_SECRET_DAYS + 1),
        ("valid_days", 0, -1),
        ("name", "x" * 200, "x" * 201),
        ("name", "", "a\nb"),
        ("networks", ["192.0.2.0/24"], ["192.0.2.0/24" + " " * 100]),
        ("scopes", SCOPES, "system/*.rs"),
    ],
)
async def test_what_a_client_is_given_has_limits(
    office: Office, lab: str, name: str, right: Any, wrong: Any
) -> None:
    await office.run(clients.ADD, tenant=lab, **{name: right})

    with pytest.raises(InvalidContent) as refused:
        await office.run(clients.ADD, tenant=lab, **{name: wrong})

    assert [issue.expression for issue in refused.value.issues] == [name]
    assert len(await office.store.clients()) == 1


async def test_the_end_of_an_addition_names_the_client(office: Office, lab: str) -> None:
    before = await office.records()

    id_ = (await office.run(clients.ADD, tenant=lab))["client_id"]

    assert (await office.records())[len(before) :] == [
        (lab, "client.add", BEGUN, []),
        (lab, "client.add", 200, [f"Client/{id_}"]),
    ]


async def test_an_addition_that_is_refused_is_recorded_as_such(office: Office, lab: str) -> None:
    with pytest.raises(ConfigurationError):
        await office.run(clients.ADD, tenant=lab, scopes=["jane roe"])

    assert (await office.records())[-1] == (lab, "client.add", 400, [])
    assert await office.store.clients() == []


async def test_a_client_with_a_key_is_added_once(office: Office, lab: str) -> None:
    first = await office.run(clients.PUT, tenant=lab, key="ward", scopes=SCOPES)
    before = await office.records()

    again = await office.run(clients.PUT, tenant=lab, key="ward", scopes=SCOPES)

    assert first["client_id"] == again["client_id"] == id_of_key("client", "ward", tenant=lab)
    assert "client_secret" in first
    assert "client_secret" not in again
    assert await office.records() == before


async def test_a_key_of_another_tenant_is_another_client(
    office: Office, lab: str, other: str
) -> None:
    ours = await office.run(clients.PUT, tenant=lab, key="ward")
    theirs = await office.run(clients.PUT, tenant=other, key="ward")

    assert ours["client_id"] != theirs["client_id"]
    assert (ours["tenant"], theirs["tenant"]) == (lab, other)


async def test_a_client_becomes_what_is_described(office: Office, lab: str) -> None:
    described: dict[str, Any] = {"name": "ward", "networks": ["192.0.2.0/24"], "scopes": SCOPES}
    first = await office.run(clients.PUT, tenant=lab, key="ward", **described)

    again = await office.run(clients.PUT, tenant=lab, key="ward")

    assert (again["name"], again["networks"], again["scopes"]) == ("", [], [])
    assert await is_right(office, first["client_id"], first["client_secret"])
    assert await office.run(clients.SHOW, client=first["client_id"]) == again


@pytest.mark.parametrize(
    "changed", [{"name": "x"}, {"networks": ["198.51.100.0/24"]}, {"scopes": ["system/*.rs"]}]
)
async def test_each_change_of_what_is_described_is_made(
    office: Office, lab: str, changed: dict[str, Any]
) -> None:
    await office.run(clients.PUT, tenant=lab, key="ward")

    again = await office.run(clients.PUT, tenant=lab, key="ward", **changed)

    assert {name: again[name] for name in changed} == changed


async def test_nothing_of_a_description_is_done_if_a_part_of_it_is_wrong(
    office: Office, lab: str
) -> None:
    first = await office.run(clients.PUT, tenant=lab, key="ward", name="ward")

    with pytest.raises(ConfigurationError):
        await office.run(clients.PUT, tenant=lab, key="ward", name="x", scopes=["jane roe"])

    assert (await office.run(clients.SHOW, client=first["client_id"]))["name"] == "ward"


async def test_a_key_of_a_disabled_client_is_not_used_again(office: Office, lab: str) -> None:
    first = await office.run(clients.PUT, tenant=lab, key="ward")
    await office.run(clients.DISABLE, client=first["client_id"])

    with pytest.raises(NotPossible, match="the client ward is disabled for good"):
        await office.run(clients.PUT, tenant=lab, key="ward", name="x")

    assert (await office.run(clients.SHOW, client=first["client_id"]))["disabled"] is True


async def test_clients_are_listed_with_their_last_use(
    office: Office, lab: str, other: str
) -> None:
    used, unused, theirs = [
        (await office.run(clients.ADD, tenant=tenant))["client_id"] for tenant in (lab, lab, other)
    ]
    await office.store.put_client_uses({used: office.clock()})

    listed = await office.run(clients.LIST, tenant="Lab")
    every = await office.run(clients.LIST)

    uses = {one["client_id"]: one["last_used"] for one in listed}
    assert uses == {used: instant(office.clock()), unused: None}
    assert {one["client_id"] for one in every} == {used, unused, theirs}


async def test_both_secrets_work_until_the_end_of_the_grace(office: Office, lab: str) -> None:
    added = await office.run(clients.ADD, tenant=lab)
    id_, old = added["client_id"], added["client_secret"]

    rotated = await office.run(clients.ROTATE, client=id_, grace_seconds=60)

    assert (rotated["grace_seconds"], rotated["disabled"]) == (60, False)
    office.clock.forward(seconds=59.999)
    assert await is_right(office, id_, old)
    office.clock.now += 1
    assert not await is_right(office, id_, old)
    assert await is_right(office, id_, rotated["client_secret"])


async def test_the_usual_grace_is_that_of_the_settings(office: Office, lab: str) -> None:
    id_ = (await office.run(clients.ADD, tenant=lab))["client_id"]

    usual = office.administration.config.auth.secret_grace_seconds
    assert (await office.run(clients.ROTATE, client=id_))["grace_seconds"] == usual
    assert (await office.run(clients.ROTATE, client=id_, grace_seconds=0))["grace_seconds"] == 0


async def test_a_rotation_leaves_the_other_clients_of_the_tenant(office: Office, lab: str) -> None:
    first, second = [await office.run(clients.ADD, tenant=lab) for _ in range(2)]

    await office.run(clients.ROTATE, client=first["client_id"], grace_seconds=0)

    assert not await is_right(office, first["client_id"], first["client_secret"])
    assert await is_right(office, second["client_id"], second["client_secret"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SCOPES, ["system/*.rs"]),
        (["system/DiagnosticReport.rs", "webhooks.read"], ["webhooks.read"]),
    ],
)
async def test_scopes_are_replaced(
    office: Office, lab: str, before: list[str], after: list[str]
) -> None:
    added = await office.run(clients.ADD, tenant=lab, name="ward", scopes=before)
    id_ = added["client_id"]

    changed = await office.run(clients.SCOPES, client="ward", scopes=after)

    found = await office.store.client(id_)
    assert found is not None
    assert (changed["scopes"], found.scopes) == (after, tuple(after))
    with pytest.raises(InvalidContent, match="scopes: is required"):
        await office.run(clients.SCOPES, client=id_)


async def test_what_is_not_edited_stays(office: Office, lab: str) -> None:
    added = await office.run(clients.ADD, tenant=lab, name="ward", networks=["192.0.2.0/24"])
    id_ = added["client_id"]

    renamed = await office.run(clients.EDIT, client=id_, name="x")
    opened = await office.run(clients.EDIT, client=id_, networks=[])

    assert (renamed["name"], renamed["networks"]) == ("x", ["192.0.2.0/24"])
    assert (opened["name"], opened["networks"]) == ("x", [])


async def test_keys_take_the_place_of_a_secret_after_the_grace(office: Office, lab: str) -> None:
    added = await office.run(clients.ADD, tenant=lab, name="ward")
    id_, secret = added["client_id"], added["client_secret"]
    _private, public = new_key_pair()

    edited = await office.run(clients.EDIT, client=id_, jwks=public)

    assert edited["name"] == "ward"
    grace = office.administration.config.auth.secret_grace_seconds
    assert edited["valid_until"] == instant(office.clock() + grace * 1000)
    assert await is_right(office, id_, secret)
    office.clock.forward(seconds=grace)
    assert not await is_right(office, id_, secret)


@pytest.mark.parametrize(
    ("operation", "given"),
    [("ROTATE", {}), ("EDIT", {}), ("DISABLE", {}), ("SCOPES", {"scopes": ["webhooks.read"]})],
)
async def test_acts_on_a_client_are_in_the_chain_of_its_tenant(
    office: Office, lab: str, other: str, operation: str, given: dict[str, Any]
) -> None:
    id_ = (await office.run(clients.ADD, tenant=other))["client_id"]
    before = await office.records()

    await office.run(getattr(clients, operation), client=id_, **given)

    action = f"client.{operation.lower()}"
    assert (await office.records())[len(before) :] == [
        (other, action, status, [f"Client/{id_}"]) for status in (BEGUN, 200)
    ]


async def test_a_client_is_meant_by_its_name(office: Office, lab: str) -> None:
    added = await office.run(clients.ADD, tenant=lab, name="ward")

    assert (await office.run(clients.SHOW, client="ward"))["client_id"] == added["client_id"]
    with pytest.raises(NoSuchRecord):
        await office.run(clients.SHOW, client="war")


async def test_a_disabled_tenant_gets_no_client(office: Office, lab: str) -> None:
    await office.run(tenants.DISABLE, tenant=lab)

    with pytest.raises(ConfigurationError, match="is disabled"):
        await office.run(clients.ADD, tenant=lab)


async def test_a_disabled_client_is_not_described_even_as_it_was(office: Office, lab: str) -> None:
    first = await office.run(clients.PUT, tenant=lab, key="ward")
    await office.run(clients.DISABLE, client=first["client_id"])

    with pytest.raises(NotPossible):
        await office.run(clients.PUT, tenant=lab, key="ward")
