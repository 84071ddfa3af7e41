"""Who may administer the service: by the bootstrap key, a token, or an assertion."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest

from fhirpub.administration.http.callers import TYPE, Callers, bootstrap_kid, has_key
from fhirpub.auth.assertions.signing import new_key_pair, sign_assertion
from fhirpub.auth.assertions.verification import TYPE as ASSERTION
from fhirpub.auth.keys import KeyRing
from fhirpub.auth.statements import read_statement, sign_statement
from fhirpub.auth.token_request import Message
from fhirpub.config.administration import BOOTSTRAP, AdminConfig
from fhirpub.errors import NotAuthenticated, TokenRefused
from tests.unit.administration.office import Office, opened

KEY = "c0ffee" * 6
BASE = "https://admin.example.org"
AUDIENCE = f"{BASE}/admin/v1"


@dataclass
class Desk:
    """Callers, and the key of the one that is named ana."""

    office: Office
    ring: KeyRing
    callers: Callers
    config: AdminConfig
    keys: Path
    private: dict[str, str]

    @property
    def now(self) -> int:
        return self.office.clock.now // 1000

    def assertion(self, **changes: Any) -> str:
        given = {"subject": "ana", "audience": f"{AUDIENCE}/token", "clock": self.office.clock}
        return sign_assertion(self.private, **{**given, **changes})

    async def grant(self, **changes: Any) -> Any:
        fields = {
            "grant_type": "client_credentials",
            "client_assertion_type": ASSERTION,
            "client_assertion": self.assertion(),
        }
        form = "application/x-www-form-urlencoded"
        kept = {name: value for name, value in (fields | changes).items() if value is not None}
        return await self.callers.grant(Message(content_type=form, body=urlencode(kept).encode()))

    async def token(self, type_: str = TYPE, **changes: Any) -> str:
        claims = {"sub": "ana", "aud": AUDIENCE, "iat": self.now, "exp": self.now + 10}
        return await sign_statement(self.ring, {**claims, **changes}, type_=type_)

    async def name(self, token: str) -> str:
        return await self.callers.authenticate([f"Bearer {token}"])


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with opened(tmp_path) as office:
        private, public = new_key_pair()
        keys = tmp_path / "ana.json"
        keys.write_bytes(orjson.dumps(public))
        config = AdminConfig(
            port=1,
            base_url=f"{BASE}/",
            bootstrap_key_hash=hashlib.sha256(KEY.encode()).hexdigest(),
            callers=[f"ana={keys}", "eva=/nowhere"],
        )
        ring = KeyRing(office.store, office.administration.config.auth, clock=office.clock)
        callers = Callers(config, ring, office.store, clock=office.clock)
        yield Desk(office, ring, callers, config, keys, private)


async def test_the_bootstrap_key_is_that_of_its_caller(desk: Desk) -> None:
    assert await desk.name(KEY) == BOOTSTRAP


@pytest.mark.parametrize("key", ["", KEY.upper(), KEY[:-1], KEY + "0"])
async def test_another_key_is_refused(desk: Desk, key: str) -> None:
    with pytest.raises(NotAuthenticated):
        await desk.name(key)


async def test_without_a_bootstrap_key_none_is_taken(desk: Desk) -> None:
    config = replace(desk.config, bootstrap_key_hash="")
    callers = Callers(config, desk.ring, desk.office.store, clock=desk.office.clock)

    with pytest.raises(NotAuthenticated):
        await callers.authenticate([f"Bearer {KEY}"])


@pytest.mark.parametrize("sent", [[], ["Bearer a", "Bearer b"], [f"Basic {KEY}"]])
async def test_a_request_must_have_one_bearer_token(desk: Desk, sent: list[str]) -> None:
    with pytest.raises(NotAuthenticated):
        await desk.callers.authenticate(sent)


async def test_a_token_is_that_of_its_caller(desk: Desk) -> None:
    assert await desk.name(await desk.token()) == "ana"


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": BASE},
        {"aud": f"{AUDIENCE}/token"},
        {"sub": "unknown"},
        {"sub": BOOTSTRAP},
        {"sub": 5},
        {"sub": None},
        {"exp": None},
        {"exp": "9"},
        {"type_": "at+jwt"},
    ],
)
async def test_a_token_of_another_form_is_refused(desk: Desk, changes: dict[str, Any]) -> None:
    token = await desk.token(**changes)

    with pytest.raises(NotAuthenticated):
        await desk.name(token)


async def test_a_token_works_until_its_end(desk: Desk) -> None:
    token = await desk.token(exp=desk.now + 10)
    left = (desk.now + 10) * 1000 - desk.office.clock.now

    desk.office.clock.now += left - 1
    assert await desk.name(token) == "ana"
    desk.office.clock.now += 1
    with pytest.raises(NotAuthenticated):
        await desk.name(token)


# Tokens for assertions.


async def test_an_assertion_gets_a_token_of_its_caller(desk: Desk) -> None:
    granted = await desk.grant()

    claims = await read_statement(desk.ring, granted["access_token"], type_=TYPE)
    assert (granted["token_type"], granted["expires_in"]) == ("Bearer", 300)
    assert claims == {"sub": "ana", "aud": AUDIENCE, "iat": desk.now, "exp": desk.now + 300}
    assert await desk.name(granted["access_token"]) == "ana"


@pytest.mark.parametrize("audience", [AUDIENCE, f"{AUDIENCE}/token"])
async def test_an_assertion_is_for_this_interface(desk: Desk, audience: str) -> None:
    assert await desk.grant(client_assertion=desk.assertion(audience=audience))


@pytest.mark.parametrize(
    "changes",
    [{"audience": BASE}, {"subject": "eva"}, {"subject": "unknown"}, {"subject": BOOTSTRAP}],
)
async def test_another_assertion_is_refused(desk: Desk, changes: dict[str, Any]) -> None:
    with pytest.raises(TokenRefused, match=r"^the assertion ") as refused:
        await desk.grant(client_assertion=desk.assertion(**changes))

    assert refused.value.error == "invalid_client"


async def test_an_assertion_of_another_key_is_refused(desk: Desk) -> None:
    desk.private, _ = new_key_pair()

    with pytest.raises(TokenRefused):
        await desk.grant(client_assertion=desk.assertion())


async def test_an_assertion_is_used_once(desk: Desk) -> None:
    assertion = desk.assertion()
    await desk.grant(client_assertion=assertion)

    with pytest.raises(TokenRefused) as refused:
        await desk.grant(client_assertion=assertion)

    assert refused.value.error == "invalid_client"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": None}, "unsupported_grant_type"),
        ({"client_assertion_type": "x"}, "invalid_request"),
        ({"client_assertion": None}, "invalid_client"),
        ({"client_assertion": "a.b.c"}, "invalid_client"),
    ],
)
async def test_a_wrong_request_is_refused(desk: Desk, changes: dict[str, Any], error: str) -> None:
    with pytest.raises(TokenRefused) as refused:
        await desk.grant(**changes)

    assert refused.value.error == error


# Keys.


async def test_a_caller_has_the_keys_of_its_file_as_it_is_now(desk: Desk) -> None:
    kid = orjson.loads(desk.keys.read_bytes())["keys"][0]["kid"]

    found = [await has_key(desk.config, name, kid) for name in ("ana", "eva", "unknown")]
    desk.keys.write_text("no JSON")

    assert found == [True, False, False]
    assert not await has_key(desk.config, "ana", kid)
    assert not await has_key(desk.config, "ana", "")


async def test_the_bootstrap_key_has_a_name_that_follows_from_it(desk: Desk) -> None:
    kid = bootstrap_kid(desk.config)

    assert len(kid) == 16
    assert kid not in desk.config.bootstrap_key_hash
    assert kid != bootstrap_kid(replace(desk.config, bootstrap_key_hash="0" * 64))
    assert await has_key(desk.config, BOOTSTRAP, kid)
    assert not await has_key(desk.config, BOOTSTRAP, kid[:-1])
    assert not await has_key(desk.config, "ana", kid)
