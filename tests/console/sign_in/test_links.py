from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jose import jwk

from fhirpub.auth.assertions.signing import sign_assertion
from fhirpub.auth.assertions.verification import TYPE
from fhirpub.auth.clients import set_keys
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.service import Answer
from tests.console.sign_in.conftest import COMMAND, OPERATOR, ORIGIN, Site
from tests.console.sign_in.visitor import Visitor, path_of

OPERATORS = "/console/links/operators"


def follow(visitor: Visitor, url: str) -> Answer:
    form = visitor.form(path_of(url), "/console/sign-in/link")
    return visitor.post(form.action, form.fields)


def test_a_client_with_a_private_key_gets_a_link_that_signs_in(
    site: Site, visitor: Visitor
) -> None:
    client, key = site.key_client()
    answer = site.ask_link(key, client.id)
    assert answer.status == 200
    assert answer.json["expires_in"] == 120
    assert answer.json["url"].startswith(f"{ORIGIN}/console/sign-in/link?code=")
    assert answer.headers["cache-control"] == "no-store"

    entered = follow(visitor, answer.json["url"])

    assert entered.status == 303
    assert visitor.is_signed_in()
    assert b"ward system" in visitor.get("/console/").body


def test_an_operator_gets_a_link_that_signs_in(site: Site, visitor: Visitor) -> None:
    entered = follow(visitor, site.operator_link())

    assert entered.status == 303
    assert b"ana" in visitor.get("/console/").body


def test_a_link_works_once(site: Site, visitor: Visitor) -> None:
    url = site.operator_link()
    form = visitor.form(path_of(url), "/console/sign-in/link")
    visitor.post(form.action, form.fields)
    other = Visitor(site.service)

    refused = other.post(form.action, form.fields)

    assert refused.status == 403
    assert b"The link has expired or was used before" in refused.body
    assert not other.is_signed_in()


def test_to_open_a_link_does_not_use_it_up(site: Site, visitor: Visitor) -> None:
    url = site.operator_link()
    for _ in range(3):
        assert Visitor(site.service).get(path_of(url)).status == 200

    assert follow(visitor, url).status == 303


def test_a_link_is_valid_for_two_minutes(timed: Site) -> None:
    assert timed.clock is not None
    url = timed.operator_link()
    timed.clock.forward(seconds=120)

    assert Visitor(timed.service).get(path_of(url)).status == 403


def test_a_secret_gets_no_link(site: Site, visitor: Visitor) -> None:
    lab = site.service.integrator()
    fields = {"client_id": lab.client_id, "client_secret": lab.client_secret}

    answer = visitor.post("/console/links", fields)

    assert (answer.status, answer.json["error"]) == (400, "unauthorized_client")
    assert "a secret is not enough" in answer.json["error_description"]


@pytest.mark.parametrize("place", ["/console/links", OPERATORS])
def test_a_request_without_an_assertion_gets_no_link(visitor: Visitor, place: str) -> None:
    answer = visitor.post(place, {})

    assert (answer.status, answer.json["error"]) == (400, "invalid_request")
    said = "missing: client_assertion, client_assertion_type"
    assert answer.json["error_description"] == said


def test_an_assertion_for_a_token_gets_no_link(site: Site) -> None:
    client, key = site.key_client()

    answer = site.ask_link(key, client.id, audience=f"{site.service.base_url}/oauth/token")

    assert answer.status == 401
    assert f"must have the aud {ORIGIN}/console/links" in answer.json["error_description"]


def test_an_assertion_for_a_link_gets_no_token(site: Site) -> None:
    client, key = site.key_client()
    assertion = sign_assertion(
        key, subject=client.id, audience=f"{ORIGIN}/console/links", clock=now_ms
    )
    fields = {
        "grant_type": "client_credentials",
        "client_assertion_type": TYPE,
        "client_assertion": assertion,
    }

    assert Visitor(site.service).post("/oauth/token", fields).status == 401


def test_an_assertion_of_a_client_gets_no_link_of_an_operator(site: Site) -> None:
    client, key = site.key_client()

    assert site.ask_link(key, client.id, OPERATORS).status == 401


def test_an_assertion_of_an_operator_gets_no_link_of_a_client(site: Site) -> None:
    assert site.ask_link(site.operator_key, OPERATOR).status == 401


def test_a_key_that_is_not_registered_gets_no_link(site: Site) -> None:
    client, _key = site.key_client()
    _other, wrong = site.key_client()

    assert site.ask_link(wrong, client.id).status == 401
    assert site.ask_link(wrong, OPERATOR, OPERATORS).status == 401


def test_a_disabled_client_gets_no_link(site: Site) -> None:
    client, key = site.key_client()
    site.json("client", "disable", client.id, "--yes")

    assert site.ask_link(key, client.id).status == 401


def test_a_client_that_is_disabled_meanwhile_does_not_enter_by_its_link(timed: Site) -> None:
    assert timed.clock is not None
    client, key = timed.key_client()
    url = timed.ask_link(key, client.id).json["url"]
    timed.json("client", "disable", client.id, "--yes")
    timed.clock.forward(seconds=31)
    visitor = Visitor(timed.service)

    assert follow(visitor, url).status == 403
    assert not visitor.set_cookie


def test_a_client_gets_a_link_from_its_networks_alone(site: Site) -> None:
    client, key = site.key_client(networks=("203.0.113.0/24",))

    refused = site.ask_link(key, client.id)
    given = site.ask_link(key, client.id, address="203.0.113.9")

    assert (refused.status, refused.json["error"]) == (400, "unauthorized_client")
    assert given.status == 200
    outside = Visitor(site.service)
    assert follow(outside, given.json["url"]).status == 403
    assert not outside.set_cookie


@pytest.mark.parametrize("place", ["/console/links", OPERATORS])
def test_who_guesses_keys_waits(site: Site, place: str) -> None:
    client, _key = site.key_client()
    _other, wrong = site.key_client()
    for _ in range(10):
        assert site.ask_link(wrong, client.id, place, address="203.0.113.77").status == 401

    slowed = site.ask_link(wrong, client.id, place, address="203.0.113.77")

    assert slowed.status == 429
    assert int(slowed.headers["retry-after"]) > 0


def test_a_session_by_a_key_ends_with_the_key(timed: Site) -> None:
    assert timed.clock is not None
    client, key = timed.key_client()
    visitor = Visitor(timed.service)
    follow(visitor, timed.ask_link(key, client.id).json["url"])
    assert visitor.is_signed_in()

    _other, another = timed.key_client()
    public = {name: another[name] for name in ("kty", "crv", "x", "y", "kid")}
    timed.service.call(
        set_keys(
            timed.service.services.store,
            client.id,
            jwks=orjson.dumps({"keys": [public]}).decode(),
            grace_seconds=0,
            clock=timed.clock,
        )
    )
    timed.clock.forward(seconds=31)

    assert not visitor.is_signed_in()


def test_the_page_of_a_link_can_be_loaded_by_no_other_site(site: Site) -> None:
    url = site.operator_link()
    visitor = Visitor(site.service)
    form = visitor.form(path_of(url), "/console/sign-in/link")

    refused = visitor.post(form.action, form.fields, Origin="https://evil.example.org")

    assert refused.status == 403
    assert follow(visitor, url).status == 303


class TestCommand:
    """`fhirpub console login`, at a console whose origin is its real address."""

    @pytest.fixture
    def opened(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The links that the command opens in a browser, which there is none of here."""
        found: list[str] = []
        monkeypatch.setattr("webbrowser.open", found.append)
        return found

    def run(self, *words: str) -> Any:
        return CliRunner().invoke(COMMAND, ["console", "login", *words])

    def file(self, folder: Path, key: dict[str, str]) -> str:
        place = folder / "key.json"
        place.write_bytes(orjson.dumps(key))
        return str(place)

    def test_prints_a_link_that_signs_in_and_opens_it(
        self, local: Site, tmp_path: Path, opened: list[str]
    ) -> None:
        client, key = local.key_client()
        url, file = local.service.config.console.base_url, self.file(tmp_path, key)

        result = self.run("--url", url, "--client-id", client.id, "--key", file)

        assert result.exit_code == 0, result.stderr
        assert opened == [result.stdout.strip()]
        visitor = Visitor(local.service)
        assert follow(visitor, opened[0]).status == 303
        assert visitor.is_signed_in()

    def test_signs_in_an_operator_without_a_browser(
        self, local: Site, tmp_path: Path, opened: list[str]
    ) -> None:
        url, file = local.service.config.console.base_url, self.file(tmp_path, local.operator_key)

        result = self.run(
            *("--url", f"{url}/console/", "--operator", OPERATOR, "--key", file),
            *("--no-browser", "--json"),
        )

        assert result.exit_code == 0, result.stderr
        link = json.loads(result.stdout)
        assert link["expires_in"] == 120
        assert opened == []
        visitor = Visitor(local.service)
        assert follow(visitor, link["url"]).status == 303

    @pytest.mark.parametrize("kind", ["P-256", "RSA"])
    def test_signs_with_other_kinds_of_keys(
        self, local: Site, tmp_path: Path, opened: list[str], kind: str
    ) -> None:
        private, public = _key_pair(kind)
        client, _key = local.key_client(jwks=orjson.dumps({"keys": [public]}).decode())
        url, file = local.service.config.console.base_url, self.file(tmp_path, private)

        result = self.run("--url", url, "--client-id", client.id, "--key", file)

        assert result.exit_code == 0, result.stderr
        assert len(opened) == 1

    def test_says_why_it_gets_no_link(self, local: Site, tmp_path: Path) -> None:
        client, _key = local.key_client()
        _other, wrong = local.key_client()
        url, file = local.service.config.console.base_url, self.file(tmp_path, wrong)

        result = self.run("--url", url, "--client-id", client.id, "--key", file)

        assert result.exit_code == 1
        said = "the client_assertion is not signed by a key that is registered for its client"
        assert f"the service gives no link: {said}" in result.stderr

    def test_refuses_what_is_no_key(self, tmp_path: Path) -> None:
        file = self.file(tmp_path, {"kty": "EC"})

        result = self.run("--url", "http://localhost:1", "--operator", "ana", "--key", file)

        assert result.exit_code == 1
        assert "is no private key for ES384, ES256, RS384 as a JWK with a kid" in result.stderr

    def test_needs_to_know_for_whom(self, tmp_path: Path) -> None:
        file = self.file(tmp_path, {})

        result = self.run("--url", "http://localhost:1", "--key", file)

        assert result.exit_code == 2
        assert "give one of --client-id and --operator" in result.stderr


def _key_pair(kind: str) -> tuple[dict[str, str], dict[str, str]]:
    made: Any = (
        ec.generate_private_key(ec.SECP256R1())
        if kind == "P-256"
        else rsa.generate_private_key(65537, 2048)
    )
    pem = made.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    private = jwk.construct(pem.decode(), "ES256" if kind == "P-256" else "RS384")

    def texts(members: Any) -> dict[str, str]:
        return {n: v.decode() if isinstance(v, bytes) else v for n, v in members.items()}

    public = {k: v for k, v in texts(private.public_key().to_dict()).items() if k != "alg"}
    own = {k: v for k, v in texts(private.to_dict()).items() if k != "alg"}
    return {**own, "kid": "k1"}, {**public, "kid": "k1"}
