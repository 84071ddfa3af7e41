"""Operations as pages: a form, a confirmation before what is final, and the result."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from fhirpub.administration import clients
from fhirpub.console.operators.catalogue import OFFERED, by_command
from fhirpub.console.operators.operations import _done, run_operation, show_all, show_operation
from fhirpub.console.visit import Html, PageRefused, Redirect
from tests.unit.administration.office import Office
from tests.unit.console.operators.desk import a_visit, facts_in
from tests.unit.console.pages.visiting import as_page


@pytest.fixture
async def ward(office: Office, lab: str) -> str:
    added = await office.run(clients.ADD, tenant=lab, name="ward", networks=["192.0.2.0/24"])
    return str(added["client_id"])


def values_in(page: Html) -> dict[str, str]:
    return {one.name: one.value for one in page.values["fields"]}


async def test_an_operation_that_no_page_has_is_not_found(office: Office) -> None:
    for name in ("nonsense", "deliveriesShow", "auditExport", ""):
        for page in (show_operation, run_operation):
            with pytest.raises(PageRefused) as refused:
                await page(a_visit(office, name))
            assert refused.value.status == 404


async def test_all_operations_are_listed_with_those_that_have_no_page(office: Office) -> None:
    page = as_page(await show_all(a_visit(office)))

    listed = [one.name for _title, some in page.values["subjects"] for one in some]
    assert sorted(listed) == sorted(OFFERED)
    assert "audit export" in page.values["left_out"]


async def test_a_form_has_what_the_query_names(office: Office, lab: str) -> None:
    page = as_page(await show_operation(a_visit(office, "clientAdd", tenant=lab, name="x")))

    assert (page.template, page.status, page.section) == ("operator_form.html", 200, "clients")
    assert (values_in(page)["tenant"], values_in(page)["name"]) == (lab, "x")


async def test_a_form_of_a_change_has_what_there_is_now(office: Office, ward: str) -> None:
    page = as_page(await show_operation(a_visit(office, "clientEdit", client=ward)))

    assert values_in(page) == {
        "client": ward,
        "name": "ward",
        "networks": "192.0.2.0/24",
        "jwks": "",
        "jwks_url": "",
    }


async def test_a_form_of_a_change_of_nothing_says_what_is_wrong(office: Office) -> None:
    page = as_page(await show_operation(a_visit(office, "clientEdit", client="guess")))

    assert page.status == 404
    assert page.values["problems"].others == ["there is no client guess"]


async def test_what_reads_is_shown_with_its_result(office: Office, ward: str) -> None:
    page = as_page(await show_operation(a_visit(office, "clientShow", client=ward)))

    assert page.template == "operator_read.html"
    assert facts_in(page.values["shown"].facts)["Name"] == ["ward"]


async def test_a_form_of_what_reads_leads_to_its_page(office: Office) -> None:
    assert await run_operation(a_visit(office, "tenantList")) == Redirect(
        path="/console/operations/run/tenantList"
    )


async def test_what_changes_runs_at_once_if_it_can_be_undone(office: Office, ward: str) -> None:
    form = {"client": ward, "name": "x"}

    page = as_page(await run_operation(a_visit(office, "clientEdit", form=form)))

    assert page.template == "operator_done.html"
    assert page.values["back"] == f"/console/operations/clients/{ward}"
    client = await office.administration.client(ward)
    assert (client.name, client.networks) == ("x", ("192.0.2.0/24",))


async def test_a_field_that_was_emptied_takes_a_value_away(office: Office, ward: str) -> None:
    form = {"client": ward, "name": "ward", "networks": "", "filled": "networks"}

    await run_operation(a_visit(office, "clientEdit", form=form))

    assert (await office.administration.client(ward)).networks == ()


async def test_what_is_wrong_is_shown_with_what_was_entered(office: Office, lab: str) -> None:
    form = {"tenant": lab, "name": "ward", "valid_days": "x"}

    page = as_page(await run_operation(a_visit(office, "clientAdd", form=form)))

    assert (page.template, page.status) == ("operator_form.html", 400)
    assert page.values["problems"].of_fields == {"valid_days": "must be a whole number"}
    assert values_in(page)["name"] == "ward"
    assert await office.store.clients() == []


async def test_the_secret_of_a_new_client_is_shown_apart(office: Office, lab: str) -> None:
    page = as_page(await run_operation(a_visit(office, "clientAdd", form={"tenant": lab})))

    assert [one.label for one in page.values["shown"].secrets] == ["Client secret"]


async def test_what_is_final_is_asked_about_first(office: Office, ward: str) -> None:
    form = {"client": ward, "proof": "p"}

    page = as_page(await run_operation(a_visit(office, "clientDisable", form=form)))

    assert page.template == "operator_confirm.html"
    assert page.values["hidden"] == [("client", ward)]
    facts = facts_in(page.values["facts"])
    assert facts["Name"] == ["ward"]
    assert not (await office.administration.client(ward)).disabled


async def test_what_is_final_is_done_once_it_is_confirmed(office: Office, ward: str) -> None:
    form = {"client": ward, "confirmed": "yes"}

    page = as_page(await run_operation(a_visit(office, "clientDisable", form=form)))

    assert page.template == "operator_done.html"
    assert (await office.administration.client(ward)).disabled


async def test_nothing_is_asked_about_what_does_not_exist(office: Office) -> None:
    page = as_page(await run_operation(a_visit(office, "clientDisable", form={"client": "x"})))

    assert (page.template, page.status) == ("operator_form.html", 404)


async def test_a_secret_is_not_shown_when_it_is_asked_about(office: Office, lab: str) -> None:
    form = {"token": "s3cret"}

    page = as_page(await run_operation(a_visit(office, "tokenRevoke", form=form)))

    assert page.template == "operator_confirm.html"
    assert page.values["facts"] == []


async def test_what_is_wrong_is_named_before_anything_is_asked(office: Office, lab: str) -> None:
    resource = "DiagnosticReport/5a5b5c5d-0000-4000-8000-aabbccddeeff"
    form = {"tenant": lab, "resources": resource}

    page = as_page(await run_operation(a_visit(office, "eraseReport", form=form)))

    assert (page.template, page.status) == ("operator_form.html", 400)
    assert page.values["problems"].of_fields == {"reason": "is required"}


def test_work_that_goes_on_is_sent_again_with_its_place_and_confirmed() -> None:
    result = {"erased": [], "refused": [], "following": "x"}
    form = {"tenant": ["t"], "after": ["before"], "proof": ["p"], "confirmed": ["yes"]}

    page = _done(by_command("erase resume"), result, form)

    assert page.values["following"] == [("tenant", "t"), ("after", "x"), ("confirmed", "yes")]


def test_work_that_is_done_does_not_go_on() -> None:
    result: dict[str, Any] = {"erased": [], "refused": [], "following": None}

    page = _done(by_command("erase resume"), result, {"tenant": ["t"]})

    assert page.values["following"] is None
    assert page.values["back"] == "/console/operations/tenants/t"


async def test_what_removes_something_is_asked_about_although_it_can_be_undone(
    office: Office, lab: str
) -> None:
    form = {"tenant": lab, "type": "DiagnosticReport", "id": str(uuid4())}

    page = as_page(await run_operation(a_visit(office, "holdRelease", form=form)))

    assert page.template == "operator_confirm.html"
