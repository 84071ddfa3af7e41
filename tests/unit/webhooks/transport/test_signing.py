"""Signatures follow Standard Webhooks, and a receiver learns why one is invalid."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from fhirpub.runtime.clock import now_ms
from fhirpub.webhooks import BadSecret, NotVerified, verify
from fhirpub.webhooks.transport.signing import key_of, new_secret, signed_headers

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
OLD_SECRET = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="
NOW = 1_795_242_954
BODY = (
    b'{"transaction_id":"req_1","event_id":"evt_1","event_type":"diagnostic_report.registered",'
    b'"timestamp":"2026-11-21T06:33:53.412Z","data":{"id":"r1","version_id":"1"}}'
)
HEADERS = {
    "webhook-id": "evt_1",
    "webhook-timestamp": "1795242954",
    "webhook-signature": "v1,bilXhvZhjEm2u35ELVFRZkiPQBNHKm0hIfIP81Z7eN4= "
    "v1,7HOUp+WlaOAaFwxQpGqtSW7EHt4DZzV3DU0iV5D8124=",
    "X-Webhook-Signature": "t=1795242954,"
    "v1=6e295786f6618c49b6bb7e442d515166488f4013472a6d2121f20ff3567b78de,"
    "v1=ec7394a7e5a568e01a170c50a46aad496ec41ede036735770d4d225790fcd76e",
}


def reason(
    headers: dict[str, str] = HEADERS,
    body: bytes = BODY,
    secret: str = SECRET,
    *,
    now: float = NOW,
) -> str:
    with pytest.raises(NotVerified) as refusal:
        verify(headers, body, secret, now=now)
    return refusal.value.reason


def without(name: str) -> dict[str, str]:
    return {key: value for key, value in HEADERS.items() if key != name}


def test_the_headers_of_the_test_vector() -> None:
    assert signed_headers("evt_1", NOW, BODY, secrets=[SECRET, OLD_SECRET]) == HEADERS


@pytest.mark.parametrize("secret", [SECRET, OLD_SECRET])
@pytest.mark.parametrize("missing", ["webhook-signature", "X-Webhook-Signature", "nothing"])
def test_either_header_proves_a_delivery_by_either_secret(missing: str, secret: str) -> None:
    verify(without(missing), BODY, secret, now=NOW)


def test_a_receiver_may_know_several_secrets() -> None:
    verify(HEADERS, BODY, [new_secret(), OLD_SECRET], now=NOW)


def test_names_of_headers_may_be_in_any_case() -> None:
    verify({name.upper(): value for name, value in HEADERS.items()}, BODY, SECRET, now=NOW)


# With the reference library


@given(st.binary().map(lambda data: data.hex().encode()), st.binary(min_size=24, max_size=64))
def test_the_reference_library_verifies_ours(body: bytes, key: bytes) -> None:
    secret = f"whsec_{base64.b64encode(key).decode()}"
    headers = signed_headers("evt_1", now_ms() // 1000, body, secrets=[new_secret(), secret])

    Webhook(secret).verify(body, headers, json_parse=False)


@given(st.text(), st.binary(min_size=24, max_size=64))
def test_we_verify_those_of_the_reference_library(body: str, key: bytes) -> None:
    secret = f"whsec_{base64.b64encode(key).decode()}"
    moment = datetime.fromtimestamp(NOW, UTC)
    data = body.encode(errors="replace")
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(NOW),
        "webhook-signature": Webhook(secret).sign("msg_1", moment, data.decode()),
    }

    verify(headers, data, secret, now=NOW)


# Refusals and their reasons


@pytest.mark.parametrize("seconds", [-300, 300])
def test_five_minutes_of_difference_are_tolerated(seconds: int) -> None:
    verify(HEADERS, BODY, SECRET, now=NOW + seconds)


@pytest.mark.parametrize("seconds", [-301, 301, 10**9])
def test_a_larger_difference_is_reported_as_a_matter_of_the_clock(seconds: int) -> None:
    assert reason(now=NOW + seconds) == "clock"


def test_a_fresh_time_beside_a_signature_that_is_wrong_makes_no_old_one_fresh() -> None:
    later = NOW + 10_000
    replayed = {**HEADERS, "X-Webhook-Signature": f"t={later},v1={'0' * 64}"}

    assert reason(replayed, now=later) == "clock"


def test_another_secret_is_no_match_whatever_the_clock() -> None:
    assert reason(secret=new_secret()) == "no-match"
    assert reason(secret=new_secret(), now=NOW + 10**6) == "no-match"


@pytest.mark.parametrize("position", range(0, len(BODY), 7))
def test_a_body_with_one_changed_byte_is_no_match(position: int) -> None:
    changed = bytearray(BODY)
    changed[position] ^= 1

    assert reason(body=bytes(changed)) == "no-match"


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp"])
def test_a_changed_id_or_time_is_no_match(name: str) -> None:
    changed = without("X-Webhook-Signature") | {name: HEADERS[name] + "1"}

    assert reason(changed) == "no-match"


@pytest.mark.parametrize(
    "signature",
    [
        "v1,",
        "v1,bilX",
        "v1,é",
        "v1,\ud800\udcff",
        "v1a,bilXhvZhjEm2u35ELVFRZkiPQBNHKm0hIfIP81Z7eN4= v1,x",
        "v1,A v1",
    ],
)
def test_a_part_of_a_signature_or_another_version_proves_nothing(signature: str) -> None:
    headers = without("X-Webhook-Signature") | {"webhook-signature": signature}

    assert reason(headers) == "no-match"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        without("webhook-id"),
        HEADERS | {"webhook-id": "evt.1"},
        HEADERS | {"webhook-id": ""},
        HEADERS | {"webhook-signature": " ".join(["v1,x"] * 30)},
        without("X-Webhook-Signature") | {"webhook-timestamp": "soon"},
        without("X-Webhook-Signature") | {"webhook-timestamp": "1_795_242_954"},
        without("X-Webhook-Signature") | {"webhook-timestamp": "١٧٩٥٢٤٢٩٥٤"},
        without("X-Webhook-Signature") | {"webhook-signature": ""},
        without("webhook-signature") | {"X-Webhook-Signature": "v1=00"},
        without("webhook-signature") | {"X-Webhook-Signature": "t=x,v1=00"},
    ],
)
def test_missing_and_malformed_headers_are_reported_as_such(headers: dict[str, str]) -> None:
    assert reason(headers) == "headers"


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


SENT = {
    "transaction_id": "req_1",
    "event_id": "evt_1",
    "data": {"resource_type": "DiagnosticReport", "id": "r1", "identifier": {"value": "Ñandú"}},
}


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda body: json.dumps(json.loads(body)).encode(),
        lambda body: json.dumps(json.loads(body), indent=2).encode(),
        lambda body: json.dumps(json.loads(body), indent=4, sort_keys=True).encode(),
        lambda body: json.dumps(json.loads(body), sort_keys=True, ensure_ascii=False).encode(),
        lambda body: json.dumps(json.loads(body), separators=(",", ":")).encode(),
        lambda body: body + b"\n",
        lambda body: b"\xef\xbb\xbf" + body,
    ],
)
def test_a_body_that_was_parsed_and_serialized_again_is_reported_as_such(
    rewrite: Callable[[bytes], bytes],
) -> None:
    headers = signed_headers("evt_1", NOW, compact(SENT), secrets=[SECRET])

    assert reason(headers, rewrite(compact(SENT))) == "rewritten-body"


def test_the_sender_may_be_one_that_writes_blanks() -> None:
    blanks = json.dumps(SENT).encode()
    headers = signed_headers("evt_1", NOW, blanks, secrets=[SECRET])

    assert reason(headers, compact(SENT)) == "rewritten-body"


@pytest.mark.parametrize("body", [b"", b"[" * 50_000, b"\xff", b'{"a":' * 9_000, b"1" * 5_000])
def test_a_hostile_body_is_no_match(body: bytes) -> None:
    assert reason(body=body) == "no-match"


def test_a_refusal_says_what_to_do_and_holds_nothing_secret() -> None:
    with pytest.raises(NotVerified, match="set the clock") as refusal:
        verify(HEADERS, BODY, SECRET, now=0)

    assert SECRET not in str(refusal.value)


# Secrets


def test_a_new_secret_has_32_random_bytes() -> None:
    assert key_of(new_secret(lambda size: bytes(range(size)))) == bytes(range(32))
    assert new_secret() != new_secret()


@pytest.mark.parametrize("size", [24, 64])
def test_secrets_of_others_may_be_shorter_or_longer(size: int) -> None:
    assert len(key_of(f"whsec_{base64.b64encode(bytes(size)).decode()}")) == size


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "whsk_" + SECRET.removeprefix("whsec_"),
        SECRET.removeprefix("whsec_"),
        f"whsec_{base64.b64encode(bytes(23)).decode()}",
        f"whsec_{base64.b64encode(bytes(65)).decode()}",
        SECRET[:-1],
        SECRET[:-2] + "9=",
        SECRET + "\n",
        SECRET[:-4] + "é===",
    ],
)
def test_a_secret_that_is_empty_short_or_malformed_is_refused(secret: str) -> None:
    with pytest.raises(BadSecret):
        verify(HEADERS, BODY, secret, now=NOW)


def test_without_a_secret_nothing_is_signed_or_verified() -> None:
    with pytest.raises(BadSecret):
        verify(HEADERS, BODY, [], now=NOW)
    with pytest.raises(ValueError, match="needs a secret"):
        signed_headers("evt_1", NOW, BODY, secrets=[])


def test_an_id_that_holds_the_separator_is_not_signed() -> None:
    with pytest.raises(ValueError, match="separator"):
        signed_headers("evt.1", NOW, BODY, secrets=[SECRET])


def test_verifying_needs_the_standard_library_alone() -> None:
    script = (
        "import sys; before = set(sys.modules); import fhirpub.webhooks; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(*sorted(new - sys.stdlib_module_names))"
    )

    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert run.stdout.split() == ["fhirpub"]
