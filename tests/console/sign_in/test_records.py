from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.console.sign_in.conftest import ORIGIN, Site
from tests.console.sign_in.passkey import Passkey
from tests.console.sign_in.visitor import Visitor, path_of
from tests.log_lines import caught_lines


def tenant_of(site: Site, client: str) -> str:
    tenant: str = site.json("client", "show", client)["tenant"]
    return tenant


def actions(records: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return the actions of records, the oldest first, each with its status.

    What the start page reads after each sign-in is left out.
    """
    pairs = [(one["action"], one["status"]) for one in reversed(records)]
    return [pair for pair in pairs if pair[0] not in ("search", "endpoint.read")]


def test_what_a_person_does_is_in_the_trail_of_the_tenant(site: Site) -> None:
    visitor, passkey, client = site.member()
    visitor.sign_out()
    visitor.sign_in(passkey)

    records = site.records(tenant_of(site, client))

    assert actions(records) == [
        ("client.add", 102),
        ("client.add", 200),
        ("client.invite", 102),
        ("client.invite", 200),
        ("client.passkey.add", 102),
        ("client.passkey.add", 200),
        ("console.sign-in", 200),
        ("console.sign-out", 200),
        ("console.sign-in", 200),
    ]
    signed_in = next(one for one in records if one["action"] == "console.sign-in")
    assert signed_in["client"] == client
    assert signed_in["address"] == visitor.address


def test_a_refused_sign_in_is_in_the_trail_of_the_tenant(site: Site) -> None:
    visitor, passkey, client = site.member()
    visitor.sign_out()
    visitor.sign_in(passkey, signature=b"wrong")
    visitor.sign_in(passkey, signature=b"wrong")

    records = site.records(tenant_of(site, client))

    refused = next(one for one in records if one["status"] == 403)
    assert (refused["action"], refused["count"]) == ("console.sign-in", 2)
    assert (refused["client"], refused["address"]) == (client, visitor.address)


def test_a_link_of_a_client_is_in_the_trail_of_its_tenant(site: Site) -> None:
    client, key = site.key_client()
    site.ask_link(key, client.id)
    _other, wrong = site.key_client()
    site.ask_link(wrong, client.id)

    records = site.records(client.tenant)

    assert sorted(actions(records)) == [("console.link", 200), ("console.link", 401)]
    assert {one["client"] for one in records} == {client.id}


def test_what_an_operator_does_is_in_the_trail_of_the_service(site: Site) -> None:
    visitor = Visitor(site.service)
    form = visitor.form(path_of(site.operator_link()), "/console/sign-in/link")
    visitor.post(form.action, form.fields)
    visitor.sign_out()

    records = [one for one in site.records() if one.get("user") == "ana"]

    assert actions(records)[-3:] == [
        ("console.link", 200),
        ("console.sign-in", 200),
        ("console.sign-out", 200),
    ]
    assert records[0]["address"] == visitor.address


def test_a_sign_in_is_an_event_of_authentication(site: Site) -> None:
    visitor, _passkey, _client = site.member()

    trail = site.service.services.audit
    assert trail is not None
    site.service.call(trail.settle())
    page = visitor.get("/console/accesses")

    assert page.status == 200
    assert b"console.sign-in" in page.body


def test_no_code_and_no_credential_is_in_the_log_or_in_the_trail(site: Site) -> None:
    with capture_logs() as logged, caught_lines() as caught:
        invited, passkey, visitor = site.person(), Passkey(origin=ORIGIN), Visitor(site.service)
        visitor.accept(invited["url"], passkey)
        session = next(iter(visitor.cookies.values()))
        visitor.sign_out()
        visitor.sign_in(passkey)
        visitor.sign_out()
        visitor.sign_in(passkey, signature=b"wrong")
        link = site.operator_link()
        form = visitor.form(path_of(link), "/console/sign-in/link")
        visitor.post(form.action, form.fields)
        visitor.post(form.action, form.fields)
        visitor.get(f"/console/sign-in/link?code={form.fields['code']}&x=1")
        visitor.post(f"/console/sign-in/link?code={form.fields['code']}", {"code": "x"})
    lines = f"{logged}{caught.stream.getvalue()}"
    trails = f"{site.records(invited_tenant(site, invited))}{site.records()}"

    assert {"signed in", "signed out", "link made", "sign-in refused"} <= {
        one["event"] for one in logged
    }
    assert '"route":"/console/invitation"' in lines
    for secret in (invited["url"].partition("code=")[2], link.partition("code=")[2], session):
        signature = secret.rpartition(".")[2]
        assert signature not in lines
        assert signature not in trails


def invited_tenant(site: Site, invited: dict[str, Any]) -> str:
    return tenant_of(site, invited["client_id"])


def test_the_line_of_a_request_names_the_page_and_not_its_query(site: Site) -> None:
    url = site.operator_link()
    with caught_lines() as caught:
        Visitor(site.service).get(path_of(url), **{"X-Request-Id": "line-of-a-link"})
        line = caught.of("line-of-a-link")

    assert line["route"] == "/console/sign-in/link"
    assert "code" not in str(line)


@pytest.mark.parametrize("path", ["/console/invitation?code=x", "/console/sign-in"])
def test_no_page_passes_its_address_on(site: Site, path: str) -> None:
    answer = Visitor(site.service).get(path)

    # The origin alone: with "no-referrer" a form would not name its origin either.
    assert answer.headers["referrer-policy"] == "strict-origin"
    assert answer.headers["cache-control"] == "no-store"
