from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from fhirpub.app.administration import create_interface
from fhirpub.app.services import build_services
from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.config.administration import AdminConfig, admin_callers
from fhirpub.console.creation import create_console
from fhirpub.errors import NotAuthenticated
from fhirpub.testing.service import RunningService
from tests.console.sign_in.conftest import KEY, ORIGIN, Site, config_in
from tests.console.sign_in.passkey import Passkey
from tests.console.sign_in.visitor import Visitor, path_of

COOKIE = "__Host-fhirpub"


def operator_of(site: Site) -> Visitor:
    visitor = Visitor(site.service)
    form = visitor.form(path_of(site.operator_link()), "/console/sign-in/link")
    visitor.post(form.action, form.fields)
    assert visitor.is_signed_in()
    return visitor


def test_the_cookie_is_for_the_console_alone_and_for_no_script(site: Site) -> None:
    invited, visitor = site.person(), Visitor(site.service)

    visitor.accept(invited["url"], Passkey(origin=ORIGIN))

    name, *attributes = visitor.set_cookie.split("; ")
    assert name.startswith(f"{COOKIE}=")
    assert attributes == ["Path=/", "HttpOnly", "SameSite=Lax", "Secure"]


def test_without_tls_the_cookie_says_so(local: Site) -> None:
    visitor = operator_of(local)

    page = visitor.get("/console/")

    assert page.status == 200
    assert [*visitor.cookies] == ["fhirpub_session"]


def test_a_cookie_that_was_set_before_is_replaced(site: Site) -> None:
    victim, passkey, _client = site.member()
    victim.sign_out()
    attacker, _other, _client = site.member()
    victim.cookies[COOKIE] = planted = attacker.cookies[COOKIE]

    form = Visitor(site.service).form("/console/sign-in", "/console/sign-in/passkey")
    victim.post(form.action, {**form.fields, "credential": passkey.sign_in(form.options)})

    assert victim.cookies[COOKIE] != planted
    assert b"Ada Laband" in victim.get("/console/").body


def test_a_cookie_that_nobody_has_signed_is_none(site: Site, visitor: Visitor) -> None:
    visitor.cookies[COOKIE] = "e30.e30.e30"

    assert not visitor.is_signed_in()
    assert visitor.sign_in(site.member()[1]).status == 303
    assert visitor.cookies[COOKIE] != "e30.e30.e30"


def test_who_signs_out_is_signed_out_with_every_copy_of_the_cookie(site: Site) -> None:
    visitor, _passkey, _client = site.member()
    copy = Visitor(site.service, cookies=dict(visitor.cookies))
    assert copy.is_signed_in()

    answer = visitor.sign_out()

    assert answer.headers["location"] == "/console/sign-in"
    assert visitor.set_cookie.startswith(f"{COOKIE}=; ")
    assert "Max-Age=0" in visitor.set_cookie
    assert not copy.is_signed_in()


def test_an_operator_who_signs_out_is_signed_out_with_every_copy(site: Site) -> None:
    visitor = operator_of(site)
    copy = Visitor(site.service, cookies=dict(visitor.cookies))

    visitor.sign_out()

    assert not copy.is_signed_in()


def test_other_sessions_of_the_person_go_on(site: Site) -> None:
    one, passkey, _client = site.member()
    other = Visitor(site.service)
    other.sign_in(passkey)

    one.sign_out()

    assert other.is_signed_in()


def test_another_process_knows_of_a_sign_out_within_half_a_minute(timed: Site) -> None:
    assert timed.clock is not None
    clock, config = timed.clock, timed.service.config

    async def reading(cookie: str) -> bool:
        try:
            await sessions.read(cookie)
        except NotAuthenticated:
            return False
        return True

    visitor, _passkey, _client = timed.member()
    cookie = visitor.cookies[COOKIE]
    # A worker of its own, with what it remembers, on the same store.
    building = build_services(config, clock=clock)
    services = timed.service.call(building.__aenter__())
    try:
        sessions = create_console(services, create_interface(services)).sessions
        assert timed.service.call(reading(cookie))
        visitor.sign_out()
        clock.forward(seconds=30)

        assert not timed.service.call(reading(cookie))
    finally:
        timed.service.call(building.__aexit__(None, None, None))


def test_a_session_lasts_while_it_is_used(timed: Site) -> None:
    assert timed.clock is not None
    visitor, _passkey, _client = timed.member()
    first = visitor.cookies[COOKIE]
    for _ in range(4):
        timed.clock.forward(seconds=15 * 60)
        assert visitor.is_signed_in()

    assert visitor.cookies[COOKIE] != first
    assert visitor.set_cookie.endswith("; Path=/; HttpOnly; SameSite=Lax; Secure")


def test_a_session_ends_when_it_is_not_used(timed: Site) -> None:
    assert timed.clock is not None
    visitor, _passkey, _client = timed.member()
    timed.clock.forward(seconds=20 * 60)

    assert not visitor.is_signed_in()


def test_a_session_ends_after_ten_hours_however_much_it_is_used(timed: Site) -> None:
    assert timed.clock is not None
    visitor, _passkey, _client = timed.member()
    for _ in range(39):
        timed.clock.forward(seconds=15 * 60)
        assert visitor.is_signed_in()
    timed.clock.forward(seconds=15 * 60)

    assert not visitor.is_signed_in()


def test_a_renewed_cookie_ends_with_its_session(timed: Site) -> None:
    assert timed.clock is not None
    visitor, _passkey, _client = timed.member()
    old = Visitor(timed.service, cookies=dict(visitor.cookies))
    timed.clock.forward(seconds=15 * 60)
    assert visitor.is_signed_in()

    visitor.sign_out()

    assert not old.is_signed_in()


def test_the_session_of_a_disabled_client_ends_within_half_a_minute(timed: Site) -> None:
    assert timed.clock is not None
    visitor, _passkey, client = timed.member()
    timed.json("client", "disable", client, "--yes")
    timed.clock.forward(seconds=30)

    assert not visitor.is_signed_in()


def test_a_session_counts_from_the_networks_of_its_client_alone(timed: Site) -> None:
    assert timed.clock is not None
    visitor, _passkey, client = timed.member()
    timed.json("client", "edit", client, "--network", "203.0.113.0/24")
    timed.clock.forward(seconds=30)
    assert not visitor.is_signed_in()

    visitor.address = "203.0.113.5"

    assert visitor.is_signed_in()


def test_an_access_token_is_no_cookie(site: Site, visitor: Visitor) -> None:
    lab = site.service.integrator()
    visitor.cookies[COOKIE] = lab.token

    assert not visitor.is_signed_in()


def test_a_cookie_is_no_access_token(site: Site) -> None:
    visitor, _passkey, _client = site.member()
    headers = {"Authorization": f"Bearer {visitor.cookies[COOKIE]}"}

    answer = site.service.request("GET", "/fhir/r4/AuditEvent", headers=headers)

    assert answer.status == 401


def test_a_cookie_of_an_operator_is_no_token_of_administration(site: Site) -> None:
    callers = create_interface(site.service.services).callers
    cookie = operator_of(site).cookies[COOKIE]

    with pytest.raises(NotAuthenticated):
        site.service.call(callers.authenticate([f"Bearer {cookie}"]))


def test_an_invitation_and_a_link_are_no_cookies(site: Site, visitor: Visitor) -> None:
    for url in (site.person()["url"], site.operator_link()):
        visitor.cookies[COOKIE] = url.partition("code=")[2]

        assert not visitor.is_signed_in()


def test_a_session_needs_the_operator_in_the_settings(tmp_path: Path) -> None:
    config, key = config_in(tmp_path)
    with RunningService(tmp_path, config=config) as running:
        cookies = operator_of(Site(service=running, operator_key=key)).cookies
    without = AdminConfig(
        port=config.admin.port, bootstrap_key_hash=config.admin.bootstrap_key_hash
    )

    with RunningService(tmp_path, config=replace(config, admin=without)) as running:
        assert not Visitor(running, cookies=cookies).is_signed_in()
    with RunningService(tmp_path, config=config) as running:
        assert Visitor(running, cookies=cookies).is_signed_in()


def test_a_session_ends_with_the_administrative_key_that_began_it(tmp_path: Path) -> None:
    config, _key = config_in(tmp_path)
    with RunningService(tmp_path, config=config) as running:
        visitor = Visitor(running)
        assert visitor.post("/console/sign-in/key", {"key": KEY}).status == 303
    admin = replace(config.admin, bootstrap_key_hash=hashlib.sha256(b"another").hexdigest())

    with RunningService(tmp_path, config=replace(config, admin=admin)) as running:
        assert not Visitor(running, cookies=visitor.cookies).is_signed_in()


def test_a_session_ends_with_the_key_of_the_operator_that_began_it(tmp_path: Path) -> None:
    config, key = config_in(tmp_path)
    with RunningService(tmp_path, config=config) as running:
        site = Site(service=running, operator_key=key)
        visitor, link = operator_of(site), path_of(site.operator_link())
        (file,) = admin_callers(config.admin).values()
        file.write_bytes(orjson.dumps(new_key_pair()[1]))

        assert not visitor.is_signed_in()
        form = Visitor(running).form(link, "/console/sign-in/link")
        assert Visitor(running).post(form.action, form.fields).status == 403


def test_the_administrative_key_signs_in_an_operator(site: Site, visitor: Visitor) -> None:
    wrong = visitor.post("/console/sign-in/key", {"key": "guess", "next": ""})
    right = visitor.post("/console/sign-in/key", {"key": KEY, "next": ""})

    assert (wrong.status, right.status) == (403, 303)
    assert visitor.is_signed_in()


def test_who_guesses_the_administrative_key_waits(site: Site, visitor: Visitor) -> None:
    for _ in range(10):
        assert visitor.post("/console/sign-in/key", {"key": "guess"}).status == 403

    assert visitor.post("/console/sign-in/key", {"key": KEY}).status == 429


@pytest.mark.parametrize(
    "following",
    [
        "https://evil.example.org",
        "//evil.example.org",
        "/console/\\evil",
        "/fhir/r4",
        "/console/\u20ac",
        "/console/\r\nX-Evil: 1",
        f"/console/{'x' * 2000}",
    ],
)
def test_a_sign_in_leads_to_no_other_site(visitor: Visitor, following: str) -> None:
    answer = visitor.post("/console/sign-in/key", {"key": KEY, "next": following})

    assert answer.headers["location"] == "/console/"
