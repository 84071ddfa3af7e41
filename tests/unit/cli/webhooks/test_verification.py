"""``fhirpub endpoint verify``: what it reads, prints and returns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fhirpub.cli.webhooks.verification import verify
from fhirpub.webhooks.transport.signing import new_secret, signed_headers

SECRET = new_secret()
BODY = b'{"event_id":"evt_1"}'
NOW = 1_700_000_000


def headers(secret: str = SECRET, *, at: int = NOW) -> dict[str, str]:
    return signed_headers("evt_1", at, BODY, secrets=[secret])


def run(*words: str, secret: str = SECRET, stdin: Any = BODY) -> Result:
    env = {"FHIRPUB_SIGNING_SECRET": secret}
    return CliRunner().invoke(verify, words, input=stdin, env=env)


def lines(given: dict[str, str]) -> list[str]:
    return [word for name, value in given.items() for word in ("--header", f"{name}: {value}")]


def shown(*words: str, **more: Any) -> Any:
    return json.loads(run(*words, "--json", **more).stdout)


def test_a_delivery_of_the_secret_is_authentic() -> None:
    result = run(*lines(headers()), "--at", f"{NOW + 7}")

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "Verified."
    assert shown(*lines(headers()), "--at", f"{NOW + 7}") == {
        "verified": True,
        "reason": "",
        "explanation": "the delivery is authentic",
        "seconds_behind_clock": 7,
    }


def test_a_delivery_of_another_secret_is_not() -> None:
    words = (*lines(headers()), "--at", str(NOW))

    result = run(*words, secret=new_secret())

    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "Not verified."
    record = shown(*words, secret=new_secret())
    assert record["verified"] is False
    assert record["reason"]
    assert record["explanation"] != "the delivery is authentic"


def test_each_of_several_secrets_is_tried() -> None:
    secrets = f"{new_secret()} {SECRET}"

    assert run(*lines(headers()), "--at", str(NOW), secret=secrets).exit_code == 0


def test_headers_and_body_are_read_from_files_as_programs_write_them(tmp_path: Path) -> None:
    file, body = tmp_path / "h", tmp_path / "b"
    text = "".join(f"< {name.upper()}:  {value} \r\n" for name, value in headers().items())
    file.write_bytes(b"POST /hook HTTP/1.1\r\nX-Name: \xe9\r\n" + text.encode())
    body.write_bytes(BODY)

    words = ("--headers", str(file), "--body", str(body), "--at", str(NOW + 3))
    result = run(*words, stdin=b"")

    assert result.exit_code == 0, result.output
    assert shown(*words, stdin=b"")["seconds_behind_clock"] == 3


def test_a_header_that_is_given_replaces_that_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "h"
    file.write_text("webhook-id: other\n")
    words = ("--headers", str(file), *lines(headers()), "--at", str(NOW))

    assert run(*words).exit_code == 0


def test_a_delivery_of_long_ago_is_refused_by_the_clock_of_this_machine() -> None:
    record = shown(*lines(headers()))

    assert record["verified"] is False
    assert record["seconds_behind_clock"] > 1_000_000


@pytest.mark.parametrize("text", ["9" * 13, "x", "-1"])
def test_a_time_that_is_no_number_of_at_most_twelve_digits_has_no_age(text: str) -> None:
    given = headers() | {"webhook-timestamp": text}

    assert shown(*lines(given), "--at", str(NOW))["seconds_behind_clock"] is None


def test_a_time_of_twelve_digits_has_an_age() -> None:
    given = headers() | {"webhook-timestamp": "9" * 12}

    assert shown(*lines(given), "--at", "0")["seconds_behind_clock"] == -(10**12) + 1


@pytest.mark.parametrize("at", ["nan", "inf"])
def test_the_time_of_the_receiver_is_a_number(at: str) -> None:
    result = run(*lines(headers()), "--at", at)

    assert result.exit_code == 2
    assert "must be a number of seconds" in result.output


def test_the_beginning_of_1970_is_a_time() -> None:
    assert shown(*lines(headers()), "--at", "0")["seconds_behind_clock"] == -NOW


def test_a_text_that_is_no_secret_is_refused_without_being_repeated() -> None:
    result = run(*lines(headers()), "--at", str(NOW), secret="whsec_?hidden")

    assert result.exit_code == 1
    assert "Error: " in result.output
    assert "hidden" not in result.output


def test_without_a_variable_the_secret_is_asked_for_in_secret(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(BODY)

    result = CliRunner().invoke(
        verify,
        [*lines(headers()), "--at", str(NOW), "--body", str(tmp_path / "b")],
        input=f"{SECRET}\n",
        env={"FHIRPUB_SIGNING_SECRET": ""},
    )

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "Verified."
    assert "Signing secret: " in result.stderr
    assert SECRET not in result.output
