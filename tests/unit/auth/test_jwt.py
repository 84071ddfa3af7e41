from __future__ import annotations

import base64
import hashlib
import hmac
import json
import string
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jose import jwk, jws

from fhirpub.auth import jwt, refusals
from fhirpub.auth.caller import Caller
from fhirpub.auth.clients import disable_client
from fhirpub.errors import NotAuthenticated
from fhirpub.problems import RequestProblem
from tests.collector import computing_less_than
from tests.unit.auth.conftest import AUDIENCE, World, b64url, bearer

P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order n of the group of P-256 (SEC 2, 2.4.2)."""
UNPROVED = str(refusals.unproved(""))
"""What is sent to the caller about every token whose signature proves nothing."""
ALPHABET = string.ascii_letters + string.digits + "-_"


async def accepted(world: World, token: str) -> Caller:
    return await world.tokens.caller(bearer(token))


async def refused(world: World, token: str) -> NotAuthenticated:
    with pytest.raises(NotAuthenticated) as raised:
        await accepted(world, token)
    assert world.tokens.cached_caller(f"Bearer {token}") is None
    assert raised.value.token_sent
    return raised.value


async def header_of(world: World, **changes: Any) -> dict[str, Any]:
    key = await world.key()
    header = {"alg": key.algorithm, "kid": key.kid, "typ": "at+jwt", **changes}
    return {name: value for name, value in header.items() if value is not ...}


@pytest.mark.parametrize(
    "bound",
    [
        None,
        "x",
        {},
        {"jkt": "a"},
        {"x5t#S256": ""},
        {"x5t#S256": 7},
        {"x5t#S256": "a", "jkt": "b"},
    ],
)
async def test_a_token_that_is_bound_in_another_way_is_refused(world: World, bound: Any) -> None:
    signed = await world.signed(world.claims(cnf=bound))

    assert (await refused(world, signed)).details is RequestProblem.TOKEN_INVALID


async def test_a_bound_token_names_its_certificate(world: World) -> None:
    signed = await world.signed(world.claims(cnf={"x5t#S256": "a"}))

    assert (await accepted(world, signed)).certificate == "a"


async def test_a_token_written_by_hand_with_the_right_key_is_accepted(world: World) -> None:
    caller = await accepted(world, await world.signed())

    assert caller == Caller(world.tenant, world.client.id)


@pytest.mark.parametrize(
    "algorithm",
    [
        "none",
        "None",
        "nONE",
        "",
        "HS256",
        "RS256",
        "ES384",
        "ES256 ",
        ...,
        {},
        [],
        256,
        None,
        True,
    ],
)
async def test_any_other_algorithm_is_refused(world: World, algorithm: Any) -> None:
    await refused(world, await world.signed(header=await header_of(world, alg=algorithm)))


async def test_an_unsigned_token_is_refused(world: World) -> None:
    body = b64url(json.dumps(world.claims()).encode())
    header = b64url(json.dumps(await header_of(world, alg="none")).encode())

    for signature in ("", "e30", "AA"):
        await refused(world, f"{header}.{body}.{signature}")


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_hmac_with_the_public_key_is_refused(
    make_world: Callable[..., Any], algorithm: str
) -> None:
    world: World = await make_world(algorithm=algorithm)
    key = await world.key()
    public = jwk.construct(key.private_pem, key.algorithm).public_key().to_pem()
    header = b64url(json.dumps(await header_of(world, alg="HS256")).encode())
    signing_input = f"{header}.{b64url(json.dumps(world.claims()).encode())}"

    for secret in (public, public.strip(), json.dumps(world.tokens.jwks()).encode()):
        mac = hmac.digest(secret, signing_input.encode(), hashlib.sha256)
        await refused(world, f"{signing_input}.{b64url(mac)}")


@pytest.mark.parametrize("kid", ["", "../../etc/passwd", "' or '1'='1", "x" * 10_000, ..., 1, []])
async def test_a_kid_of_another_shape_is_refused_without_a_look_at_the_store(
    world: World, kid: Any
) -> None:
    token = await world.signed(header=await header_of(world, kid=kid))
    world.access.reads.clear()

    await refused(world, token)

    assert world.access.reads == []


async def test_an_unknown_kid_is_refused(world: World) -> None:
    await refused(world, await world.signed(header=await header_of(world, kid="x" * 43)))


@pytest.mark.parametrize(
    "member",
    [
        {"jwk": {"kty": "oct", "k": "AA"}},
        {"jku": "https://evil.example/jwks.json"},
        {"x5u": "https://evil.example/x"},
        {"x5c": ["MII"]},
        {"zip": "DEF"},
        {"crit": ["exp"]},
        {"crit": []},
        {"b64": False},
        {"cty": "JWT"},
    ],
)
async def test_a_header_member_that_we_do_not_issue_is_refused(
    world: World, member: dict[str, Any]
) -> None:
    await refused(world, await world.signed(header=await header_of(world, **member)))


@pytest.mark.parametrize("typ", ["JWT", "AT+JWT", "application/at+jwt", "", ..., None, ["at+jwt"]])
async def test_another_type_is_refused(world: World, typ: Any) -> None:
    await refused(world, await world.signed(header=await header_of(world, typ=typ)))


@pytest.mark.parametrize("name", ["iss", "aud", "exp", "iat", "sub", "jti", "client_id", "org_id"])
async def test_every_required_claim_is_required(world: World, name: str) -> None:
    claims = world.claims()
    del claims[name]

    await refused(world, await world.signed(claims))


@pytest.mark.parametrize(
    "exp",
    [
        "1800000600.0",
        "1.8e9",
        "18e8",
        "true",
        "null",
        "[]",
        "{}",
        "-1",
        "Infinity",
        "NaN",
        "1e999",
        "9" * 30,
        "1" * 3000,
        "253402300800",
        '"1800000600"',
        "-0",
        "01800000600",
    ],
)
async def test_a_time_that_is_no_plain_integer_is_refused(world: World, exp: str) -> None:
    for name in ("exp", "iat", "nbf"):
        text = json.dumps(world.claims(**{name: "HERE"})).replace('"HERE"', exp)
        if exp == "-0" and name != "exp":
            continue  # an integer, long in the past
        await refused(world, await world.signed(text.encode()))


@pytest.mark.parametrize("leeway", [0, 5])
async def test_expiry_is_exact_to_the_millisecond(
    make_world: Callable[..., Any], leeway: int
) -> None:
    world: World = await make_world(leeway_seconds=leeway)
    claims = world.claims(exp=world.clock() // 1000 + 10)
    token, unseen = [await world.signed(claims) for _ in range(2)]

    world.clock.pass_seconds(9.999 + leeway)
    await accepted(world, token)
    assert world.tokens.cached_caller(f"Bearer {token}") is not None
    world.clock.pass_seconds(0.001)
    await refused(world, token)
    await refused(world, unseen)


@pytest.mark.parametrize(
    ("name", "ahead", "is_accepted"),
    [
        ("nbf", 0, True),
        ("nbf", 1, False),
        ("nbf", -10, True),
        ("iat", 0, True),
        ("iat", 60, True),
        ("iat", 61, False),
        ("iat", -86_000, True),
    ],
)
async def test_a_token_of_the_future_is_refused(
    world: World, name: str, ahead: int, *, is_accepted: bool
) -> None:
    token = await world.signed(world.claims(**{name: world.clock() // 1000 + ahead}))

    if is_accepted:
        await accepted(world, token)
    else:
        await refused(world, token)


@pytest.mark.parametrize(("ahead", "is_accepted"), [(5, True), (6, False)])
async def test_a_beginning_may_lie_ahead_by_the_leeway(
    make_world: Callable[..., Any], ahead: int, *, is_accepted: bool
) -> None:
    world: World = await make_world(leeway_seconds=5)
    token = await world.signed(world.claims(nbf=world.clock() // 1000 + ahead))

    if is_accepted:
        await accepted(world, token)
    else:
        await refused(world, token)


@pytest.mark.parametrize(
    "change",
    [
        {"aud": [AUDIENCE]},
        {"aud": [AUDIENCE, "other"]},
        {"aud": "other"},
        {"aud": AUDIENCE + "/"},
        {"aud": ""},
        {"aud": None},
        {"iss": "https://evil.example"},
        {"iss": ["https://fhir.example.org"]},
        {"iss": "https://FHIR.example.org"},
        {"sub": ""},
        {"sub": 1},
        {"sub": "x" * 256},
        {"jti": None},
        {"jti": {}},
        {"client_id": "nobody"},
        {"client_id": ["x"]},
        {"client_id": ""},
        {"scope": ["system/*.rs"]},
        {"scope": None},
        {"org_id": "not a uuid"},
        {"org_id": "5F0C3B9E-0000-4000-8000-000000000000"},
        {"org_id": "5f0c3b9e000040008000000000000000"},
        {"org_id": "{5f0c3b9e-0000-4000-8000-000000000000}"},
        {"org_id": "5f0c3b9e-0000-4000-8000-000000000000"},
        {"org_id": "5f0c3b9e-0000-4000-8000-000000000000\n"},
        {"org_id": 5},
    ],
)
async def test_a_claim_with_another_value_is_refused(world: World, change: dict[str, Any]) -> None:
    await refused(world, await world.signed(world.claims(**change)))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"iss": "https://other.example"}, RequestProblem.TOKEN_MISDIRECTED),
        ({"aud": "other"}, RequestProblem.TOKEN_MISDIRECTED),
        ({"exp": 1}, RequestProblem.TOKEN_EXPIRED),
        ({"client_id": "unknown"}, RequestProblem.CLIENT_DISABLED),
        ({"iat": 253_402_300_799}, RequestProblem.TOKEN_INVALID),
        ({"org_id": 5}, RequestProblem.TOKEN_INVALID),
    ],
)
async def test_what_is_wrong_with_a_token_of_ours_is_stated(
    world: World, change: dict[str, Any], problem: RequestProblem
) -> None:
    refusal = await refused(world, await world.signed(world.claims(**change)))

    assert refusal.details == problem
    assert str(refusal) != UNPROVED


@pytest.mark.parametrize(
    "change", [{}, {"iss": "https://other.example"}, {"aud": "other"}, {"exp": 1}, {"org_id": 5}]
)
async def test_nothing_is_stated_about_a_token_whose_signature_proves_nothing(
    world: World, change: dict[str, Any]
) -> None:
    token = await world.signed(world.claims(**change))
    stranger = await world.signed(
        world.claims(**change), header=await header_of(world, kid="x" * 43)
    )

    for forged in (f"{token[:-8]}AAAAAAAA", stranger):
        refusal = await refused(world, forged)

        assert (str(refusal), refusal.details) == (UNPROVED, RequestProblem.TOKEN_INVALID)


async def test_a_token_of_the_other_environment_is_recognized_by_its_signature(
    world: World,
) -> None:
    await world.another_process(environment="production")
    key = (await world.access.signing_keys("production"))[0]

    signed, forged = (
        jws.sign(
            world.claims(),
            jwk.construct(pem, key.algorithm),
            headers={"typ": "at+jwt", "kid": key.kid},
            algorithm=key.algorithm,
        )
        for pem in (key.private_pem, (await world.key()).private_pem)
    )

    assert (await refused(world, signed)).details == RequestProblem.TOKEN_MISDIRECTED
    assert str(await refused(world, forged)) == UNPROVED


@pytest.mark.parametrize(
    "payload", [b"[]", b'"x"', b"null", b"1", b"", b"{", b"\xff", b"{}x", b"\x00", b"{'a':1}"]
)
async def test_a_segment_that_is_no_object_is_refused(world: World, payload: bytes) -> None:
    await refused(world, await world.signed(payload))
    await refused(world, await world.signed(header=payload))


@pytest.mark.parametrize("name", ["aud", "exp", "org_id", "more", "\\u0061ud"])
async def test_a_name_given_twice_is_refused(world: World, name: str) -> None:
    claims = world.claims(more=1)
    value = json.dumps(claims[name.replace("\\u0061", "a")])
    text = json.dumps(claims)

    await refused(world, await world.signed(f'{text[:-1]},"{name}":{value}}}'.encode()))


async def test_a_header_name_given_twice_is_refused(world: World) -> None:
    text = json.dumps(await header_of(world))

    await refused(world, await world.signed(header=f'{{"alg":"none",{text[1:]}'.encode()))


async def test_all_other_last_characters_of_every_segment_are_refused(world: World) -> None:
    token = await world.token()
    segments = token.split(".")

    for number, segment in enumerate(segments):
        for other in ALPHABET.replace(segment[-1], ""):
            altered = [*segments]
            altered[number] = segment[:-1] + other
            await refused(world, ".".join(altered))
    await accepted(world, token)


@pytest.mark.parametrize(
    "junk",
    ["=", "*", "!", " ", "\n", "\t", "\r", "A", "-", "+", "/", ".", "\x00", "é", "\u2028", "%"],
)
async def test_junk_of_one_to_eight_characters_is_refused_anywhere(
    world: World, junk: str
) -> None:
    segments = (await world.token()).split(".")

    for number, segment in enumerate(segments):
        for length in range(1, 9):
            for place in (0, len(segment) // 2, len(segment)):
                altered = [*segments]
                altered[number] = segment[:place] + junk * length + segment[place:]
                await refused(world, ".".join(altered))


@pytest.mark.parametrize("count", [1, 2, 4, 5])
async def test_a_token_has_three_segments(world: World, count: int) -> None:
    segments = (await world.token()).split(".")

    await refused(world, ".".join((segments * 2)[:count]))


@pytest.mark.parametrize("empty", [0, 1, 2])
async def test_no_segment_is_empty(world: World, empty: int) -> None:
    segments = (await world.token()).split(".")
    segments[empty] = ""

    await refused(world, ".".join(segments))


async def test_a_token_has_at_most_4096_characters(world: World) -> None:
    room = 4096 - len(await world.signed(world.claims(more="")))
    fits = await world.signed(world.claims(more="x" * (room * 3 // 4 - 3)))
    exceeds = await world.signed(world.claims(more="x" * (room * 3 // 4 + 3)))

    assert 4080 < len(fits) <= 4096 < len(exceeds)
    await accepted(world, fits)
    await refused(world, exceeds)


@pytest.mark.parametrize("depth", [65, 1000, 2900, 40_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
async def test_nesting_costs_no_time(world: World, opening: str, depth: int) -> None:
    text = opening * depth + "1" + {"[": "]", '{"a":': "}"}[opening] * depth
    claims = f'{json.dumps(world.claims())[:-1]},"more":{text}}}'.encode()
    tokens = [await world.signed(claims), await world.signed(header=text.encode())]

    for token in tokens:
        with computing_less_than(2):
            await refused(world, token)


async def test_a_key_of_another_environment_verifies_nothing(world: World) -> None:
    production = await world.another_process(environment="production")
    key = (await world.access.signing_keys("production"))[0]
    token = jws.sign(
        world.claims(),
        jwk.construct(key.private_pem, key.algorithm),
        headers={"typ": "at+jwt", "kid": key.kid},
        algorithm=key.algorithm,
    )

    await refused(world, token)
    with pytest.raises(NotAuthenticated):  # the client belongs to the sandbox
        await production.caller(bearer(token))


async def test_a_key_signs_only_under_its_own_name(world: World) -> None:
    stranger = replace(await world.key(), kid="x" * 43, environment="production")
    await world.access.put_signing_key(stranger)

    await refused(world, await world.signed(header=await header_of(world, kid=stranger.kid)))


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_another_key_of_the_same_kind_signs_nothing(
    make_world: Callable[..., Any], algorithm: str
) -> None:
    ours: World = await make_world(algorithm=algorithm)
    theirs: World = await make_world(algorithm=algorithm)
    token = await theirs.signed(ours.claims(), header=await header_of(ours))

    await refused(ours, token)


@pytest.mark.parametrize(
    "signature", [b"", b"\x00", b"\x00" * 64, b"\xff" * 64, b"\x00" * 63, b"0" * 65, b"0" * 256]
)
@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_a_signature_of_any_length_is_just_wrong(
    make_world: Callable[..., Any], algorithm: str, signature: bytes
) -> None:
    world: World = await make_world(algorithm=algorithm)
    signing_input = (await world.token()).rpartition(".")[0]

    await refused(world, f"{signing_input}.{b64url(signature)}")


MUTATIONS = st.tuples(
    st.sampled_from(["replace", "insert", "delete", "swap", "cut", "double"]),
    st.integers(0, 5000),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
    | st.text(ALPHABET + ".=+/", min_size=1, max_size=8),
)


def mutated(token: str, kind: str, place: int, text: str) -> str:
    at = place % len(token)
    return {
        "replace": token[:at] + text + token[at + len(text) :],
        "insert": token[:at] + text + token[at:],
        "delete": token[:at] + token[at + len(text) :],
        "swap": token[at:] + token[:at],
        "cut": token[:at],
        "double": token + token[at:],
    }[kind]


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(mutations=st.lists(MUTATIONS, min_size=1, max_size=3))
async def test_no_mutated_token_is_accepted(
    world: World, mutations: list[tuple[str, int, str]]
) -> None:
    original = await world.signed()
    token = original
    for mutation in mutations:
        token = mutated(token, *mutation) or "."

    if token != original:
        await refused(world, token)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(["iss", "aud", "exp", "sub", "jti", "client_id", "org_id", "scope"]),
    value=JSON_VALUES,
)
async def test_no_value_of_a_claim_is_a_fault(world: World, name: str, value: Any) -> None:
    payload = json.dumps(world.claims(**{name: value})).encode()

    try:
        await accepted(world, await world.signed(payload))
    except NotAuthenticated:
        return
    assert name in ("sub", "jti", "scope", "exp")
    assert name != "exp" or type(value) is int


def test_what_is_decoded_is_the_one_text_of_its_bytes() -> None:
    for length in range(1, 70):
        raw = bytes(range(length))
        assert jwt._decode_segment(b64url(raw)) == raw
    with pytest.raises(NotAuthenticated):
        jwt._decode_segment(base64.urlsafe_b64encode(b"a").decode())


def with_other_signature(token: str) -> str:
    """Return a token with (r, n - s) in place of (r, s); no key is needed for it."""
    signing_input, _, segment = token.rpartition(".")
    raw = base64.urlsafe_b64decode(segment + "==")
    other = P256_ORDER - int.from_bytes(raw[32:])
    return f"{signing_input}.{b64url(raw[:32] + other.to_bytes(32))}"


async def test_the_other_signature_of_a_token_is_accepted_for_the_same_client(
    world: World,
) -> None:
    token = await world.token()
    other = with_other_signature(token)

    assert other != token
    assert await accepted(world, other) == await accepted(world, token)
    assert jwt.decode(other).payload["jti"] == jwt.decode(token).payload["jti"]


async def test_about_half_of_our_own_signatures_have_the_high_s(world: World) -> None:
    tokens = [await world.token() for _ in range(64)]
    segments = [token.rpartition(".")[2] for token in tokens]
    high = sum(
        int.from_bytes(base64.urlsafe_b64decode(segment + "==")[32:]) > P256_ORDER // 2
        for segment in segments
    )

    assert 8 <= high <= 56  # with a probability of all but 1e-9


async def test_a_disabled_client_is_refused_with_either_signature(world: World) -> None:
    token = await world.token()
    both = [token, with_other_signature(token)]
    for one in both:
        await accepted(world, one)

    await disable_client(world.access, world.client.id)
    world.clock.pass_seconds(30)

    for one in both:
        assert (await refused(world, one)).reason == "client or tenant"
