"""Long results of operations, page by page, and where work goes on."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import clients, endpoints, tenants
from fhirpub.administration.erasure import operations as erasures
from fhirpub.administration.erasure.work import MAX_AT_ONCE
from fhirpub.console.operators.catalogue import by_command
from fhirpub.console.operators.listing import ROWS
from fhirpub.console.operators.operations import (
    _back,
    _confirm,
    _done,
    _erase_form,
    _hidden,
    _paged,
    show_operation,
)
from fhirpub.testing.contracts.erasure.content import an_erasure
from fhirpub.testing.samples import REPORT
from tests.unit.administration.erasure.test_operations import published
from tests.unit.administration.office import URL, Office
from tests.unit.console.operators.desk import a_visit, facts_in
from tests.unit.console.pages.visiting import as_page
from tests.unit.console.test_visit import a_visit as a_plain_visit

MANY = [{"name": f"n{number}"} for number in range(ROWS + 1)]


# Long results


async def test_a_list_has_the_page_that_is_asked_for() -> None:
    shown, listing = await _paged(a_plain_visit(query={"page": "2"}), MANY)

    assert listing is not None
    assert (shown, listing.page, listing.total) == (MANY[ROWS:], 2, ROWS + 1)


async def test_of_several_lists_the_longest_has_pages() -> None:
    result = {"count": 3, "few": MANY[:2], "many": MANY}

    shown, listing = await _paged(a_plain_visit(), result)

    assert listing is not None
    assert shown == {"count": 3, "few": MANY[:2], "many": MANY[:ROWS]}


@pytest.mark.parametrize(("count", "has_pages"), [(1, False), (ROWS, False), (ROWS + 1, True)])
async def test_a_list_in_a_record_has_pages_once_it_does_not_fit_on_one(
    count: int,
    *,
    has_pages: bool,
) -> None:
    result = {"clients": MANY[:count]}

    shown, listing = await _paged(a_plain_visit(), result)

    assert (listing is not None) == has_pages
    assert shown == {"clients": MANY[:ROWS][:count]}


async def test_a_short_list_in_a_record_is_looked_through_as_well() -> None:
    shown, listing = await _paged(a_plain_visit(query={"find": "n2"}), {"clients": MANY[:3]})

    assert listing is not None
    assert shown == {"clients": [{"name": "n2"}]}


@pytest.mark.parametrize("result", [None, {}, {"name": "x", "networks": ["a"]}])
async def test_a_result_without_a_list_of_records_has_no_pages(result: Any) -> None:
    assert await _paged(a_plain_visit(query={"find": "x"}), result) == (result, None)


async def test_a_form_that_lacks_what_is_required_shows_no_result(office: Office) -> None:
    page = as_page(await show_operation(a_visit(office, "deliveriesList")))

    assert (page.template, page.status) == ("operator_read.html", 200)
    assert (page.values["shown"], page.values["listing"], page.values["following"]) == (
        None,
        None,
        "",
    )


async def test_what_reads_shows_a_refusal_with_its_status(office: Office) -> None:
    page = as_page(await show_operation(a_visit(office, "clientShow", client="guess")))

    assert (page.status, page.section, page.title) == (
        404,
        "clients",
        by_command("client show").summary,
    )
    assert page.values["problems"].others == ["there is no client guess"]
    assert page.values["shown"] is None


async def test_ids_in_a_result_lead_to_the_pages_of_their_kind(office: Office, lab: str) -> None:
    page = as_page(await show_operation(a_visit(office, "tenantList")))

    (table,) = page.values["shown"].tables
    names = [cell[0].href for cell in table.rows[0] if cell and cell[0].text == "Lab"]
    assert names == [f"/console/operations/tenants/{lab}"]


async def test_more_of_a_long_result_is_read_from_its_place(
    office: Office, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasures, "_PAGE", 2)
    for number in range(3):
        order = an_erasure(tenant=lab, id=f"{number:03}", ordered=1)
        await office.store.put_erasure(order)

    page = as_page(await show_operation(a_visit(office, "eraseList", tenant=lab)))
    path = f"/console/operations/run/eraseList?tenant={lab}&after={lab}%2F001"
    assert page.values["following"] == path

    query = {"tenant": lab, "after": f"{lab}/001"}
    page = as_page(await show_operation(a_visit(office, "eraseList", **query)))
    assert page.values["following"] == ""


# What was changed


def test_what_was_planned_can_be_erased_as_far_as_one_call_takes() -> None:
    planned = [{"type": "DiagnosticReport", "id": str(one)} for one in range(MAX_AT_ONCE + 2)]

    form = _erase_form(planned, {"tenant": ["t"], "reason": ["x"]})

    assert form["operation"] is by_command("erase report")
    fields = {one.name: one.value for one in form["fields"]}
    assert fields["tenant"] == "t"
    assert fields["reason"] == ""
    resources = fields["resources"].split("\n")
    assert resources[0] == "DiagnosticReport/0"
    assert (len(resources), form["left"]) == (MAX_AT_ONCE, 2)


@pytest.mark.parametrize("count", [1, MAX_AT_ONCE])
def test_of_few_reports_none_is_left_for_another_call(count: int) -> None:
    assert _erase_form([{"type": "DiagnosticReport", "id": "a"}] * count, {})["left"] == 0


@pytest.mark.parametrize(
    ("planned", "is_offered"), [([], False), ([{"type": "A", "id": "1"}], True)]
)
def test_erasing_is_offered_once_something_was_planned(
    planned: list[dict[str, str]],
    *,
    is_offered: bool,
) -> None:
    result = {"planned": planned, "held": []}

    page = _done(by_command("erase report --dry-run"), result, {"tenant": ["t"]})

    assert (page.values["erase"] is not None) == is_offered


def test_another_operation_than_a_plan_offers_no_erasing() -> None:
    page = _done(by_command("client edit"), {"id": "c"}, {"client": ["c"]})

    assert page.values["erase"] is None
    assert page.title == by_command("client edit").summary
    assert page.section == "clients"


@pytest.mark.parametrize(
    ("command", "result", "form", "path"),
    [
        ("client edit", {"id": "c"}, {"client": ["c"]}, "clients/c"),
        ("endpoint set", {"id": "e"}, {"endpoint": ["e"]}, "endpoints/e"),
        ("tenant rename", {"id": "t"}, {"tenant": ["t"]}, "tenants/t"),
        ("tenant add", {"id": "t"}, {"name": ["x"]}, "tenants/t"),
        ("client add", {"id": "c"}, {"tenant": ["t"]}, "tenants/t"),
    ],
)
def test_a_change_leads_back_to_what_was_changed_or_made(
    command: str, result: dict[str, str], form: dict[str, list[str]], path: str
) -> None:
    assert _back(by_command(command), result, form) == f"/console/operations/{path}"


@pytest.mark.parametrize("result", [None, [], {}, {"id": "k"}])
def test_a_change_of_what_has_no_page_leads_nowhere(result: Any) -> None:
    assert _back(by_command("token revoke"), result, {}) == ""


def test_only_what_an_operation_takes_is_sent_once_more() -> None:
    form = {"client": ["c"], "filled": ["networks"], "proof": ["p"], "other": ["x"], "name": ["n"]}

    assert _hidden(by_command("client edit"), form) == [
        ("client", "c"),
        ("filled", "networks"),
        ("name", "n"),
    ]


# What is asked first


async def test_the_owner_of_an_endpoint_is_shown_by_its_description_or_url(
    office: Office, lab: str
) -> None:
    for description, name in (("lis", "lis"), ("", URL)):
        added = await office.run(endpoints.ADD, tenant=lab, url=URL, description=description)
        operation, given = by_command("endpoint rm"), {"endpoint": added["id"]}

        page = as_page(await _confirm(a_visit(office), operation, given))

        facts = facts_in(page.values["facts"])
        assert facts["Name"] == [name]
        assert page.section == "endpoints"


async def test_what_is_asked_begins_as_a_sentence_goes_on_and_leads_back(
    office: Office, lab: str
) -> None:
    client = (await office.run(clients.ADD, tenant=lab, name="ward"))["client_id"]

    page = as_page(
        await _confirm(a_visit(office), by_command("client disable"), {"client": client})
    )

    summary = by_command("client disable").summary
    assert page.values["consequence"] == summary[0].lower() + summary[1:]
    assert page.values["back"] == f"/console/operations/run/clientDisable?client={client}"
    assert page.values["planned"] == ()


async def test_a_form_of_a_change_shows_what_cannot_be_undone(office: Office) -> None:
    for command, asks in (("clientDisable", True), ("endpointRm", True), ("tenantAdd", False)):
        page = as_page(await show_operation(a_visit(office, command)))
        assert page.values["asks"] == asks
        assert page.values["problems"].others == ()


async def test_a_form_of_a_change_of_nothing_named_is_empty(office: Office) -> None:
    page = as_page(await show_operation(a_visit(office, "tenantRename")))

    assert page.status == 200
    assert {one.value for one in page.values["fields"]} == {""}


async def test_the_values_of_a_tenant_are_those_it_has(office: Office) -> None:
    tenant = (await office.run(tenants.ADD, name="Ward 7"))["id"]

    page = as_page(await show_operation(a_visit(office, "tenantRename", tenant=tenant)))

    assert {one.name: one.value for one in page.values["fields"]}["name"] == "Ward 7"


async def test_an_order_to_erase_shows_what_would_go_before_it_is_confirmed(
    office: Office, lab: str
) -> None:
    first, other = [await published(office, lab, value) for value in ("R-1", "R-2")]
    operation = by_command("erase report")
    given = {"tenant": lab, "resources": [f"{REPORT}/{first.id}"], "reason": "order 7"}

    page = as_page(await _confirm(a_visit(office), operation, given))

    (table,) = page.values["planned"]
    texts = {piece.text for row in table.rows for cell in row for piece in cell}
    assert first.id in texts
    assert other.id not in texts
    facts = facts_in(page.values["facts"])
    assert facts["Reason"] == ["order 7"]
    assert page.values["operation"] is operation


def test_what_was_changed_leads_to_its_page() -> None:
    page = _done(by_command("tenant rename"), {"id": "t", "name": "Lab"}, {"tenant": ["t"]})

    facts = {one.label: one.pieces for one in page.values["shown"].facts}
    assert [piece.href for piece in facts["Id"]] == ["/console/operations/tenants/t"]


async def test_a_page_that_reads_is_of_its_operation(office: Office) -> None:
    page = as_page(await show_operation(a_visit(office, "tenantList")))

    assert page.values["operation"] is by_command("tenant list")
    assert page.values["fields"] == []
