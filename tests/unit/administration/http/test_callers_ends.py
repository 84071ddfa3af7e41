"""When tokens and assertions of administration end, and to which callers they belong."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from fhirpub.administration.http.callers import TYPE, has_key
from fhirpub.auth.assertions import signing
from fhirpub.auth.assertions.key_set import MAX_BYTES
from fhirpub.auth.assertions.signing import new_key_pair, sign_assertion
from fhirpub.auth.statements import read_statement
from fhirpub.auth.token_request import Message
from fhirpub.errors import NotAuthenticated, TokenRefused
from tests.unit.administration.admission import AUDIENCE, FORM, Admission, admitting, callers_of


@pytest.fixture
async def admission(tmp_path: Path) -> AsyncGenerator[Admission]:
    async with admitting(tmp_path) as admission:
        yield admission


async def granted(admission: Admission, **changes: Any) -> Any:
    message = Message(content_type=FORM, body=admission.form(**changes))
    return await admission.callers.grant(message)


async def test_a_token_is_refused_from_the_moment_of_its_end(admission: Admission) -> None:
    token = await admission.token()
    end = (admission.now + 10) * 1000

    admission.office.clock.now = end - 1
    assert await admission.callers.authenticate([f"Bearer {token}"]) == "ana"

    admission.office.clock.now = end
    with pytest.raises(NotAuthenticated):
        await admission.callers.authenticate([f"Bearer {token}"])


@pytest.mark.parametrize(("wanted", "seconds"), [(50, 50), (100_000, 60)])
async def test_a_token_lasts_no_longer_than_a_retired_key_verifies(
    admission: Admission, wanted: int, seconds: int
) -> None:
    office = admission.office
    auth = replace(office.administration.config.auth, token_seconds=60, assertion_token_seconds=60)
    config = replace(admission.config, token_seconds=wanted)
    admission.ring, admission.callers = callers_of(office.with_config(auth=auth), config)

    found = await granted(admission)

    claims = await read_statement(admission.ring, found["access_token"], type_=TYPE)
    assert (found["expires_in"], claims["exp"]) == (seconds, admission.now + seconds)


async def test_an_assertion_of_one_caller_uses_up_none_of_another(
    admission: Admission, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = SimpleNamespace(token_urlsafe=lambda _length: "j", token_hex=token_hex)
    monkeypatch.setattr(signing, "secrets", same)
    private, public = new_key_pair()
    (tmp_path / "amy.json").write_bytes(orjson.dumps(public))
    config = replace(
        admission.config, callers=[*admission.config.callers, f"amy={tmp_path}/amy.json"]
    )
    _ring, admission.callers = callers_of(admission.office, config)
    named: dict[str, Any] = {"audience": AUDIENCE, "clock": admission.office.clock}
    ours = sign_assertion(admission.private, subject="ana", **named)
    theirs = sign_assertion(private, subject="amy", **named)

    for assertion in (ours, theirs):
        await granted(admission, client_assertion=assertion)
    for assertion in (ours, theirs):
        with pytest.raises(TokenRefused):
            await granted(admission, client_assertion=assertion)


@pytest.mark.parametrize(("size", "is_read"), [(MAX_BYTES, True), (MAX_BYTES + 1, False)])
async def test_a_file_of_keys_that_is_too_long_has_none(
    admission: Admission, size: int, *, is_read: bool
) -> None:
    text = admission.keys.read_bytes()
    (key,) = orjson.loads(text)["keys"]
    admission.keys.write_bytes(text.ljust(size))

    assert await has_key(admission.config, "ana", key["kid"]) is is_read


async def test_a_caller_may_have_several_keys(admission: Admission) -> None:
    mine = orjson.loads(admission.keys.read_bytes())["keys"]
    _private, other = new_key_pair()
    admission.keys.write_bytes(orjson.dumps({"keys": [*other["keys"], *mine]}))

    for key in (*mine, *other["keys"]):
        assert await has_key(admission.config, "ana", key["kid"])
    assert (await granted(admission))["token_type"] == "Bearer"
