"""Who may administer the service: by the bootstrap key, a token, or an assertion."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from fhirpub.administration.http.callers import TYPE, bootstrap_kid, has_key
from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.auth.statements import read_statement
from fhirpub.auth.token_request import Message
from fhirpub.config.administration import BOOTSTRAP
from fhirpub.errors import NotAuthenticated, TokenRefused
from tests.unit.administration.admission import AUDIENCE, BASE, FORM, KEY, Admission, admitting


@dataclass
class Desk(Admission):
    """Callers that are asked who someone is, and for tokens."""

    async def grant(self, **changes: Any) -> Any:
        return await self.callers.grant(Message(content_type=FORM, body=self.form(**changes)))

    async def name(self, token: str) -> str:
        return await self.callers.authenticate([f"Bearer {token}"])


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with admitting(tmp_path, port=1, base_url=f"{BASE}/") as admission:
        yield Desk(**vars(admission))


async def test_the_bootstrap_key_is_that_of_its_caller(desk: Desk) -> None:
    assert await desk.name(KEY) == BOOTSTRAP


@pytest.mark.parametrize("key", ["", KEY.upper(), KEY[:-1], KEY + "0"])
async def test_another_key_is_refused(desk: Desk, key: str) -> None:
    with pytest.raises(NotAuthenticated):
        await desk.name(key)


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
        {"aud": f"{AUDIENCE}/x"},
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


# Tokens for assertions.


async def test_an_assertion_gets_a_token_of_its_caller(desk: Desk) -> None:
    granted = await desk.grant()

    claims = await read_statement(desk.ring, granted["access_token"], type_=TYPE)
    assert (granted["token_type"], granted["expires_in"]) == ("Bearer", 300)
    assert claims == {"sub": "ana", "aud": AUDIENCE, "iat": desk.now, "exp": desk.now + 300}
    assert await desk.name(granted["access_token"]) == "ana"


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


async def test_a_caller_has_no_other_key(desk: Desk) -> None:
    assert not await has_key(desk.config, "ana", "other")
    assert not await has_key(desk.config, BOOTSTRAP, desk.private["kid"])


async def test_the_bootstrap_key_has_a_name_that_follows_from_it(desk: Desk) -> None:
    kid = bootstrap_kid(desk.config)

    assert len(kid) == 16
    assert kid not in desk.config.bootstrap_key_hash
    assert kid != bootstrap_kid(replace(desk.config, bootstrap_key_hash="0" * 64))
    assert await has_key(desk.config, BOOTSTRAP, kid)
    assert not await has_key(desk.config, BOOTSTRAP, kid[:-1])
    assert not await has_key(desk.config, "ana", kid)
