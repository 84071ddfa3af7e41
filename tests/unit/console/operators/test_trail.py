"""The pages of the audit trail: its chains, their records, and what came of a check."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.audit.record import Agent
from fhirpub.console.operators.trail import (
    PAGES,
    _chain,
    _record,
    list_chains,
    show_chain,
    verify_chain,
)
from fhirpub.console.visit import Html
from tests.audit_trail import CLIENT, NOON, a_record, seal
from tests.unit.administration.office import Office
from tests.unit.console.operators.desk import a_visit, facts_in
from tests.unit.console.pages.visiting import as_page


def texts_of(page: Html) -> list[dict[str, str]]:
    table = page.values["table"]
    return [
        {
            column: ", ".join(piece.text for piece in cell)
            for column, cell in zip(table.columns, row, strict=True)
        }
        for row in table.rows
    ]


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        ({"status": 102}, "begun"),
        ({"status": 101}, "101"),
        ({"status": 200}, "200"),
        ({"status": 401, "count": 1}, "401"),
        ({"status": 401, "count": 2}, "401, 2 times"),
        ({"status": 401, "count": 1_234}, "401, 1,234 times"),
        ({"status": 102, "count": 2}, "begun"),
    ],
)
def test_a_record_shows_what_came_of_it_and_how_often(
    members: dict[str, Any], outcome: str
) -> None:
    assert _record(members)["outcome"] == outcome


@pytest.mark.parametrize(
    ("members", "by", "address"),
    [
        ({"client": "c", "address": "192.0.2.7"}, "Client/c", "192.0.2.7"),
        ({"client": "c"}, "Client/c", ""),
        ({"client": "c", "user": "ana"}, "Client/c", ""),
        ({"user": "ana", "host": "h-1"}, "ana", "h-1"),
        ({"user": "ana", "host": "h-1", "address": "192.0.2.7"}, "ana", "192.0.2.7"),
        ({"host": "h-1", "address": "192.0.2.7"}, "", "192.0.2.7"),
        ({}, "", ""),
        ({"status": 102}, "", ""),
        ({"status": 401, "count": 1}, "", ""),
        ({"status": 401, "count": 1_234}, "", ""),
    ],
)
def test_a_record_shows_who_acted_and_from_where(
    members: dict[str, Any], by: str, address: str
) -> None:
    shown = _record({"status": 200, **members})

    assert (shown["by"], shown["address"]) == (by, address)


async def test_a_record_has_its_columns_and_leads_to_its_client(office: Office, lab: str) -> None:
    record = a_record("search", what=("DiagnosticReport/1",), query="name=Ada&_count=5")
    await seal(office.store, lab, [record])

    page = as_page(await show_chain(a_visit(office, lab, action="search")))

    (row,) = texts_of(page)
    assert row["When"].startswith("2027-01-15T08:00:00")
    assert (row["Action"], row["Outcome"]) == ("search", "200")
    assert row["By"] == f"Client/{CLIENT.client}"
    assert row["Records"] == "DiagnosticReport/1"
    assert row["Searched by"] == "name, _count"
    assert (row["Address"], row["Request"]) == ("192.0.2.7", "r-1")
    place = page.values["table"].rows[0][3][0].href
    assert place == f"/console/operations/clients/{CLIENT.client}"


async def test_of_a_record_about_many_only_few_are_shown(office: Office, lab: str) -> None:
    what = tuple(f"DiagnosticReport/{number}" for number in range(7))
    await seal(office.store, lab, [a_record("search", what=what)])

    (row,) = texts_of(as_page(await show_chain(a_visit(office, lab, action="search"))))

    assert row["Records"].endswith("DiagnosticReport/4, and 2 more")


async def test_older_records_are_those_after_the_last_one_shown(office: Office, lab: str) -> None:
    records = [a_record("read", at=NOON + number) for number in range(52)]
    await seal(office.store, lab, records)
    first = as_page(await show_chain(a_visit(office, lab, action="read")))
    path, _, query = first.values["following"].partition("?")
    given = dict(pair.split("=") for pair in query.split("&"))

    last = as_page(await show_chain(a_visit(office, lab, **given)))

    assert path == f"/console/operations/audit/{lab}"
    assert len(last.values["table"].rows) == 2
    assert last.values["following"] == ""


async def test_a_chain_shows_no_record_of_another(office: Office, lab: str, other: str) -> None:
    await seal(office.store, lab, [a_record("read")])
    await seal(office.store, other, [a_record("update")])

    actions = {row["Action"] for row in texts_of(as_page(await show_chain(a_visit(office, lab))))}

    assert "read" in actions
    assert "update" not in actions


async def test_the_chain_of_the_service_has_a_name_of_its_own(office: Office) -> None:
    await seal(office.store, "", [a_record("key.add", agent=Agent(user="ana", host="h-1"))])

    page = as_page(await show_chain(a_visit(office, "service")))

    assert page.values["name"] == "The service itself"
    assert page.values["path"] == "/console/operations/audit/service"
    assert [row["By"] for row in texts_of(page)] == ["ana"]


async def test_a_check_names_what_it_found(office: Office, lab: str) -> None:
    await seal(office.store, lab, [a_record("read")])

    page = as_page(await verify_chain(a_visit(office, lab)))

    assert facts_in(page.values["verdict"])["Verdict"][0] == "right"
    path = f"/console/operations/run/auditVerify?chain={lab}"
    assert page.values["checkpoints"] == path


async def test_a_filter_that_is_wrong_is_refused_beside_its_field(
    office: Office, lab: str
) -> None:
    page = as_page(await show_chain(a_visit(office, lab, since="yesterday")))

    fields = {one.name: one for one in page.values["fields"]}
    assert page.status == 400
    assert (fields["since"].value, bool(fields["since"].problem)) == ("yesterday", True)
    assert page.values["table"].rows == []


async def test_chains_that_are_looked_for_by_name_are_listed(
    office: Office, lab: str, other: str
) -> None:
    for tenant in (lab, other):
        await seal(office.store, tenant, [a_record()])

    page = as_page(await list_chains(a_visit(office, find="oth")))

    assert page.values["rows"] == [("Other", other)]
    assert (page.title, page.section) == ("Audit trail", "audit")


def test_the_trail_is_for_operators_and_a_check_is_asked_for_by_a_form() -> None:
    assert [(one.method, one.path, one.run) for one in PAGES if one.audience == "operator"] == [
        ("GET", "/operations/audit", list_chains),
        ("GET", "/operations/audit/{}", show_chain),
        ("POST", "/operations/audit/{}", verify_chain),
    ]


async def test_the_chain_of_a_tenant_has_its_name(office: Office, lab: str) -> None:
    assert as_page(await show_chain(a_visit(office, lab))).values["name"] == "Lab"


@pytest.mark.parametrize(("verdict", "is_right"), [("right", True), ("wrong", False), ("", False)])
async def test_only_a_right_chain_is_shown_as_right(
    office: Office, lab: str, verdict: str, *, is_right: bool
) -> None:
    page = await _chain(a_visit(office, lab), {"verdict": verdict} if verdict else {})

    assert page.values["is_right"] is is_right


async def test_a_form_asks_for_no_place_in_the_chain(office: Office, lab: str) -> None:
    fields = as_page(await show_chain(a_visit(office, lab))).values["fields"]

    assert not {"chain", "from", "limit"} & {one.name for one in fields}
