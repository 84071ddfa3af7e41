"""What a plugin may find in the claims of a token, and what is logged when it fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.auth.assertions import published_keys
from fhirpub.auth.issuers.trust import Admitted, OtherIssuers
from fhirpub.auth.tenants import add_tenant, change_tenant
from fhirpub.errors import NotAuthenticated
from fhirpub.plugin_api import TokenHolder, TokenIssuer, TokenRejected
from fhirpub.problems import RequestProblem
from tests.unit.auth.assertions.signing import key_set, pair
from tests.unit.auth.conftest import HandClock, MemoryAccess, World
from tests.unit.auth.issuers.site import Silence, Site
from tests.unit.auth.issuers.test_trust import identify

CORP, AUDIENCE = "https://login.corp.example", "https://fhir.lab.example"
KEY = pair("ES256", "corp-1")
UNKNOWN = "the access token is of no client that its issuer may have here: ask the operator"


class Corp:
    """One issuer, whose plugin finds what a test wants."""

    def __init__(self) -> None:
        self.access, self.clock, self.site = MemoryAccess(), HandClock(), Site()
        self.site.publish(CORP, key_set(KEY))
        self.found: Any = None
        self.tenant = ""

    async def start(self, *more: str, scopes: tuple[str, ...] = ("system/*.rs",)) -> None:
        self.tenant = (await add_tenant(self.access, "corp", clock=self.clock)).id
        issuer = TokenIssuer(
            name="corp",
            url=CORP,
            audience=AUDIENCE,
            tenants=(self.tenant, *more),
            scopes=scopes,
            identify=self._identify,
        )
        self.issuers = OtherIssuers(
            [issuer],
            access=self.access,
            fetch=self.site.fetch,
            leeway_seconds=0,
            clock=self.clock,
        )

    def _identify(self, _claims: Any) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        if callable(self.found):
            return self.found()
        return self.found

    def token(self, **changes: Any) -> str:
        now = self.clock() // 1000
        usual = {"iss": CORP, "aud": AUDIENCE, "exp": now + 600, "iat": now}
        return KEY.sign({**usual, **changes}, header={"typ": "at+jwt"})

    async def admit(self, **changes: Any) -> Admitted:
        opened = self.issuers.open(self.token(**changes))
        assert opened is not None
        return await self.issuers.admit(*opened)

    async def admit_holder(self, **changes: Any) -> Admitted:
        usual = {"client": "app", "tenant": self.tenant, "scopes": ("system/*.rs",)}
        self.found = TokenHolder(**{**usual, **changes})
        return await self.admit()

    async def refusal(self) -> str:
        with pytest.raises(NotAuthenticated) as refused:
            await self.admit()
        assert refused.value.reason.startswith("issuer corp: ")
        return refused.value.reason.removeprefix("issuer corp: ")


@pytest.fixture
async def corp() -> Corp:
    made = Corp()
    await made.start()
    return made


async def test_a_caller_is_taken_for_granted_for_half_a_minute(corp: Corp) -> None:
    admitted = await corp.admit_holder()

    assert (admitted.since, admitted.until) == (corp.clock(), corp.clock() + 30_000)


async def test_a_caller_is_taken_for_granted_until_its_token_ends(corp: Corp) -> None:
    await corp.admit_holder()
    end = corp.clock() // 1000 + 5

    assert (await corp.admit(exp=end)).until == end * 1000


@pytest.mark.parametrize("client", ["!", "~" * 128, "a:b"])
async def test_a_client_has_128_printable_characters_at_most(corp: Corp, client: str) -> None:
    admitted = await corp.admit_holder(client=client)

    assert admitted.caller.client_id == f"corp:{client}"


@pytest.mark.parametrize("client", ["", "a" * 129, "a b", "é", "a\n", None])
async def test_another_name_of_a_client_is_refused(corp: Corp, client: Any) -> None:
    corp.found = TokenHolder(client=client, tenant=corp.tenant)

    assert await corp.refusal() == "client"


async def test_fifty_scopes_are_looked_at(corp: Corp) -> None:
    scopes = tuple(f"system/{'A' * number}x.rs" for number in range(1, 51))

    assert len((await corp.admit_holder(scopes=scopes)).caller.scopes) == 50
    corp.found = TokenHolder(client="app", tenant=corp.tenant, scopes=(*scopes, "system/B.rs"))
    assert await corp.refusal() == "scopes"


@pytest.mark.parametrize("scopes", [["system/*.rs"], "system/*.rs", (7,), ("system/*.rs", None)])
async def test_scopes_of_another_form_are_refused(corp: Corp, scopes: Any) -> None:
    corp.found = TokenHolder(client="app", tenant=corp.tenant, scopes=scopes)

    assert await corp.refusal() == "scopes"


@pytest.mark.parametrize("found", [None, "app", {"client": "app"}])
async def test_what_is_no_holder_is_refused(corp: Corp, found: Any) -> None:
    corp.found = found

    assert await corp.refusal() == "no holder"


async def test_a_refusal_of_the_plugin_has_its_reason(corp: Corp) -> None:
    corp.found = TokenRejected("a guest")

    assert await corp.refusal() == "a guest"


async def test_no_word_of_a_plugin_is_given_to_the_caller(corp: Corp) -> None:
    corp.found = TokenRejected("a guest")
    with pytest.raises(NotAuthenticated) as refused:
        await corp.admit()

    assert str(refused.value) == UNKNOWN
    assert refused.value.details is RequestProblem.TOKEN_INVALID


async def test_a_fault_of_the_plugin_is_logged_with_its_place_and_no_claim(corp: Corp) -> None:
    corp.found = KeyError("s3cret")
    with capture_logs() as logs:
        assert await corp.refusal() == "claims not read"

    (line,) = logs
    assert (line["event"], line["log_level"]) == ("claims not read", "error")
    assert line["issuer"] == "corp"
    assert "test_trust_holders.py" in line["place"]
    assert "s3cret" not in str(line)


async def test_a_fault_at_another_place_is_logged_too(corp: Corp) -> None:
    def divide() -> float:
        return 1 / 0

    with capture_logs() as logs:
        for found in (KeyError("x"), divide, KeyError("x"), divide):
            corp.found = found
            await corp.refusal()

    assert len({line["place"] for line in logs}) == len(logs) == 2


async def test_a_tenant_that_is_not_here_is_as_good_as_disabled() -> None:
    made = Corp()
    await made.start("11111111-1111-4111-8111-111111111111")
    made.found = TokenHolder(client="app", tenant="11111111-1111-4111-8111-111111111111")

    assert await made.refusal() == "client or tenant"


async def test_a_disabled_tenant_is_refused(corp: Corp) -> None:
    await change_tenant(corp.access, corp.tenant, disabled=True)
    corp.found = TokenHolder(client="app", tenant=corp.tenant)

    assert await corp.refusal() == "client or tenant"


async def test_the_second_tenant_of_an_issuer_is_acted_for_too() -> None:
    made = Corp()
    second = await add_tenant(made.access, "second", clock=made.clock)
    await made.start(second.id)

    admitted = await made.admit_holder(tenant=second.id)

    assert admitted.caller.tenant == second


async def test_keys_are_fetched_by_the_rules_of_the_first_tenant() -> None:
    made = Corp()
    await made.start("11111111-1111-4111-8111-111111111111")
    await made.admit_holder()

    assert {tenant for _url, tenant in made.site.asked} == {made.tenant}


async def test_the_plugin_is_not_asked_about_a_token_that_proves_nothing(corp: Corp) -> None:
    corp.found = RuntimeError("must not be called")
    corp.site.publish(CORP, key_set(pair("ES256", "other")))

    assert await corp.refusal() == "kid"


async def test_the_plugin_is_not_asked_about_a_token_that_has_expired(corp: Corp) -> None:
    corp.found = RuntimeError("must not be called")
    token = corp.token()
    corp.clock.pass_seconds(600)
    opened = corp.issuers.open(token)
    assert opened is not None

    with pytest.raises(NotAuthenticated) as refused:
        await corp.issuers.admit(*opened)

    assert refused.value.reason == "issuer corp: expired"


async def test_scopes_are_those_that_the_issuer_may_have() -> None:
    made = Corp()
    await made.start(scopes=("system/Observation.rs",))

    caller = (await made.admit_holder(scopes=("system/*.rs",))).caller

    assert (caller.scopes, caller.scopes_count) == (("system/Observation.rs",), True)


async def test_a_token_of_no_issuer_is_not_opened(corp: Corp) -> None:
    assert corp.issuers.open("a.b.c") is None
    assert corp.issuers.open(corp.token(iss="https://other.example")) is None
    assert corp.issuers.open(corp.token(iss=[CORP])) is None


async def test_a_known_key_is_not_fetched_again_for_each_token(corp: Corp) -> None:
    await corp.admit_holder()
    asked = len(corp.site.asked)
    corp.clock.pass_seconds(31)
    await corp.admit_holder()

    assert len(corp.site.asked) == asked


async def test_what_is_being_fetched_ends_with_the_issuers(world: World) -> None:
    silence = Silence()
    issuer = TokenIssuer(
        name="corp",
        url=CORP,
        audience=AUDIENCE,
        tenants=(world.tenant.id,),
        scopes=(),
        identify=identify,
    )
    others = OtherIssuers(
        [issuer], access=world.access, fetch=silence.fetch, leeway_seconds=0, clock=world.clock
    )
    opened = others.open(KEY.sign({"iss": CORP}))
    assert opened is not None
    waiting = asyncio.create_task(others.admit(*opened))
    async with asyncio.timeout(60):
        await silence.asked.wait()
        await others.stop()

    is_ended = silence.ended.is_set()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert is_ended


async def test_a_caller_is_as_old_as_what_was_read_of_its_tenant(corp: Corp) -> None:
    first = await corp.admit_holder()
    corp.clock.pass_seconds(10)

    second = await corp.admit()

    assert (second.since, second.until) == (first.since, first.until)


async def test_a_key_that_may_not_be_fetched_now_proves_nothing(
    corp: Corp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published_keys, "_MAX_FETCHES", 0)

    assert await corp.refusal() == "keys not fetched"
