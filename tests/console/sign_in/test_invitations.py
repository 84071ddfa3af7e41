from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from fhirpub.administration import clients
from fhirpub.app.administration import create_interface
from fhirpub.audit.record import Agent
from fhirpub.auth import passkeys
from fhirpub.auth.clients import NewClient, add_client
from fhirpub.config.settings import Config
from fhirpub.errors import FhirpubError
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.service import RunningService
from tests.console.sign_in.conftest import COMMAND, ORIGIN, Site, config_in
from tests.console.sign_in.passkey import Passkey
from tests.console.sign_in.visitor import Visitor, path_of

ENDED = "The invitation has expired or was used before"


def test_an_invitation_works_once(site: Site) -> None:
    invited = site.person()
    assert Visitor(site.service).accept(invited["url"], Passkey(origin=ORIGIN)).status == 303

    refused = Visitor(site.service).accept(invited["url"], Passkey(origin=ORIGIN))

    assert (refused.status, ENDED in refused.body.decode()) == (403, True)
    assert len(site.json("client", "show", invited["client_id"])["keys"]) == 1


def test_an_invitation_is_valid_for_a_week(timed: Site) -> None:
    assert timed.clock is not None
    invited = timed.person()
    visitor = Visitor(timed.service)
    timed.clock.forward(seconds=7 * 86_400 - 1)
    assert visitor.get(path_of(invited["url"])).status == 200

    timed.clock.forward(seconds=1)

    refused = visitor.get(path_of(invited["url"]))
    assert (refused.status, ENDED in refused.body.decode()) == (403, True)


def test_each_invitation_adds_a_passkey(site: Site) -> None:
    first, passkey, client = site.member()
    invited = site.json("client", "invite", client)
    second, another = Visitor(site.service), Passkey(origin=ORIGIN)

    second.accept(invited["url"], another)

    assert site.json("client", "show", client)["keys"] == [passkey.kid, another.kid]
    first.sign_out()
    assert first.sign_in(passkey).status == 303
    second.sign_out()
    assert second.sign_in(another).status == 303


def test_the_browser_is_asked_for_a_passkey_that_the_person_has_not_yet(site: Site) -> None:
    _visitor, passkey, client = site.member()
    invited = site.json("client", "invite", client)

    form = Visitor(site.service).form(path_of(invited["url"]), "/console/invitation")

    (excluded,) = json.loads(form.options)["excludeCredentials"]
    assert f"passkey:{excluded['id']}" == passkey.kid


@pytest.mark.parametrize("flags", [0x01, 0x04, 0x00])
def test_a_passkey_that_did_not_verify_its_user_is_refused(site: Site, flags: int) -> None:
    invited, visitor = site.person(), Visitor(site.service)

    refused = visitor.accept(invited["url"], Passkey(origin=ORIGIN, flags=flags))

    assert refused.status == 403
    assert b"The passkey was not accepted" in refused.body
    assert site.json("client", "show", invited["client_id"])["keys"] is None
    # The invitation is not used up by that.
    assert visitor.accept(invited["url"], Passkey(origin=ORIGIN)).status == 303


def test_a_passkey_of_another_site_is_refused(site: Site) -> None:
    invited, visitor = site.person(), Visitor(site.service)

    refused = visitor.accept(invited["url"], Passkey(origin="https://evil.example.org"))

    assert refused.status == 403


@pytest.mark.parametrize("code", ["", "x", "a.b.c"])
def test_what_is_no_invitation_is_refused(site: Site, code: str) -> None:
    visitor = Visitor(site.service)
    shown = visitor.get(f"/console/invitation?code={code}")
    sent = visitor.post("/console/invitation", {"code": code, "credential": "{}"})

    assert (shown.status, sent.status) == (403, 403)
    assert ENDED in shown.body.decode()


def test_a_link_that_signs_in_is_no_invitation(site: Site) -> None:
    _head, _, code = site.operator_link().partition("code=")

    assert Visitor(site.service).get(f"/console/invitation?code={code}").status == 403


def test_the_invitation_of_a_disabled_person_is_refused(site: Site) -> None:
    invited = site.person()
    site.json("client", "disable", invited["client_id"], "--yes")

    assert Visitor(site.service).get(path_of(invited["url"])).status == 403
    refused = site.run("client", "invite", invited["client_id"])
    assert "is disabled for good" in refused.stderr


def test_a_client_with_a_secret_cannot_be_invited(site: Site) -> None:
    new = NewClient(tenant=site.tenant().id, name="ward", environment="sandbox")
    client, _secret = site.service.call(add_client(site.service.services.store, new, clock=now_ms))

    refused = site.run("client", "invite", client.id)

    assert refused.exit_code == 1
    assert "invite a person of their own" in refused.stderr


def test_a_client_with_keys_cannot_be_invited(site: Site) -> None:
    client, _key = site.key_client()

    refused = site.run("client", "invite", client.id)

    assert refused.exit_code == 1
    assert "invite a person of their own" in refused.stderr


def test_a_person_has_ten_passkeys_at_most(site: Site) -> None:
    _visitor, _passkey, client = site.member()
    for _ in range(9):
        url = site.json("client", "invite", client)["url"]
        assert Visitor(site.service).accept(url, Passkey(origin=ORIGIN)).status == 303

    refused = site.run("client", "invite", client)

    assert "has 10 passkeys, which is the limit" in refused.stderr


def test_the_public_keys_of_an_application_cannot_take_the_name_of_a_passkey(site: Site) -> None:
    client, key = site.key_client()
    public = {name: key[name] for name in ("kty", "crv", "x", "y")}
    fields = {"keys": [{**public, "kid": "passkey:mine"}]}

    answer = _send_keys(site, client.id, fields)

    assert "no kid may begin with passkey:" in answer


def test_a_person_gets_no_keys_of_an_application(site: Site) -> None:
    _visitor, _passkey, client = site.member()
    _other, key = site.key_client()
    public = {name: key[name] for name in ("kty", "crv", "x", "y", "kid")}

    assert "the client is a person" in _send_keys(site, client, {"keys": [public]})


def _send_keys(site: Site, client: str, keys: object) -> str:
    interface = create_interface(site.service.services)
    with pytest.raises(FhirpubError) as refusal:
        site.service.call(
            interface.run(clients.EDIT, Agent(user="ana"), {"client": client, "jwks": keys})
        )
    return str(refusal.value)


@pytest.mark.parametrize(
    ("base_url", "reason"),
    [
        ("http://127.0.0.1:8080", "has only an address"),
        ("https://[::1]", "has only an address"),
        ("http://console.example.org", "with https only"),
        ("https://console.example.org", ""),
        ("http://localhost:8080", ""),
        ("http://console.localhost:8080", ""),
        ("http://localhost.example.org", "with https only"),
    ],
)
def test_passkeys_need_a_host_with_a_name_and_tls(base_url: str, reason: str) -> None:
    config = Config()
    console = replace(config.console, enabled=True, base_url=base_url)

    said = passkeys.why_none(replace(config, console=console))

    assert (reason in said, bool(said)) == (True, bool(reason))


def test_without_the_library_persons_are_invited_to_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "webauthn", None)  # which makes its import fail
    config, key = config_in(tmp_path)
    with RunningService(tmp_path, config=config) as running:
        site = Site(service=running, operator_key=key)
        tenant = site.tenant().id
        refused = site.run("client", "add-person", "--tenant", tenant, "--name", "Ada")
        visitor = Visitor(running)
        page = visitor.get("/console/sign-in")
        sent = visitor.post("/console/sign-in/passkey", {"credential": "{}"})
        link = visitor.get(path_of(site.operator_link()))

    assert refused.exit_code == 1
    assert "pip install 'fhirpub[console]'" in refused.stderr
    assert page.status == 200
    assert b"passkeys need the package webauthn" in page.body
    assert sent.status == 403
    assert link.status == 200


def test_a_person_is_invited_on_the_store_of_the_service_as_well(
    site: Site, tmp_path: Path
) -> None:
    storage = site.service.config.storage
    if not storage.url.startswith("sqlite"):
        pytest.skip("the keys of the other store are in the environment")
    file = tmp_path / "fhirpub.toml"
    file.write_text(
        f'[storage]\nurl = "{storage.url}"\n[console]\nenabled = true\nbase_url = "{ORIGIN}"\n'
    )
    person = site.person()
    words = ["client", "invite", person["client_id"], "--json", "--config", str(file)]

    invited = CliRunner().invoke(COMMAND, words)

    assert invited.exit_code == 0, invited.stderr
    url = json.loads(invited.stdout)["url"]
    assert Visitor(site.service).accept(url, Passkey(origin=ORIGIN)).status == 303


def test_an_invitation_signs_nobody_in_without_a_passkey(site: Site) -> None:
    code = path_of(site.person()["url"]).partition("code=")[2]
    visitor = Visitor(site.service)

    refused = visitor.post("/console/sign-in/link", {"code": code})

    assert refused.status == 403
    assert not visitor.is_signed_in()


def test_a_person_who_signs_in_at_a_provider_is_announced_no_link(tmp_path: Path) -> None:
    config, key = config_in(
        tmp_path,
        oidc_issuer="https://login.example.org",
        oidc_client_id="console",
        oidc_client_secret="a-secret-of-the-console",
    )
    with RunningService(tmp_path, config=config) as running:
        site = Site(service=running, operator_key=key)
        words = ("client", "add-person", "--tenant", site.tenant().id, "--name", "ada@example.org")
        said = site.run(*words, "--scope", "system/*.rs").stdout

    assert "The link" not in said
    assert "signs in at the provider" in said


def test_a_person_who_cannot_be_invited_is_not_added(tmp_path: Path) -> None:
    config, key = config_in(tmp_path, base_url="https://192.0.2.7")
    with RunningService(tmp_path, config=config) as running:
        site = Site(service=running, operator_key=key)
        tenant = site.tenant().id
        refused = site.run("client", "add-person", "--tenant", tenant, "--name", "Ada")
        clients = running.call(running.services.store.clients(tenant=tenant))

    assert "passkeys are bound to the name of a host" in refused.stderr
    assert list(clients) == []
