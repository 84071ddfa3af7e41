"""The forms of operators: what they change, what they refuse, and what they ask before."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from fhirpub.auth.clients import NewClient, add_client
from fhirpub.console.operators.catalogue import OFFERED, needs_confirmation
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.receiver import Receiver
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import register_body
from tests.console.operating import OPERATIONS, SCRIPT, form_path, match, run, send, sign_in
from tests.console.tabs import KEY, Tab, text_of

CLIENT = r"/operations/clients/([0-9a-f-]{36})"
ENDPOINT = r"/operations/endpoints/([0-9a-f-]{36})"

CHANGES = [one for one in OFFERED.values() if one.method != "GET"]
NEEDY = [one.name for one in CHANGES if any(each.required for each in one.parameters)]


@pytest.fixture
def operator(console: RunningService) -> Tab:
    """A tab in which an operator signed in by the key."""
    return sign_in(console, KEY)


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def problem_at(page: str, name: str) -> str:
    """Return what a page says is wrong with a field."""
    found = re.search(rf'id="field-{name}-hint">.*?<strong class="problem">(.*?)</strong>', page)
    return found[1] if found else ""


def value_of(page: str, name: str) -> str:
    """Return what is in a field of one line."""
    found = re.search(rf'<input id="field-{name}"[^>]* value="([^"]*)"', page)
    assert found is not None, name
    return found[1]


@pytest.mark.parametrize("name", [one.name for one in CHANGES])
def test_each_change_has_a_form_with_all_of_its_parameters(name: str, operator: Tab) -> None:
    page = operator.get(form_path(name)).body.decode()

    for parameter in OFFERED[name].parameters:
        assert f'name="{parameter.name}"' in page
        assert f'for="field-{parameter.name}"' in page
        assert problem_at(page, parameter.name) == ""


@pytest.mark.parametrize("name", NEEDY)
def test_a_form_that_lacks_what_is_required_is_refused_at_its_fields(
    name: str, operator: Tab
) -> None:
    required = [one.name for one in OFFERED[name].parameters if one.required]
    answer = send(operator, name)

    assert answer.status == 400
    page = answer.body.decode()
    assert [one for one in required if "is required" not in problem_at(page, one)] == []


def test_a_tenant_is_added_and_renamed(operator: Tab) -> None:
    added = run(operator, "tenantAdd", name="Klinik Ä & Söhne")
    tenant = match(r"/operations/tenants/([0-9a-f-]{36})", added)

    form = operator.get(f"{form_path('tenantRename')}?tenant={tenant}").body.decode()
    assert value_of(form, "name") == "Klinik Ä &amp; Söhne"
    run(operator, "tenantRename", tenant=tenant, name="Klinik Z")

    assert "<h1>Klinik Z</h1>" in operator.get(f"{OPERATIONS}/tenants/{tenant}").body.decode()


def test_a_secret_is_marked_as_shown_only_now_and_never_shown_again(
    lab: Integrator, operator: Tab
) -> None:
    added = run(operator, "clientAdd", tenant=lab.tenant.id, name="New")
    secret, client = match(r"(fhirpub_[A-Za-z0-9_-]{20,})", added), match(CLIENT, added)

    assert "Shown only now." in text_of(added)
    assert added.headers["cache-control"] == "no-store"
    assert secret not in operator.get(f"{OPERATIONS}/clients/{client}").body.decode()


def test_a_person_is_invited_and_has_no_secret(
    lab: Integrator, operator: Tab, console: RunningService
) -> None:
    new = NewClient(tenant=lab.tenant.id, name="Ada", environment="sandbox", is_person=True)
    person, _none = console.call(add_client(console.services.store, new, clock=now_ms))

    text = text_of(operator.get(f"{OPERATIONS}/clients/{person.id}"))
    assert "Invite Remove a passkey" in text
    assert "Create a new secret" not in text


def test_an_entered_value_that_is_wrong_is_kept_with_the_others(
    lab: Integrator, operator: Tab
) -> None:
    fields = {"name": SCRIPT, "networks": "192.0.2.0/24\nnowhere", "valid_days": "-1"}
    answer = send(operator, "clientAdd", tenant=lab.tenant.id, **fields)

    page = answer.body.decode()
    assert answer.status == 400
    assert problem_at(page, "valid_days") == "Valid days must be at least 0."
    assert value_of(page, "tenant") == lab.tenant.id
    assert value_of(page, "name") == "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&#x27;"
    assert ">192.0.2.0/24\nnowhere</textarea>" in page
    assert "<script>alert" not in page


def test_what_the_service_itself_refuses_is_shown_at_the_field(
    lab: Integrator, operator: Tab
) -> None:
    answer = send(operator, "endpointAdd", tenant=lab.tenant.id, url="ftp://files.example")

    assert answer.status == 400
    assert problem_at(answer.body.decode(), "url") != ""


def test_a_secret_that_was_entered_is_not_sent_back(lab: Integrator, operator: Tab) -> None:
    fields = {"url": "nothing", "signing_secret": "s3cr3t-of-mine"}
    answer = send(operator, "endpointAdd", tenant=lab.tenant.id, **fields)

    assert answer.status == 400
    assert "s3cr3t-of-mine" not in answer.body.decode()


def test_an_unknown_record_is_refused_and_the_form_kept(operator: Tab) -> None:
    answer = send(operator, "clientEdit", client="unknown", name="Kept")

    assert answer.status == 404
    assert value_of(answer.body.decode(), "name") == "Kept"


@pytest.mark.parametrize("name", ["clientAdd", "clientEdit"])
def test_a_number_that_is_none_and_an_object_that_is_none_are_refused(
    name: str, operator: Tab
) -> None:
    page = send(operator, name, jwks="{", valid_days="many").body.decode()

    assert problem_at(page, "jwks").endswith("must be an object.")
    if name == "clientAdd":
        assert problem_at(page, "valid_days") == "Valid days must be a whole number."


def test_a_field_that_was_filled_and_is_emptied_empties_the_record(
    lab: Integrator, operator: Tab
) -> None:
    client = lab.client_id
    run(operator, "clientEdit", client=client, networks="127.0.0.0/8\n192.0.2.0/24")
    form = operator.get(f"{form_path('clientEdit')}?client={client}").body.decode()
    assert ">127.0.0.0/8\n192.0.2.0/24</textarea>" in form
    assert '<input type="hidden" name="filled" value="networks">' in form

    run(operator, "clientEdit", client=client, name="Same networks", networks="")
    page = operator.get(f"{OPERATIONS}/clients/{client}").body.decode()
    assert "192.0.2.0/24" in page

    run(operator, "clientEdit", client=client, networks="", filled="networks")
    page = operator.get(f"{OPERATIONS}/clients/{client}").body.decode()
    assert "192.0.2.0/24" not in page


def test_scopes_and_quotas_of_a_client_are_set(lab: Integrator, operator: Tab) -> None:
    run(operator, "clientScopes", client=lab.client_id, scopes="system/DiagnosticReport.r")
    run(operator, "quotaSetClient", client=lab.client_id, requests_per_minute="77")

    text = text_of(operator.get(f"{OPERATIONS}/clients/{lab.client_id}"))
    assert "system/DiagnosticReport.r" in text
    assert "requests per minute 77" in text


FINAL = [one.name for one in OFFERED.values() if needs_confirmation(one)]


def test_what_is_final_and_what_removes_is_confirmed() -> None:
    removes = {one.name for one in OFFERED.values() if one.method == "DELETE"}
    final = {one.name for one in OFFERED.values() if one.is_final}

    assert {"clientDisable", "eraseReport", "tokenRevoke", "restore"} <= final
    assert {"endpointRm", "holdRelease"} <= removes
    assert set(FINAL) == removes | final


def test_a_client_is_disabled_only_after_a_confirmation(lab: Integrator, operator: Tab) -> None:
    asked = send(operator, "clientDisable", client=lab.client_id)

    text = text_of(asked)
    assert "This will disable a client for good; its tokens are refused" in text
    assert "It cannot be undone." in text
    assert lab.get("/fhir/r4/DiagnosticReport").status == 200
    shown = operator.get(f"{OPERATIONS}/clients/{lab.client_id}")
    assert "State enabled" in text_of(shown)

    run(operator, "clientDisable", client=lab.client_id, confirmed="yes")
    shown = operator.get(f"{OPERATIONS}/clients/{lab.client_id}")
    assert "State disabled" in text_of(shown)


def test_a_confirmation_is_not_asked_for_what_is_not_possible(operator: Tab) -> None:
    answer = send(operator, "clientDisable", client="unknown")

    assert answer.status == 404
    assert "Go on?" not in text_of(answer)


def test_a_confirmation_sends_the_same_once_more(operator: Tab, lab: Integrator) -> None:
    asked = send(operator, "clientDisable", client=lab.client_id).body.decode()

    form = asked.partition('<div class="acts">')[2]
    assert f'<input type="hidden" name="client" value="{lab.client_id}">' in form
    assert f'name="proof" value="{operator.proof}"' in form
    assert 'name="confirmed" value="yes"' in form


def test_a_token_to_be_revoked_is_no_fact_of_the_confirmation(
    operator: Tab, lab: Integrator
) -> None:
    asked = send(operator, "tokenRevoke", token=lab.token)

    assert lab.token not in text_of(asked)
    run(operator, "tokenRevoke", token=lab.token, confirmed="yes")


def test_an_endpoint_is_added_changed_tried_and_removed(
    lab: Integrator, operator: Tab, receiver: Receiver
) -> None:
    added = run(operator, "endpointAdd", tenant=lab.tenant.id, url=receiver.url)
    endpoint = match(ENDPOINT, added)
    assert "Shown only now." in text_of(added)
    assert "Signing secret" in text_of(added)

    run(operator, "endpointSet", endpoint=endpoint, description="Ward", payload="id-only")
    assert "Passed yes" in text_of(run(operator, "endpointPing", endpoint=endpoint))
    run(operator, "endpointPause", endpoint=endpoint)
    page = f"{OPERATIONS}/endpoints/{endpoint}"
    assert "State paused" in text_of(operator.get(page))

    assert "Go on?" in text_of(send(operator, "endpointRm", endpoint=endpoint))
    assert "State paused" in text_of(operator.get(page))
    run(operator, "endpointRm", endpoint=endpoint, confirmed="yes")
    assert "State deleted" in text_of(operator.get(page))


def test_an_erasure_goes_by_a_dry_run_then_another_then_the_act(
    lab: Integrator, operator: Tab
) -> None:
    registered = lab.register(register_body("E-1"))
    report = registered.json["parameter"][0]["resource"]["id"]
    tenant = lab.tenant.id

    planned = run(operator, "eraseReportDryRun", tenant=tenant, reports=report)
    resources = f"DiagnosticReport/{report}"
    assert f">{resources}</textarea>" in planned.body.decode()

    fields = {"tenant": tenant, "resources": resources, "reason": "order 7"}
    asked = send(operator, "eraseReport", **fields)
    text = text_of(asked)
    assert "What would be erased, by a dry run just now" in text
    assert f"DiagnosticReport {report}" in text
    assert lab.get(f"/fhir/r4/{resources}").status == 200

    run(operator, "eraseReport", **fields, confirmed="yes")
    assert lab.get(f"/fhir/r4/{resources}").status == 410
    listed = text_of(operator.get(f"{OPERATIONS}/erasures?tenant={tenant}"))
    assert "order 7" in listed
    assert "bootstrap" in listed


def test_what_is_on_hold_is_refused_before_the_confirmation(
    lab: Integrator, operator: Tab
) -> None:
    report = lab.register(register_body("H-1")).json["parameter"][0]["resource"]["id"]
    resource = {"tenant": lab.tenant.id, "type": "DiagnosticReport", "id": report}
    run(operator, "holdAdd", **resource, reason="court")
    assert "court" in text_of(operator.get(f"{form_path('holdList')}?tenant={lab.tenant.id}"))

    fields = {"tenant": lab.tenant.id, "reason": "order 8"}
    asked = send(operator, "eraseReport", **fields, resources=f"DiagnosticReport/{report}")

    assert asked.status >= 400
    assert "Go on?" not in text_of(asked)


def test_each_change_is_recorded_with_the_operator_and_its_address(
    lab: Integrator, operator: Tab
) -> None:
    run(operator, "tenantRename", tenant=lab.tenant.id, name="Recorded")

    chain = f"{OPERATIONS}/audit/{lab.tenant.id}?action=tenant.rename&agent=bootstrap"
    text = text_of(operator.get(chain))
    assert f"tenant.rename 200 bootstrap Tenant/{lab.tenant.id} 127.0.0.1" in text


def test_a_wrong_filter_is_refused_at_its_field(operator: Tab) -> None:
    answer = operator.get(f"{OPERATIONS}/audit/service?since=yesterday")

    assert answer.status == 400
    assert "Since (UTC) must be a time" in problem_at(answer.body.decode(), "since")


def test_a_time_is_taken_as_a_browser_sends_it(operator: Tab) -> None:
    assert operator.get(f"{OPERATIONS}/audit/service?since=2026-11-21T10:00").status == 200
    assert operator.get(f"{OPERATIONS}/audit/service?since=2026-11-21T10:00:30").status == 200


def test_signing_keys_are_listed_and_rotated(operator: Tab) -> None:
    key = match(r"<code>([^<]+)</code>", run(operator, "keysRotate"))

    assert key in text_of(operator.get(f"{OPERATIONS}/keys"))


def test_a_get_of_an_operation_that_reads_is_no_form_to_send(operator: Tab) -> None:
    answer = operator.post(form_path("tenantList"))

    assert answer.status == 303
    assert answer.headers["location"] == form_path("tenantList")
