"""A token of another issuer is refused unless all of it is right, and never exceeds its limits."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from fhirpub.auth.authentication import TokenEndpoint
from fhirpub.auth.issuers.trust import STALE_SECONDS
from fhirpub.auth.tenants import add_tenant, change_tenant
from fhirpub.auth.tokens import Tokens
from fhirpub.errors import NotAuthenticated, StoreUnavailable
from fhirpub.plugin_api import TokenHolder, TokenIssuer, TokenRejected
from tests.unit.auth.assertions.signing import Pair, b64url, key_set, pair
from tests.unit.auth.conftest import ISSUER, World, bearer
from tests.unit.auth.issuers.site import Site

CORP, WARD = "https://login.corp.example", "https://login.ward.example/realms/x"
AUDIENCE = "https://fhir.lab.example"
SCOPE = "system/DiagnosticReport.rs"
KEY = pair("ES256", "corp-1")


def identify(claims: Mapping[str, Any]) -> TokenHolder:
    """Return a holder as the claims say, without a check of any kind."""
    if "rejected" in claims:
        raise TokenRejected("no client")
    if "fault" in claims:
        raise KeyError(claims["fault"])
    return claims.get("holder") or TokenHolder(
        client=claims["client_id"],
        tenant=claims["tenant"],
        scopes=tuple(claims.get("scope", "").split()),
    )


class Corp:
    """Two issuers, each with a tenant of its own, and the tokens of one process."""

    def __init__(self, world: World, tenants: Mapping[str, str]) -> None:
        self.world = world
        self.tenants = tenants
        self.site = Site()
        self.site.publish(CORP, key_set(KEY))
        self.site.publish(WARD, key_set(pair("RS384", "ward-1")))
        issuers = [
            TokenIssuer(
                name=name,
                url=url,
                audience=AUDIENCE,
                tenants=(tenants[name],),
                scopes=("system/*.rs",),
                identify=identify,
            )
            for name, url in (("corp", CORP), ("ward", WARD))
        ]
        self.tokens = Tokens(
            access=world.access,
            config=world.config,
            limits=world.limits,
            issuer=ISSUER,
            clock=world.clock,
            endpoint=TokenEndpoint(f"{ISSUER}/oauth/token", self.site.fetch, issuers),
        )

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = self.world.clock() // 1000
        usual = {
            "iss": CORP,
            "aud": AUDIENCE,
            "sub": "app",
            "client_id": "app",
            "exp": now + 600,
            "iat": now,
            "jti": "j",
            "scope": SCOPE,
            "tenant": self.tenants["corp"],
        }
        return {name: value for name, value in {**usual, **changes}.items() if value is not None}

    def token(
        self, *, by: Pair = KEY, header: Mapping[str, Any] | None = None, **changes: Any
    ) -> str:
        return by.sign(self.claims(**changes), header={"typ": "at+jwt", **(header or {})})

    async def refusal(self, token: str) -> str:
        """Return why a token is refused, as the log has it."""
        with pytest.raises(NotAuthenticated) as refused:
            await self.tokens.caller(bearer(token))
        assert refused.value.token_sent
        return refused.value.reason


@pytest.fixture
async def corp(world: World) -> AsyncIterator[Corp]:
    names = ("corp", "ward")
    made = [await add_tenant(world.access, name, clock=world.clock) for name in names]
    corp = Corp(world, {name: tenant.id for name, tenant in zip(names, made, strict=True)})
    await corp.tokens.start()
    yield corp
    await corp.tokens.stop()


async def test_a_token_of_an_issuer_is_that_of_its_client(corp: Corp) -> None:
    caller = await corp.tokens.caller(bearer(corp.token()))

    assert (caller.tenant.id, caller.client_id) == (corp.tenants["corp"], "corp:app")
    assert (caller.scopes, caller.scopes_count) == ((SCOPE,), True)


async def test_it_is_verified_once_in_half_a_minute(corp: Corp) -> None:
    token = corp.token()
    caller = await corp.tokens.caller(bearer(token))

    assert corp.tokens.cached_caller(f"Bearer {token}") is caller
    corp.world.clock.pass_seconds(31)
    assert corp.tokens.cached_caller(f"Bearer {token}") is None
    assert await corp.tokens.caller(bearer(token)) == caller


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "ES256", "ES384"])
@pytest.mark.parametrize("kind", ["at+jwt", "application/at+jwt", "JWT", None])
async def test_issuers_sign_and_name_tokens_variously(
    corp: Corp, algorithm: str, kind: str | None
) -> None:
    key = pair(algorithm, "k-1")
    corp.site.publish(CORP, key_set(key))

    token = corp.token(by=key, header={"typ": kind, "x5t": "abc"}, aud=["a", AUDIENCE])

    assert (await corp.tokens.caller(bearer(token))).client_id == "corp:app"


async def test_own_tokens_are_verified_as_ever(corp: Corp) -> None:
    token = await corp.world.token()

    assert await corp.tokens.caller(bearer(token)) == await corp.world.tokens.caller(bearer(token))
    assert corp.site.asked == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"aud": "https://other.example"}, "aud"),
        ({"aud": None}, "aud"),
        ({"aud": []}, "aud"),
        ({"aud": [AUDIENCE] * 11}, "aud"),
        ({"aud": {"a": AUDIENCE}}, "aud"),
        ({"exp": None}, "exp"),
        ({"exp": "1"}, "exp"),
        ({"exp": True}, "exp"),
        ({"exp": 1}, "expired"),
        ({"nbf": 1_900_000_000}, "nbf lies ahead"),
        ({"nbf": "soon"}, "nbf"),
        ({"iat": 1_900_000_000}, "iat lies ahead"),
        ({"typ": "ID"}, "typ of the claims"),
        ({"typ": "Refresh"}, "typ of the claims"),
        ({"cnf": {"jkt": "x"}}, "cnf"),
        ({"rejected": 1}, "no client"),
        ({"fault": "s3cret"}, "claims not read"),
        ({"client_id": ""}, "client"),
        ({"client_id": "two words"}, "client"),
        ({"client_id": "x" * 129}, "client"),
        ({"client_id": 1}, "client"),
        ({"tenant": "no-such"}, "tenant of another issuer"),
        ({"tenant": ["a"]}, "tenant of another issuer"),
        ({"scope": " ".join(f"s{n}" for n in range(51))}, "scopes"),
        ({"holder": "x"}, "no holder"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_wrong_claims_are_refused(corp: Corp, changes: dict[str, Any], reason: str) -> None:
    with capture_logs() as logged:
        assert await corp.refusal(corp.token(**changes)) == f"issuer corp: {reason}"
    assert "s3cret" not in str(logged)


async def test_times_have_the_leeway_of_the_service(corp: Corp) -> None:
    now, leeway = corp.world.clock() // 1000, corp.world.config.leeway_seconds

    await corp.tokens.caller(bearer(corp.token(exp=now - leeway + 1, nbf=now + leeway)))
    assert await corp.refusal(corp.token(exp=now - leeway)) == "issuer corp: expired"
    late = corp.token(nbf=now + leeway + 1)
    assert await corp.refusal(late) == "issuer corp: nbf lies ahead"


async def test_a_known_token_ends_with_its_time(corp: Corp) -> None:
    token = corp.token(exp=corp.world.clock() // 1000 + 10)
    await corp.tokens.caller(bearer(token))

    corp.world.clock.pass_seconds(10 + corp.world.config.leeway_seconds)

    assert corp.tokens.cached_caller(f"Bearer {token}") is None
    assert await corp.refusal(token) == "issuer corp: expired"


async def test_an_issuer_never_acts_for_the_tenant_of_another(corp: Corp) -> None:
    theirs = corp.token(tenant=corp.tenants["ward"])
    own = corp.token(tenant=corp.world.tenant.id)

    for token in (theirs, own):
        assert await corp.refusal(token) == "issuer corp: tenant of another issuer"


async def test_the_key_of_one_issuer_signs_nothing_of_another(corp: Corp) -> None:
    ward = pair("RS384", "ward-1")
    of_ward: dict[str, Any] = {"iss": WARD, "tenant": corp.tenants["ward"]}

    assert (await corp.tokens.caller(bearer(corp.token(by=ward, **of_ward)))).client_id == (
        "ward:app"
    )
    assert await corp.refusal(corp.token(by=ward)) == "issuer corp: kid"
    assert await corp.refusal(corp.token(**of_ward)) == "issuer ward: kid"


@pytest.mark.parametrize("issuer", [f"{CORP}/", CORP.upper(), "https://evil.example", 1, [CORP]])
async def test_the_token_of_an_unknown_issuer_is_none(corp: Corp, issuer: object) -> None:
    assert await corp.refusal(corp.token(iss=issuer)) == "kid"
    assert corp.site.asked == []


async def test_the_key_of_an_issuer_signs_no_token_of_this_service(corp: Corp) -> None:
    token = KEY.sign(
        corp.world.claims(),
        header={"typ": "at+jwt", "alg": "ES256", "kid": (await corp.world.key()).kid},
    )

    assert await corp.refusal(token) in ("alg", "signature")


async def test_scopes_never_exceed_those_of_the_issuer(corp: Corp) -> None:
    wanted = "system/*.cruds system/Patient.cu webhooks.write user/*.rs openid"

    caller = await corp.tokens.caller(bearer(corp.token(scope=wanted)))

    assert set(caller.scopes) <= {"system/*.rs"}
    assert caller.scopes


async def test_a_token_without_scopes_may_do_nothing(corp: Corp) -> None:
    assert (await corp.tokens.caller(bearer(corp.token(scope="")))).scopes == ()


async def test_a_certificate_is_kept_with_the_caller(corp: Corp) -> None:
    token = corp.token(cnf={"x5t#S256": "digest"})

    assert (await corp.tokens.caller(bearer(token))).certificate == "digest"


def forged(header: Mapping[str, Any], claims: Mapping[str, Any], signature: bytes) -> str:
    signed = f"{b64url(orjson.dumps(header))}.{b64url(orjson.dumps(claims))}"
    return f"{signed}.{b64url(signature)}"


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "HS256", "RS512", "PS256", "EdDSA", 1, None]
)
async def test_no_other_algorithm_is_accepted(corp: Corp, algorithm: object) -> None:
    header = {"alg": algorithm, "kid": KEY.private.kid, "typ": "at+jwt"}

    assert await corp.refusal(forged(header, corp.claims(), b"xxxx")) == "issuer corp: alg"
    assert corp.site.asked == []


async def test_a_public_key_is_no_secret_of_hmac(corp: Corp) -> None:
    header = {"alg": "HS256", "kid": KEY.private.kid, "typ": "at+jwt"}
    unsigned = forged(header, corp.claims(), b"").rstrip(".")
    for secret in (orjson.dumps(KEY.public()), KEY.private.as_pem(private=False)):
        mac = hmac.digest(secret, unsigned.encode(), hashlib.sha256)

        assert await corp.refusal(f"{unsigned}.{b64url(mac)}") == "issuer corp: alg"


async def test_a_key_is_used_with_its_own_algorithm_only(corp: Corp) -> None:
    rsa = pair("RS256", "k-1")
    corp.site.publish(CORP, orjson.dumps({"keys": [rsa.public(alg="RS384"), KEY.public()]}))

    assert await corp.refusal(corp.token(by=rsa)) == "issuer corp: alg"
    as_ec = forged({"alg": "ES256", "kid": "k-1", "typ": "at+jwt"}, corp.claims(), b"x" * 64)
    assert await corp.refusal(as_ec) == "issuer corp: alg"


@pytest.mark.parametrize(
    "header",
    [
        {"kid": "evil", "jku": "https://evil.example/jwks"},
        {"kid": "evil", "jwk": {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}},
        {"kid": "../../corp-1"},
        {"kid": "evil' OR 1=1"},
        {"kid": "https://evil.example/jwks"},
        {"kid": "corp-1\u0000"},
        {"kid": "", "jwk": {}},
        {"kid": None, "x5u": "https://evil.example"},
        {"kid": ["corp-1"]},
        {"crit": ["exp"]},
        {"typ": "logout+jwt"},
        {"typ": "dpop+jwt"},
        {"typ": 1},
    ],
    ids=str,
)
async def test_a_header_leads_to_no_key_but_those_of_the_issuer(
    corp: Corp, header: dict[str, Any]
) -> None:
    usual = {"alg": "ES256", "kid": KEY.private.kid, "typ": "at+jwt"}
    token = forged({**usual, **header}, corp.claims(), b"x" * 64)

    assert await corp.refusal(token) in (
        *("JSON", "issuer corp: kid", "issuer corp: no kid", "issuer corp: header"),
    )
    assert {url.partition("/.well")[0] for url, _ in corp.site.asked} <= {CORP, f"{CORP}/keys"}


async def test_an_altered_token_is_refused(corp: Corp) -> None:
    header, payload, signature = corp.token().split(".")
    claims = {**corp.claims(), "client_id": "admin"}
    altered = f"{header}.{b64url(orjson.dumps(claims))}.{signature}"

    assert await corp.refusal(altered) == "issuer corp: signature"
    assert await corp.refusal(f"{header}.{payload}.{signature[:-4]}AAAA") == (
        "issuer corp: signature"
    )


async def test_two_keys_of_one_name_verify_nothing(corp: Corp) -> None:
    twice = [KEY.public(), pair("ES256", "other").public(kid="corp-1")]
    corp.site.publish(CORP, orjson.dumps({"keys": twice}))

    assert await corp.refusal(corp.token()) == "issuer corp: alg"


@pytest.mark.parametrize("size", [9_000, 100_000, 5_000_000])
async def test_a_huge_token_is_refused_before_it_is_read(corp: Corp, size: int) -> None:
    assert await corp.refusal(corp.token(more="x" * size)) == "too long"
    assert corp.site.asked == []


async def test_a_token_longer_than_ours_is_accepted(corp: Corp) -> None:
    token = corp.token(groups=["g" * 40] * 90)

    assert 4_096 < len(token) < 8_192
    await corp.tokens.caller(bearer(token))


@pytest.mark.parametrize(
    "payload",
    [b'{"iss":"' + CORP.encode() + b'","iss":"x"}', b"[" * 1000, b"\xff", b"1", b'{"a":NaN}'],
)
async def test_no_payload_is_a_fault(corp: Corp, payload: bytes) -> None:
    assert await corp.refusal(KEY.sign(payload, header={"typ": "at+jwt"})) == "JSON"


async def test_a_key_that_is_rotated_is_fetched(corp: Corp) -> None:
    new = pair("ES256", "corp-2")
    await corp.tokens.caller(bearer(corp.token()))
    corp.site.publish(CORP, key_set(new))

    assert await corp.refusal(corp.token(by=new)) == "issuer corp: kid"
    corp.world.clock.pass_seconds(31)
    await corp.tokens.caller(bearer(corp.token(by=new)))
    assert await corp.refusal(corp.token(jti="k")) == "issuer corp: kid"


async def test_unknown_keys_cause_few_fetches(corp: Corp) -> None:
    await corp.tokens.caller(bearer(corp.token()))
    asked = len(corp.site.asked)
    for number in range(50):
        evil = corp.token(header={"kid": f"evil-{number}"})
        assert await corp.refusal(evil) == "issuer corp: kid"

    assert len(corp.site.asked) == asked


async def test_an_issuer_that_is_away_takes_down_no_token_with_a_known_key(corp: Corp) -> None:
    await corp.tokens.caller(bearer(corp.token()))
    corp.site.problem = "E_CONNECT"
    for _ in range(6):
        corp.world.clock.pass_seconds(3_600)
        await corp.tokens.caller(bearer(corp.token()))

    new = corp.token(by=pair("ES256", "corp-2"))
    assert await corp.refusal(new) in ("issuer corp: kid", "issuer corp: keys not fetched")
    corp.world.clock.pass_seconds(STALE_SECONDS)
    assert await corp.refusal(corp.token()) == "issuer corp: keys not fetched"
    corp.site.problem = ""
    corp.world.clock.pass_seconds(11)
    await corp.tokens.caller(bearer(corp.token()))


async def test_a_slow_issuer_delays_no_token_of_others(corp: Corp) -> None:
    corp.site.open.clear()
    waiting = asyncio.create_task(corp.tokens.caller(bearer(corp.token())))
    await asyncio.sleep(0.01)

    async with asyncio.timeout(20):
        await corp.tokens.caller(bearer(await corp.world.token()))
    assert not waiting.done()
    corp.site.open.set()
    assert (await waiting).client_id == "corp:app"


async def test_the_store_may_be_away_without_a_refusal(corp: Corp) -> None:
    corp.world.access.away = True

    with pytest.raises(StoreUnavailable):
        await corp.tokens.caller(bearer(corp.token()))


async def test_disabling_a_tenant_ends_tokens_of_others_within_half_a_minute(corp: Corp) -> None:
    token = corp.token()
    await corp.tokens.caller(bearer(token))
    await change_tenant(corp.world.access, corp.tenants["corp"], disabled=True)
    corp.world.clock.pass_seconds(31)

    assert corp.tokens.cached_caller(f"Bearer {token}") is None
    assert await corp.refusal(token) == "issuer corp: client or tenant"


async def test_many_tokens_of_a_tenant_read_it_once(corp: Corp) -> None:
    corp.world.access.reads.clear()
    for number in range(20):
        await corp.tokens.caller(bearer(corp.token(jti=f"j-{number}")))

    assert corp.world.access.reads.count("tenant") == 1
    assert corp.world.access.uses == {}


async def test_a_fault_of_a_plugin_is_logged_once(corp: Corp) -> None:
    with capture_logs() as logged:
        for number in range(3):
            await corp.refusal(corp.token(fault="s3cret", jti=f"j-{number}"))

    assert [line["event"] for line in logged if line["log_level"] == "error"] == [
        "claims not read"
    ]
    assert "s3cret" not in str(logged)


async def test_no_token_is_in_a_reason_or_a_sentence(corp: Corp) -> None:
    token = corp.token(aud="https://other.example")
    with pytest.raises(NotAuthenticated) as refused:
        await corp.tokens.caller(bearer(token))

    for part in token.split("."):
        assert part not in f"{refused.value.reason} {refused.value}"


async def test_revoking_a_token_of_another_issuer_records_nothing(corp: Corp) -> None:
    await corp.world.revoke(corp.token(), by=corp.tokens)

    assert await corp.world.access.revoked_tokens("corp:app") == []
