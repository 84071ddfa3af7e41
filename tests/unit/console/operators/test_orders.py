"""The pages of orders to erase and of signing keys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.administration.erasure import operations as erasures
from fhirpub.console.operators.orders import PAGES, _following, list_erasures, list_keys
from fhirpub.testing.contracts.erasure.content import an_erasure
from tests.unit.administration.office import Office
from tests.unit.console.operators.desk import a_visit, cells_of
from tests.unit.console.pages.visiting import as_page


async def ordered(office: Office, tenant: str, id_: str) -> None:
    await office.store.put_erasure(an_erasure(tenant=tenant, id=id_))


async def test_an_order_is_shown_with_when_who_why_and_whose(office: Office, lab: str) -> None:
    await ordered(office, lab, "001")

    page = as_page(await list_erasures(a_visit(office)))

    assert page.values["table"].columns[:4] == ["Type", "Id", "Tenant", "Ordered"]
    (row,) = cells_of(page.values["table"])
    assert row[:3] == ["DiagnosticReport", "001", "Lab"]
    assert row[3].startswith("2027-01-15T08:00:00")
    assert row[4:7] == ["", "eve", "order 7"]
    assert (page.title, page.section, page.status) == ("Erasures", "erasures", 200)


async def test_orders_of_one_tenant_are_shown_without_those_of_others(
    office: Office, lab: str, other: str
) -> None:
    await ordered(office, lab, "001")
    await ordered(office, other, "002")

    page = as_page(await list_erasures(a_visit(office, tenant=other)))

    assert [row[1] for row in cells_of(page.values["table"])] == ["002"]
    assert {one.name: one.value for one in page.values["fields"]}["tenant"] == other


async def test_orders_that_follow_are_asked_for_with_the_same_query(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasures, "_PAGE", 2)
    for number in range(3):
        await ordered(office, lab, f"{number:03}")

    first = as_page(await list_erasures(a_visit(office, tenant=lab, page="1")))
    last = as_page(await list_erasures(a_visit(office, tenant=lab, after=f"{lab}/001")))

    path = f"/console/operations/erasures?tenant={lab}&after={lab}%2F001"
    assert first.values["following"] == path
    assert [row[1] for row in cells_of(last.values["table"])] == ["002"]
    assert last.values["following"] == ""


def test_a_later_place_replaces_the_one_in_the_query() -> None:
    path = _following({"after": "a", "page": "3", "tenant": "t"}, "b")

    assert path == "/console/operations/erasures?after=b&tenant=t"


async def test_orders_lead_to_a_dry_run_resumption_and_holds(office: Office) -> None:
    page = as_page(await list_erasures(a_visit(office)))

    run = "/console/operations/run"
    assert page.values["acts"] == [
        ("Show what would be erased", f"{run}/eraseReportDryRun"),
        ("Complete interrupted orders", f"{run}/eraseResume"),
        ("Put on hold", f"{run}/holdAdd"),
        ("List holds", f"{run}/holdList"),
    ]


async def test_a_refused_query_shows_why_beside_an_empty_table(office: Office) -> None:
    page = as_page(await list_erasures(a_visit(office, tenant="guess")))

    assert page.values["table"].rows == []
    assert page.values["following"] == ""
    problems = page.values["problems"]
    assert [*problems.of_fields, *problems.others]


async def test_keys_can_be_made_and_tokens_revoked(office: Office) -> None:
    page = as_page(await list_keys(a_visit(office)))

    run = "/console/operations/run"
    assert [path for _title, path in page.values["acts"]] == [
        f"{run}/keysRotate",
        f"{run}/tokenRevoke",
        f"{run}/secretsReseal",
    ]
    assert (page.title, page.section) == ("Signing keys", "keys")


def test_orders_and_keys_are_for_operators() -> None:
    assert [(one.path, one.audience) for one in PAGES] == [
        ("/operations/erasures", "operator"),
        ("/operations/keys", "operator"),
    ]


async def test_a_form_of_orders_asks_for_a_tenant_and_no_place(office: Office) -> None:
    names = [one.name for one in as_page(await list_erasures(a_visit(office))).values["fields"]]

    assert "tenant" in names
    assert "after" not in names


async def test_a_finished_order_has_its_time(office: Office, lab: str) -> None:
    order = replace(an_erasure(tenant=lab, id="001"), finished=1_800_000_000_000)
    await office.store.put_erasure(order)

    table = as_page(await list_erasures(a_visit(office))).values["table"]

    (row,) = cells_of(table)
    found = dict(zip(table.columns, row, strict=True))
    assert found["Finished"].startswith("2027-01-15T08:00:00")
