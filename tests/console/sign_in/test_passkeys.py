from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from jose import jwk

from fhirpub.auth.assertions.signing import sign_assertion
from fhirpub.auth.assertions.verification import TYPE
from fhirpub.runtime.clock import now_ms
from tests.console.sign_in.conftest import ORIGIN, Site
from tests.console.sign_in.passkey import PRESENT, Passkey
from tests.console.sign_in.visitor import Visitor, form_in

NOT_ACCEPTED = b"The passkey was not accepted. Try again, or ask the operator"


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
def test_a_person_signs_in_with_the_passkey_of_an_invitation(site: Site, algorithm: Any) -> None:
    first, passkey, _client = site.member(algorithm=algorithm)
    assert first.is_signed_in()
    first.sign_out()
    assert not first.is_signed_in()

    answer = first.sign_in(passkey)

    assert (answer.status, answer.headers["location"]) == (303, "/console/")
    assert first.is_signed_in()


def test_a_passkey_is_a_key_of_its_client_with_a_name_of_its_own(site: Site) -> None:
    _visitor, passkey, client = site.member()

    shown = site.json("client", "show", client)

    assert shown["keys"] == [passkey.kid]


def test_the_browser_makes_a_passkey_that_it_finds_itself_and_that_verifies_its_user(
    site: Site, visitor: Visitor
) -> None:
    invited = site.person()

    form = visitor.form(invited["url"].removeprefix(ORIGIN), "/console/invitation")

    options = json.loads(form.options)
    assert options["rp"]["id"] == "console.example.org"
    assert options["authenticatorSelection"]["residentKey"] == "required"
    assert options["authenticatorSelection"]["userVerification"] == "required"
    assert [one["alg"] for one in options["pubKeyCredParams"]] == [-7, -257]
    assert options["attestation"] == "none"


@pytest.mark.parametrize(
    "changes",
    [
        {"signature": b"\x30\x06\x02\x01\x01\x02\x01\x01"},
        {"userHandle": b"5f0c3b9e-0000-4000-8000-000000000000"},
        {"userHandle": b"\xff\x00"},
        {"authenticatorData": b"short"},
        {"clientDataJSON": b"{}"},
    ],
)
def test_another_answer_than_that_of_the_passkey_is_refused_alike(
    site: Site, visitor: Visitor, changes: dict[str, bytes]
) -> None:
    _first, passkey, _client = site.member()

    answer = visitor.sign_in(passkey, **changes)

    assert answer.status == 403
    assert NOT_ACCEPTED in answer.body
    assert not visitor.is_signed_in()


@pytest.mark.parametrize("credential", ["", "{}", "[]", "null", "x" * 40_000, '{"id": 1}'])
def test_what_is_no_answer_of_a_browser_is_refused_alike(
    visitor: Visitor, credential: str
) -> None:
    form = visitor.form("/console/sign-in", "/console/sign-in/passkey")

    answer = visitor.post(form.action, {**form.fields, "credential": credential})

    assert answer.status == 403
    assert NOT_ACCEPTED in answer.body


@pytest.mark.parametrize(
    "differing",
    [{"origin": "https://evil.example.org"}, {"host": "example.org"}, {"flags": PRESENT}],
)
def test_a_passkey_counts_on_its_own_site_and_for_a_verified_user_alone(
    site: Site, visitor: Visitor, differing: dict[str, Any]
) -> None:
    _first, passkey, _client = site.member()
    for name, value in differing.items():
        setattr(passkey, name, value)

    assert visitor.sign_in(passkey).status == 403


def test_an_answer_is_accepted_once(site: Site) -> None:
    first, passkey, _client = site.member()
    first.sign_out()
    form = first.form("/console/sign-in", "/console/sign-in/passkey")
    fields = {**form.fields, "credential": passkey.sign_in(form.options)}
    assert first.post(form.action, fields).status == 303

    other = Visitor(site.service)

    assert other.post(form.action, fields).status == 403
    assert not other.is_signed_in()


def test_the_answer_to_one_challenge_is_not_that_to_another(site: Site, visitor: Visitor) -> None:
    _first, passkey, _client = site.member()
    one = visitor.form("/console/sign-in", "/console/sign-in/passkey")
    other = visitor.form("/console/sign-in", "/console/sign-in/passkey")

    fields = {**other.fields, "credential": passkey.sign_in(one.options)}

    assert visitor.post(other.action, fields).status == 403


def test_a_challenge_expires(timed: Site) -> None:
    assert timed.clock is not None
    first, passkey, _client = timed.member()
    first.sign_out()
    form = first.form("/console/sign-in", "/console/sign-in/passkey")
    fields = {**form.fields, "credential": passkey.sign_in(form.options)}
    timed.clock.forward(seconds=300)

    assert first.post(form.action, fields).status == 403


def test_who_fails_too_often_waits(timed: Site) -> None:
    assert timed.clock is not None
    first, passkey, _client = timed.member()
    first.sign_out()
    answers = [first.sign_in(passkey, signature=b"wrong") for _ in range(10)]
    assert {answer.status for answer in answers} == {403}

    slowed = first.sign_in(passkey)

    assert slowed.status == 429
    assert int(slowed.headers["retry-after"]) > 0
    assert Visitor(timed.service).sign_in(passkey).status == 303
    timed.clock.forward(seconds=60)
    assert first.sign_in(passkey).status == 303


def test_a_passkey_signs_no_assertion(site: Site) -> None:
    _visitor, passkey, client = site.member()
    assertion = _signed_by(passkey, client, f"{site.service.base_url}/oauth/token")
    fields = {
        "grant_type": "client_credentials",
        "client_assertion_type": TYPE,
        "client_assertion": assertion,
    }

    answer = Visitor(site.service).post("/oauth/token", fields)

    assert (answer.status, answer.json["error"]) == (401, "invalid_client")


def test_a_passkey_gets_no_link(site: Site) -> None:
    _visitor, passkey, client = site.member()
    assertion = _signed_by(passkey, client, f"{ORIGIN}/console/links")
    fields = {"client_assertion_type": TYPE, "client_assertion": assertion}

    answer = Visitor(site.service).post("/console/links", fields)

    assert (answer.status, answer.json["error"]) == (401, "invalid_client")


def _signed_by(passkey: Passkey, client: str, audience: str) -> str:
    """Return an assertion that would be right, were the key one of an application."""
    pem = passkey.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    members = jwk.construct(pem.decode(), "ES256").to_dict()
    texts = {n: v.decode() if isinstance(v, bytes) else v for n, v in members.items()}
    key = {**texts, "kid": passkey.kid}
    return sign_assertion(key, subject=client, audience=audience, clock=now_ms)


def test_a_person_has_no_secret_and_gets_none(site: Site) -> None:
    _visitor, _passkey, client = site.member()

    rotated = site.run("client", "rotate", client)

    assert rotated.exit_code == 1
    assert "the client is a person" in rotated.stderr


def test_a_removed_passkey_ends_its_sessions_and_no_others(timed: Site) -> None:
    assert timed.clock is not None
    lost, passkey, client = timed.member()
    kept, another = Visitor(timed.service), Passkey(origin=ORIGIN)
    kept.accept(timed.json("client", "invite", client)["url"], another)

    timed.json("client", "remove-passkey", client, passkey.kid, "--yes")

    timed.clock.forward(seconds=31)
    assert not lost.is_signed_in()
    assert lost.sign_in(passkey).status == 403
    assert kept.is_signed_in()


def test_the_last_passkey_can_be_removed_and_the_person_be_invited_again(site: Site) -> None:
    _visitor, passkey, client = site.member()
    removed = site.json("client", "remove-passkey", client, passkey.kid, "--yes")
    assert removed["keys"] is None

    again, fresh = Visitor(site.service), Passkey(origin=ORIGIN)

    assert again.accept(site.json("client", "invite", client)["url"], fresh).status == 303
    assert again.is_signed_in()


def test_a_passkey_that_is_not_there_cannot_be_removed(site: Site) -> None:
    _visitor, _passkey, client = site.member()

    refused = site.run("client", "remove-passkey", client, "passkey:none", "--yes")

    assert refused.exit_code == 1
    assert "has no passkey passkey:none" in refused.stderr


def test_the_page_after_a_refusal_leads_where_the_person_wanted_to_go(
    site: Site, visitor: Visitor
) -> None:
    _first, passkey, _client = site.member()
    path = "/console/sign-in?next=%2Fconsole%2Fendpoints"
    form = visitor.form(path, "/console/sign-in/passkey")
    wrong = visitor.post(form.action, {**form.fields, "credential": "{}"})

    form = form_in(wrong, "/console/sign-in/passkey")
    answer = visitor.post(
        form.action, {**form.fields, "credential": passkey.sign_in(form.options)}
    )

    assert answer.headers["location"] == "/console/endpoints"


def test_a_person_has_no_right_beyond_its_scopes(site: Site) -> None:
    visitor, _passkey, _client = site.member()
    assert not site.service.config.auth.enforce_scopes
    page = visitor.get("/console/")

    assert visitor.get("/console/resources/Patient").status == 200
    assert visitor.get("/console/endpoints").status == 403
    assert b"/console/resources/Patient" in page.body
    assert b"/console/endpoints" not in page.body
    form = form_in(page, "/console/sign-out")
    added = visitor.post("/console/add-endpoint", {**form.fields, "url": "https://x.example"})
    assert added.status == 403
