"""The limits of signatures, at each and one beyond, and the words of refusals."""

from __future__ import annotations

import base64
import json

import pytest

from fhirpub.webhooks import BadSecret, NotVerified, verify
from fhirpub.webhooks.transport.signing import key_of, new_secret, signed_headers

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
OTHER_SECRET = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="
NOW = 1_795_242_954
BODY = b'{"event_id":"evt_1"}'


def headers_of(
    event_id: str = "evt_1", timestamp: int = NOW, body: bytes = BODY, secret: str = SECRET
) -> dict[str, str]:
    return signed_headers(event_id, timestamp, body, secrets=[secret])


def refused(headers: dict[str, str], body: bytes = BODY, *, now: float = NOW) -> NotVerified:
    with pytest.raises(NotVerified) as refusal:
        verify(headers, body, SECRET, now=now)
    return refusal.value


# Words


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        ("", "a signing secret begins with whsec_"),
        ("WHSEC_AAEC", "a signing secret begins with whsec_"),
        ("whsec_A", "what follows whsec_ must be base64"),
        ("whsec_-_-_", "what follows whsec_ must be base64"),
        ("whsec_é===", "what follows whsec_ must be base64"),
        ("whsec_AB==", "what follows whsec_ must be base64 without spare bits"),
        ("whsec_AAEC", "a signing secret has 24 to 64 bytes"),
    ],
)
def test_a_secret_is_refused_in_words_without_it(secret: str, words: str) -> None:
    with pytest.raises(BadSecret) as refusal:
        key_of(secret)

    assert str(refusal.value) == words


def test_without_secrets_the_words_are_those_of_the_receiver() -> None:
    with pytest.raises(BadSecret, match=r"^a delivery cannot be verified without a secret$"):
        verify(headers_of(), BODY, [], now=NOW)


def test_what_cannot_be_signed_is_refused_in_words() -> None:
    words = r"^a delivery needs a secret and an id that cannot hold a separator$"
    for event_id, secrets in (("evt.1", [SECRET]), ("", [SECRET]), ("evt_1", [])):
        with pytest.raises(ValueError, match=words):
            signed_headers(event_id, NOW, BODY, secrets=secrets)


MISSING = "a header of the signature is missing or malformed"
FAR = (
    "the signature is right, but its time is too far from this clock: set the clock, or it is an "
    "old delivery that is being sent again"
)
REWRITTEN = (
    "the signature is of another text of the same JSON: verify the bytes as they came, before "
    "anything reads and writes them again"
)
NO_MATCH = (
    "no signature matches: the secret is another one, or the body, the id or the time was changed "
    "on the way"
)


@pytest.mark.parametrize(
    ("headers", "body", "now", "reason", "words"),
    [
        ({}, BODY, NOW, "headers", MISSING),
        (headers_of(), BODY, NOW + 301, "clock", FAR),
        (headers_of(), BODY + b" ", NOW, "rewritten-body", REWRITTEN),
        (headers_of(), b"{}", NOW, "no-match", NO_MATCH),
    ],
)
def test_a_delivery_is_refused_in_words_that_help(
    headers: dict[str, str], body: bytes, now: float, reason: str, words: str
) -> None:
    refusal = refused(headers, body, now=now)

    assert (refusal.reason, str(refusal)) == (reason, words)


# Limits


def test_an_id_has_up_to_64_characters() -> None:
    verify(headers_of("e" * 64), BODY, SECRET, now=NOW)
    with pytest.raises(ValueError, match="id"):
        headers_of("e" * 65)
    assert refused(headers_of() | {"webhook-id": "e" * 65}).reason == "headers"


def test_a_time_has_up_to_twelve_digits() -> None:
    far = 10**12 - 1

    verify(headers_of(timestamp=far), BODY, SECRET, now=far)
    assert refused(headers_of(timestamp=far + 1), now=far).reason == "headers"


@pytest.mark.parametrize("away", [-300.5, 300.5])
def test_half_a_second_beyond_the_tolerance_is_too_far(away: float) -> None:
    assert refused(headers_of(), now=NOW + away).reason == "clock"


def test_up_to_twenty_signatures_of_both_headers_are_looked_at() -> None:
    headers = headers_of()
    right = headers["webhook-signature"]

    headers["webhook-signature"] = " ".join(["v1,x"] * 18 + [right])
    verify(headers, BODY, SECRET, now=NOW)
    headers["webhook-signature"] = " ".join(["v1,x"] * 19 + [right])
    assert refused(headers).reason == "headers"


def test_signatures_of_other_versions_do_not_count() -> None:
    headers = headers_of()
    right = headers["webhook-signature"]

    headers["webhook-signature"] = " ".join(["v2,x", "v1a,x"] * 30 + [right])
    headers["X-Webhook-Signature"] = f"t={NOW}" + ",v0=00" * 60
    verify(headers, BODY, SECRET, now=NOW)


# One header, and the other


def test_each_header_has_a_time_of_its_own() -> None:
    headers = headers_of()
    hexadecimal = {name: headers[name] for name in ("webhook-id", "X-Webhook-Signature")}

    verify(hexadecimal, BODY, SECRET, now=NOW)
    verify(hexadecimal | {"webhook-timestamp": "soon"}, BODY, SECRET, now=NOW)
    verify(headers | {"X-Webhook-Signature": "t=soon,v1=00"}, BODY, SECRET, now=NOW)


def test_base64_without_the_time_of_its_header_proves_nothing() -> None:
    headers = headers_of()
    del headers["webhook-timestamp"], headers["X-Webhook-Signature"]

    assert refused(headers).reason == "headers"


def test_hex_without_a_time_before_it_proves_nothing() -> None:
    headers = headers_of()
    del headers["webhook-signature"]
    time, _, signature = headers["X-Webhook-Signature"].partition(",")

    for text in (signature, f"{time.removeprefix('t=')},{signature}", f"{signature},{time}"):
        assert refused(headers | {"X-Webhook-Signature": text}).reason == "headers"


def test_a_form_in_the_header_of_the_other_proves_nothing() -> None:
    headers = headers_of()
    mac = base64.b64decode(headers["webhook-signature"].removeprefix("v1,"))

    swapped = headers | {
        "webhook-signature": f"v1,{mac.hex()}",
        "X-Webhook-Signature": f"t={NOW},v1={base64.b64encode(mac).decode()}",
    }
    assert refused(swapped).reason == "no-match"
    del swapped["X-Webhook-Signature"]
    assert refused(swapped | {"webhook-signature": f"v1,{mac.hex().upper()}"}).reason == "no-match"


def test_one_fresh_time_that_is_proved_is_enough() -> None:
    old, fresh = headers_of(timestamp=NOW - 10_000), headers_of()

    verify(fresh | {"X-Webhook-Signature": old["X-Webhook-Signature"]}, BODY, SECRET, now=NOW)
    verify(old | {"X-Webhook-Signature": fresh["X-Webhook-Signature"]}, BODY, SECRET, now=NOW)


def test_secrets_may_come_one_after_another() -> None:
    verify(headers_of(), BODY, (one for one in (OTHER_SECRET, SECRET)), now=NOW)


def test_one_malformed_secret_among_good_ones_is_refused() -> None:
    with pytest.raises(BadSecret):
        verify(headers_of(), BODY, [SECRET, "whsec_"], now=NOW)
    with pytest.raises(BadSecret):
        signed_headers("evt_1", NOW, BODY, secrets=[SECRET, "whsec_"])


def test_a_new_secret_is_one_that_signs() -> None:
    secret = new_secret(lambda size: b"k" * size)

    assert (secret, len(key_of(new_secret()))) == (f"whsec_{'a2tr' * 10}a2s=", 32)


# What was written again


def test_a_body_of_up_to_64_kibibytes_is_read_to_explain_it() -> None:
    sent = {"event_id": "evt_1", "note": "x"}
    headers = headers_of(body=json.dumps(sent, separators=(",", ":")).encode())
    written = json.dumps(sent, indent=1).encode()
    blanks = b" " * (65_536 - len(written))

    assert refused(headers, written[:1] + blanks + written[1:]).reason == "rewritten-body"
    assert refused(headers, written[:1] + blanks + b" " + written[1:]).reason == "no-match"


def test_a_longer_body_with_a_line_break_behind_it_is_explained() -> None:
    body = b'{"note":"%b"}' % (b"x" * 70_000)

    assert refused(headers_of(body=body), body + b"\r\n").reason == "rewritten-body"


def test_names_in_another_order_are_explained_at_every_level() -> None:
    sent = {
        "event_id": "evt_1",
        "timestamp": "t",
        "data": {"resource_type": "R", "id": "1", "identifier": [{"system": "s", "value": "v"}]},
        "later": {"self": 1},
    }
    headers = headers_of(body=json.dumps(sent, separators=(",", ":")).encode())

    assert refused(headers, json.dumps(sent, sort_keys=True).encode()).reason == "rewritten-body"


def test_names_in_the_order_of_the_alphabet_are_explained() -> None:
    sent = {"a": [{"b": 1, "c": 2}], "d": 3}
    headers = headers_of(body=json.dumps(sent, separators=(",", ":")).encode())

    written = b'{"d": 3, "a": [{"c": 2, "b": 1}]}'
    assert refused(headers, written).reason == "rewritten-body"


def test_letters_beyond_ascii_are_explained_escaped_and_not() -> None:
    sent = {"name": "Ñandú"}
    escaped, plain = (json.dumps(sent, ensure_ascii=one).encode() for one in (True, False))

    assert refused(headers_of(body=escaped), plain).reason == "rewritten-body"
    assert refused(headers_of(body=plain.replace(b" ", b"")), escaped).reason == "rewritten-body"
    assert refused(headers_of(body=escaped.replace(b" ", b"")), plain).reason == "rewritten-body"
