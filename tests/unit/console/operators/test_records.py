"""The pages of one tenant, client and endpoint, of chains, orders and keys, for operators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.administration import clients, endpoints, keys, tenants
from fhirpub.config.quotas import QuotasConfig
from fhirpub.console.operators.orders import list_erasures, list_keys
from fhirpub.console.operators.overview import state_of_client
from fhirpub.console.operators.records import (
    _attempt,
    _without,
    show_client,
    show_endpoint,
    show_tenant,
)
from fhirpub.console.operators.trail import list_chains, show_chain, verify_chain
from fhirpub.console.visit import Html
from fhirpub.errors import NoSuchRecord
from fhirpub.storage.contract import ClientSecret
from fhirpub.testing.contracts.store.records import a_client
from fhirpub.testing.contracts.webhooks.records import queue
from tests.audit_trail import a_record, seal
from tests.unit.administration.office import URL, Office
from tests.unit.console.operators.desk import a_visit, cells_of
from tests.unit.console.pages.visiting import as_page


@pytest.fixture
async def ward(office: Office, lab: str) -> str:
    return str((await office.run(clients.ADD, tenant=lab, name="ward"))["client_id"])


def acts_of(page: Html) -> list[str]:
    return [title for title, _path in page.values["acts"]]


async def test_a_tenant_is_shown_with_its_own_clients_and_endpoints(
    office: Office, lab: str, ward: str, lis: str
) -> None:
    other = (await office.run(tenants.ADD, name="Other"))["id"]
    await office.run(clients.ADD, tenant=other, name="theirs")
    gone = (await office.run(endpoints.ADD, tenant=lab, url=URL))["id"]
    await office.run(endpoints.REMOVE, endpoint=gone)

    page = as_page(await show_tenant(a_visit(office, lab)))

    _quotas, their_clients, their_endpoints = page.values["tables"]
    assert (page.title, page.section) == ("Lab", "tenants")
    assert [row[:2] for row in cells_of(their_clients)] == [["ward", ward]]
    assert [row[:2] for row in cells_of(their_endpoints)] == [["lis", lis]]


async def test_a_tenant_can_be_enabled_if_it_is_disabled_and_disabled_if_not(
    office: Office, lab: str
) -> None:
    before = acts_of(as_page(await show_tenant(a_visit(office, lab))))
    await office.run(tenants.DISABLE, tenant=lab)
    after = acts_of(as_page(await show_tenant(a_visit(office, lab))))

    assert ("Disable" in before, "Enable" in before) == (True, False)
    assert ("Disable" in after, "Enable" in after) == (False, True)


async def test_the_limits_of_a_tenant_are_shown_with_what_is_used(
    office: Office, lab: str
) -> None:
    limited = office.with_config(quotas=QuotasConfig(tenant_requests_per_minute=600))

    page = as_page(await show_tenant(a_visit(limited, lab)))

    assert cells_of(page.values["tables"][0])[:2] == [
        ["requests per minute", "600", "0"],
        ["requests at a time", "no limit", "not counted"],
    ]


@pytest.mark.parametrize(
    ("count", "title"), [(20, "Clients"), (21, "Clients, the first 20 of 21")]
)
async def test_few_clients_are_on_the_page_of_a_tenant(
    office: Office, lab: str, count: int, title: str
) -> None:
    for _ in range(count):
        await office.store.add_client(a_client(tenant=lab))

    page = as_page(await show_tenant(a_visit(office, lab)))

    table = page.values["tables"][1]
    assert (table.title, len(table.rows)) == (title, 20)


async def test_an_application_has_other_acts_than_a_person(
    office: Office, lab: str, ward: str
) -> None:
    person = a_client(tenant=lab, name="Ada")
    await office.store.add_client(person)

    of_machine = acts_of(as_page(await show_client(a_visit(office, ward))))
    of_person = acts_of(as_page(await show_client(a_visit(office, person.id))))

    assert {*of_machine} - {*of_person} == {"Create a new secret", "Revoke a token"}
    assert {*of_person} - {*of_machine} == {"Invite", "Remove a passkey"}


async def test_nothing_can_be_done_with_a_disabled_client(office: Office, ward: str) -> None:
    await office.run(clients.DISABLE, client=ward)

    assert acts_of(as_page(await show_client(a_visit(office, ward)))) == []


async def test_a_client_leads_to_what_it_did_in_the_chain_of_its_tenant(
    office: Office, lab: str, ward: str
) -> None:
    page = as_page(await show_client(a_visit(office, "ward")))

    assert page.values["links"] == [
        ("What it did", f"/console/operations/audit/{lab}?agent={ward}")
    ]


async def test_an_endpoint_is_shown_with_its_latest_deliveries(
    office: Office, lab: str, lis: str
) -> None:
    await queue(office.store, 21, endpoint=lis, tenant=lab)

    page = as_page(await show_endpoint(a_visit(office, "lis")))

    (table,) = page.values["tables"]
    assert page.title == "lis"
    assert len(table.rows) == 20
    assert "evt_21" in cells_of(table)[0][0]
    assert len(page.values["charts"]) == 2


async def test_nothing_can_be_done_with_a_removed_endpoint(office: Office, lis: str) -> None:
    await office.run(endpoints.REMOVE, endpoint=lis)

    assert acts_of(as_page(await show_endpoint(a_visit(office, lis)))) == []


async def test_a_record_that_does_not_exist_is_named(office: Office) -> None:
    for page in (show_tenant, show_client, show_endpoint):
        with pytest.raises(NoSuchRecord):
            await page(a_visit(office, "guess"))


async def test_chains_are_listed_with_the_names_of_their_tenants(office: Office, lab: str) -> None:
    await seal(office.store, "", [a_record()])

    page = as_page(await list_chains(a_visit(office)))

    assert page.values["rows"] == [("The service itself", "service"), ("Lab", lab)]


async def test_a_chain_shows_its_newest_records_and_leads_to_older_ones(
    office: Office, lab: str
) -> None:
    await seal(office.store, lab, [a_record("read") for _ in range(51)])

    page = as_page(await show_chain(a_visit(office, lab, action="read")))

    assert page.values["name"] == "Lab"
    assert len(page.values["table"].rows) == 50
    assert "action=read" in page.values["following"]
    assert not {"chain", "from", "limit"} & {one.name for one in page.values["fields"]}


async def test_a_chain_that_is_right_is_shown_as_such(office: Office, lab: str) -> None:
    await seal(office.store, lab, [a_record("read")])

    shown = as_page(await show_chain(a_visit(office, lab)))
    verified = as_page(await verify_chain(a_visit(office, lab)))

    assert (shown.values["is_right"], shown.values["verdict"]) == (False, [])
    assert verified.values["is_right"] is True
    assert verified.values["following"] == ""


async def test_orders_to_erase_are_listed_with_forms_for_a_tenant(
    office: Office, lab: str
) -> None:
    page = as_page(await list_erasures(a_visit(office, tenant=lab)))

    assert page.values["table"].rows == []
    assert page.values["following"] == ""
    assert all(path.endswith(f"?tenant={lab}") for _title, path in page.values["acts"])
    assert "after" not in [one.name for one in page.values["fields"]]


async def test_orders_of_a_tenant_that_does_not_exist_are_refused(office: Office) -> None:
    page = as_page(await list_erasures(a_visit(office, tenant="guess")))

    assert page.status == 404


async def test_signing_keys_are_listed(office: Office) -> None:
    new = await office.run(keys.ROTATE)

    page = as_page(await list_keys(a_visit(office)))

    assert cells_of(page.values["table"])[0][0] == new["kid"]


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "enabled"),
        ({"disabled": True}, "disabled"),
        ({"secrets": (ClientSecret(b"d", 1_000),)}, "expired"),
        ({"secrets": (ClientSecret(b"d", 1_001),)}, "enabled"),
        ({"secrets": (ClientSecret(b"d", 1), ClientSecret(b"e"))}, "enabled"),
        ({"secrets": (ClientSecret(b"d", 1),), "jwks_url": "https://x"}, "enabled"),
        ({"secrets": (ClientSecret(b"d", 1),), "disabled": True}, "disabled"),
    ],
)
def test_a_client_is_enabled_disabled_or_expired(changes: dict[str, Any], state: str) -> None:
    assert state_of_client(replace(a_client(), **changes), 1_000) == state


def test_members_that_are_shown_otherwise_are_left_out() -> None:
    assert _without({"state": "active", "by_day": [], "attempts": 1}, "state", "by_day") == {
        "attempts": 1
    }


@pytest.mark.parametrize(
    ("attempt", "text"),
    [
        ({"number": 1, "why": "", "status": 200, "milliseconds": 1_234}, "1: 200 in 1,234 ms"),
        ({"number": 2, "why": "no answer", "status": None}, "2: no answer"),
    ],
    ids=["answered", "under way"],
)
def test_an_attempt_is_one_line(attempt: dict[str, Any], text: str) -> None:
    assert _attempt(attempt) == text
