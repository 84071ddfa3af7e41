"""A client that signs an assertion gets a short token, once for each, and no other client does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest
from structlog.testing import capture_logs

from fhirpub.auth.assertions.key_set import PASSKEY
from fhirpub.auth.assertions.verification import TYPE, open_assertion
from fhirpub.auth.authentication import TokenEndpoint
from fhirpub.auth.clients import (
    NewClient,
    add_client,
    disable_client,
    edit_client,
    rotate_client,
    set_keys,
    update_client,
)
from fhirpub.auth.token_request import Credentials, Message
from fhirpub.auth.tokens import Grant, Tokens
from fhirpub.errors import (
    ConfigurationError,
    NotAuthenticated,
    StoreUnavailable,
    Throttled,
    TokenRefused,
)
from fhirpub.storage.client_activity_contract import UsedAssertion
from fhirpub.storage.contract import Client
from tests.collector import computing_less_than
from tests.unit.auth.assertions.signing import Pair, key_set, pair
from tests.unit.auth.conftest import ADDRESS, AUDIENCE, FORM, ISSUER, World, bearer

TOKEN_URL = "https://fhir.example.org/oauth/token"
JWKS_URL = "https://ward.example.org/jwks.json"
ES384 = pair("ES384")
UNPROVED = "the client_assertion is not signed by a key that is registered for its client"


@dataclass
class Answer:
    body: bytes
    problem: str = ""
    cache_control: str = ""


class Ward:
    """A client with keys, in front of two processes on one store."""

    def __init__(self, world: World, client: Client, processes: list[Tokens]) -> None:
        self.world = world
        self.client = client
        self.processes = processes
        self.published = Answer(key_set(ES384))
        self._number = 0

    def claims(self, **changes: Any) -> dict[str, Any]:
        self._number += 1
        now = self.world.clock() // 1000
        usual = {"iss": self.client.id, "sub": self.client.id, "aud": TOKEN_URL}
        times = {"exp": now + 300, "iat": now, "jti": f"j-{self._number}"}
        return {**usual, **times, **changes}

    async def fetch(self, _url: str, _tenant: str) -> Answer:
        return self.published

    async def ask(
        self, assertion: str | None = None, *, by: int = 0, address: str = ADDRESS, **more: str
    ) -> Grant:
        message = self.message(assertion or ES384.sign(self.claims()), **more)
        return await self.processes[by].grant(message, address=address)

    def message(self, assertion: str, **more: str) -> Message:
        fields = {
            "grant_type": "client_credentials",
            "client_assertion_type": TYPE,
            "client_assertion": assertion,
            **more,
        }
        return Message(content_type=FORM, body=urlencode(fields).encode())

    async def refusal(self, assertion: str | None = None, **more: Any) -> str:
        with pytest.raises(TokenRefused) as raised:
            await self.ask(assertion, **more)
        assert raised.value.error == "invalid_client"
        return str(raised.value)


@pytest.fixture
async def make_ward(make_world: Callable[..., Any]) -> Callable[..., Any]:
    async def make(
        jwks: str = "", *, jwks_url: str = "", scopes: tuple[str, ...] = (), **settings: Any
    ) -> Ward:
        world: World = await make_world(**settings)
        new = NewClient(
            tenant=world.tenant.id,
            name="ward",
            environment=world.config.environment,
            scopes=scopes,
            jwks=jwks or ("" if jwks_url else key_set(ES384).decode()),
            jwks_url=jwks_url,
        )
        client, secret = await add_client(world.access, new, clock=world.clock)
        assert secret == ""
        ward = Ward(world, client, [])
        endpoint = TokenEndpoint(TOKEN_URL, ward.fetch)
        ward.processes += [await world.another_process(endpoint=endpoint) for _ in range(2)]
        return ward

    return make


@pytest.fixture
async def ward(make_ward: Callable[..., Any]) -> Ward:
    made: Ward = await make_ward()
    return made


async def test_an_assertion_gets_a_token_for_five_minutes(ward: Ward) -> None:
    grant = await ward.ask()

    assert grant.expires_in == 300
    caller = await ward.world.tokens.caller(bearer(grant.access_token))
    assert (caller.client_id, caller.tenant) == (ward.client.id, ward.world.tenant)
    ward.world.clock.pass_seconds(300)
    with pytest.raises(NotAuthenticated):
        await ward.world.tokens.caller(bearer(grant.access_token))


async def test_the_lifetime_is_a_setting_and_that_for_secrets_stays(
    make_ward: Callable[..., Any],
) -> None:
    ward: Ward = await make_ward(assertion_token_seconds=60, token_seconds=3_600)

    assert (await ward.ask()).expires_in == 60
    assert (await ward.world.ask()).expires_in == 3_600


@pytest.mark.parametrize("algorithm", ["RS384", "ES384", "RS256", "ES256"])
async def test_each_algorithm_works_with_keys_in_the_store_and_published(
    make_ward: Callable[..., Any], algorithm: str
) -> None:
    signer, raw = pair(algorithm), key_set(pair(algorithm), pair("ES384", "other"))
    for keys in ({"jwks": raw.decode()}, {"jwks_url": JWKS_URL}):
        ward: Ward = await make_ward(**keys)
        ward.published = Answer(raw)

        assert (await ward.ask(signer.sign(ward.claims()))).client == ward.client.id


@pytest.mark.parametrize("audience", [TOKEN_URL, ISSUER, ["https://x.example.org", TOKEN_URL]])
async def test_an_assertion_is_for_the_token_endpoint_or_the_issuer(
    ward: Ward, audience: object
) -> None:
    await ward.ask(ES384.sign(ward.claims(aud=audience)))


async def test_the_audience_of_the_token_may_be_named_and_is_no_other(ward: Ward) -> None:
    await ward.ask(audience=AUDIENCE)

    with pytest.raises(TokenRefused) as raised:
        await ward.ask(audience="other")
    assert raised.value.error == "insufficient_scope"


async def test_wanted_scopes_of_both_versions_are_granted_as_far_as_they_are_held(
    make_ward: Callable[..., Any],
) -> None:
    ward: Ward = await make_ward(scopes=("system/DiagnosticReport.cruds", "system/Patient.read"))

    granted = [
        (await ward.ask(scope=wanted)).scope
        for wanted in ("system/*.read", "system/*.rs", "system/Patient.rs openid")
    ]

    assert granted == [
        "system/DiagnosticReport.rs system/Patient.rs",
        "system/DiagnosticReport.rs system/Patient.rs",
        "system/Patient.rs",
    ]


async def test_an_assertion_is_accepted_once_by_all_processes(ward: Ward) -> None:
    assertion = ES384.sign(ward.claims())
    await ward.ask(assertion)

    for process in (0, 1):
        assert (await ward.refusal(assertion, by=process)).startswith(
            "the client_assertion was used before"
        )


async def test_of_racing_requests_with_one_assertion_one_gets_a_token(ward: Ward) -> None:
    assertion = ES384.sign(ward.claims())

    asked = [ward.ask(assertion, by=number % 2) for number in range(10)]
    results = await asyncio.gather(*asked, return_exceptions=True)

    assert sum(isinstance(result, Grant) for result in results) == 1


async def test_a_used_jti_is_remembered_until_the_assertion_is_refused_anyway(
    make_ward: Callable[..., Any],
) -> None:
    ward: Ward = await make_ward(leeway_seconds=10)
    claims = ward.claims()
    await ward.ask(ES384.sign(claims))

    (used,) = ward.world.access.used.values()

    assert used == UsedAssertion(ward.client.id, claims["jti"], (claims["exp"] + 10) * 1000)


async def test_a_signature_that_is_wrong_uses_up_no_jti(ward: Ward) -> None:
    claims = ward.claims()
    await ward.refusal(pair("ES384", "forger").sign(claims, header={"kid": "k1"}))

    await ward.ask(ES384.sign(claims))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"aud": "https://other.example.org"}, f"must have the aud {TOKEN_URL}"),
        ({"exp": 1_900_000_000}, "must expire within five minutes: exp"),
        ({"exp": 1_799_999_999}, "has expired: sign a new one"),
        ({"jti": ""}, "must have a text of 1 to 255 printable characters: jti"),
    ],
)
async def test_the_holder_of_the_key_learns_which_claim_is_wrong(
    ward: Ward, changes: dict[str, Any], said: str
) -> None:
    assertion = ES384.sign(ward.claims(**changes))

    assert await ward.refusal(assertion) == f"the client_assertion {said}"
    forged = pair("ES384", "forger").sign(ward.claims(**changes), header={"kid": "k1"})
    assert await ward.refusal(forged) == UNPROVED


async def test_a_client_signs_for_itself_only(ward: Ward, make_ward: Callable[..., Any]) -> None:
    other = replace(ward.client, id="another", jwks=key_set(pair("ES384", "k2")).decode())
    await ward.world.access.put_client(other)
    named = {"iss": other.id, "sub": other.id}

    assert await ward.refusal(ES384.sign(ward.claims(**named))) == UNPROVED
    assert await ward.refusal(ES384.sign(ward.claims(**named), header={"kid": "k2"})) == UNPROVED


async def test_all_clients_without_a_usable_key_are_refused_alike(ward: Ward) -> None:
    access, client = ward.world.access, ward.client
    with_secret = ward.world.client
    names = {"iss": with_secret.id, "sub": with_secret.id}
    refused = [await ward.refusal(ES384.sign(ward.claims(**names)))]
    refused.append(await ward.refusal(ES384.sign(ward.claims(iss="nobody", sub="nobody"))))
    for other in (replace(client, environment="production"), replace(client, disabled=True)):
        await access.put_client(other)
        refused.append(await ward.refusal())
    await access.put_client(client)
    await access.put_tenant(replace(ward.world.tenant, disabled=True))
    refused.append(await ward.refusal())

    assert refused == [UNPROVED] * 5


async def test_a_client_with_keys_has_no_secret(ward: Ward) -> None:
    for secret in ("", "x"):
        with pytest.raises(TokenRefused):
            await ward.world.ask(client_id=ward.client.id, client_secret=secret)
    with pytest.raises(ConfigurationError, match="client edit --jwks"):
        await rotate_client(
            ward.world.access, ward.client.id, grace_seconds=0, clock=ward.world.clock
        )


async def test_a_client_changes_from_a_secret_to_keys_with_a_grace(ward: Ward) -> None:
    world = ward.world
    ward.client = await set_keys(
        world.access,
        world.client.id,
        jwks=key_set(ES384).decode(),
        grace_seconds=60,
        clock=world.clock,
    )

    with capture_logs() as logs:
        await ward.ask()
    assert "secret ends soon" not in {log["event"] for log in logs}
    await world.ask()
    world.clock.pass_seconds(60)
    await ward.ask()
    with pytest.raises(TokenRefused):
        await world.ask()


async def test_replaced_keys_are_refused_at_once(ward: Ward) -> None:
    new = pair("ES384", "new")
    await set_keys(
        ward.world.access,
        ward.client.id,
        jwks=key_set(new).decode(),
        grace_seconds=0,
        clock=ward.world.clock,
    )

    assert await ward.refusal() == UNPROVED
    await ward.ask(new.sign(ward.claims()))


async def test_a_disabled_client_loses_the_tokens_it_has(ward: Ward) -> None:
    grant = await ward.ask()
    await disable_client(ward.world.access, ward.client.id)

    with pytest.raises(NotAuthenticated):
        await ward.world.tokens.caller(bearer(grant.access_token))


async def test_an_assertion_from_outside_of_the_networks_is_refused(ward: Ward) -> None:
    await edit_client(ward.world.access, ward.client.id, networks=["198.51.100.0/24"])

    with pytest.raises(TokenRefused) as raised:
        await ward.ask()
    assert raised.value.error == "unauthorized_client"
    await ward.ask(address="198.51.100.7")


async def test_forgeries_are_slowed_down(ward: Ward) -> None:
    forged = pair("ES384", "forger").sign(ward.claims(), header={"kid": "k1"})
    for _ in range(10):
        await ward.refusal(forged)

    with pytest.raises(Throttled):
        await ward.ask(forged)


async def test_no_assertion_is_accepted_while_its_use_cannot_be_stored(ward: Ward) -> None:
    ward.world.access.away = True

    with pytest.raises(StoreUnavailable):
        await ward.ask()


async def test_a_client_that_signs_too_many_waits(ward: Ward) -> None:
    used = ward.world.access.used
    later = ward.world.clock() + 1
    for number in range(10_000):
        used[ward.client.id, str(number)] = UsedAssertion(ward.client.id, str(number), later)

    with pytest.raises(Throttled):
        await ward.ask()
    ward.world.clock.pass_seconds(1)
    await ward.ask()


async def test_a_key_set_that_cannot_be_fetched_is_said_to_be_the_trouble(
    make_ward: Callable[..., Any],
) -> None:
    ward: Ward = await make_ward(jwks_url=JWKS_URL)
    ward.published = Answer(b"", problem="E_BLOCKED_ADDRESS")

    with capture_logs() as logs:
        said = await ward.refusal()

    assert said.endswith("cannot be verified: the JWKS URL of the client leads to no key set now")
    assert "E_BLOCKED_ADDRESS" not in said
    assert [log["reason"] for log in logs if log["event"] == "keys not fetched"] == [
        "E_BLOCKED_ADDRESS"
    ]


async def test_a_token_is_revoked_by_an_assertion(ward: Ward) -> None:
    grant, tokens = await ward.ask(), ward.processes[0]
    message = ward.message(ES384.sign(ward.claims()), token=grant.access_token)

    await tokens.revoke(message, address=ADDRESS)

    with pytest.raises(NotAuthenticated):
        await tokens.caller(bearer(grant.access_token))


async def test_the_largest_key_set_is_read_within_a_turn_of_the_loop(
    make_ward: Callable[..., Any],
) -> None:
    keys = [pair("RS384", f"k{number}") for number in range(3)]
    twenty = [Pair(keys[number % 3].private, "RS384") for number in range(20)]
    members = [one.public(kid=f"n{number}") for number, one in enumerate(twenty)]
    ward: Ward = await make_ward(_set_of(members))

    statement = twenty[7].sign(ward.claims(), header={"kid": "n7"})
    with computing_less_than(0.5):  # 0.01 s
        await ward.ask(statement)


def _set_of(members: list[dict[str, Any]]) -> str:
    return orjson.dumps({"keys": members}).decode()


async def test_a_passkey_of_a_person_signs_no_assertion(make_ward: Callable[..., Any]) -> None:
    ward: Ward = await make_ward()
    key = pair("ES256", f"{PASSKEY}a")
    jwks = key_set(key).decode()
    access, id_ = ward.world.access, ward.client.id
    await update_client(access, id_, lambda client: replace(client, jwks=jwks))

    assert await ward.refusal(key.sign(ward.claims())) == UNPROVED


async def test_an_assertion_may_be_for_another_endpoint_that_asks_for_it(
    make_ward: Callable[..., Any],
) -> None:
    ward: Ward = await make_ward()
    clients, links = ward.processes[0].clients, "https://fhir.example.org/console/links"
    right, wrong = (
        open_assertion(ES384.sign(ward.claims(aud=audience))) for audience in (links, TOKEN_URL)
    )

    assert (await clients.prove(right, ADDRESS, audiences=(links,))).id == ward.client.id
    with pytest.raises(TokenRefused):
        await clients.prove(wrong, ADDRESS, audiences=(links,))


async def test_a_wrong_secret_is_refused_under_the_id_that_was_given(world: World) -> None:
    proof = Credentials(client_id=world.client.id, client_secret="wrong")

    with pytest.raises(TokenRefused) as refused:
        await world.tokens.clients.prove(proof, ADDRESS)

    assert refused.value.client == world.client.id
