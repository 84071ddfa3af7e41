"""``fhirpub console login``: who is signed in, where, and what is done with the link."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from click.testing import CliRunner, Result

from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.auth.assertions.verification import TYPE
from fhirpub.cli.commands import Reporting
from fhirpub.cli.console import _sign, console
from fhirpub.errors import ConfigurationError
from fhirpub.testing.certificate import Certificate
from fhirpub.testing.receiver import Receiver
from tests.ports import free_port
from tests.tokens import claims_of

LINK = {"url": "https://a.example/console/in?x", "expires_in": 120}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The links that were opened."""
    links: list[str] = []
    monkeypatch.setattr(webbrowser, "open", links.append)
    return links


@pytest.fixture
def key(tmp_path: Path) -> Path:
    private, _ = new_key_pair()
    (tmp_path / "key.json").write_text(json.dumps(private))
    return tmp_path / "key.json"


def login(url: str, key: Path, *words: str) -> Result:
    own = ["console", "login", "--url", url, "--key", str(key), *words]
    return CliRunner().invoke(Reporting(commands=[console]), own)


def claims(body: bytes) -> tuple[Any, Any]:
    fields = parse_qs(body.decode())
    assert fields["client_assertion_type"] == [TYPE]
    (assertion,) = fields["client_assertion"]
    found = claims_of(assertion)
    return found["sub"], found["aud"]


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (("--client-id", "ana"), "/console/links"),
        (("--operator", "ana"), "/console/links/operators"),
    ],
)
@pytest.mark.parametrize("end", ["", "/", "/console", "/console/"])
def test_an_assertion_for_the_address_of_links_is_sent_there(
    stub: Any, key: Path, opened: list[str], words: tuple[str, ...], path: str, end: str
) -> None:
    stub.answers = [(200, {}, LINK)]

    result = login(f"{stub.address}{end}", key, *words)

    ((sent_to, _, body),) = stub.requests
    assert sent_to == path
    assert claims(body) == ("ana", f"{stub.address}{path}")
    assert result.stdout == f"{LINK['url']}\n"
    assert result.stderr == "The link works once, for 120 seconds.\n"
    assert opened == [LINK["url"]]


def test_a_link_is_not_opened_unless_wanted(stub: Any, key: Path, opened: list[str]) -> None:
    stub.answers = [(200, {}, LINK)]

    result = login(stub.address, key, "--client-id", "ana", "--no-browser", "--json")

    assert json.loads(result.stdout) == LINK
    assert (result.stderr, opened) == ("", [])


def test_a_link_that_is_printed_as_json_is_opened_as_well(
    stub: Any, key: Path, opened: list[str]
) -> None:
    stub.answers = [(200, {}, LINK)]

    login(stub.address, key, "--client-id", "ana", "--json")

    assert opened == [LINK["url"]]


@pytest.mark.parametrize("words", [(), ("--client-id", "a", "--operator", "b")])
def test_one_of_client_and_operator_is_named(
    stub: Any, key: Path, opened: list[str], words: tuple[str, ...]
) -> None:
    result = login(stub.address, key, *words)

    assert (result.exit_code, stub.requests, opened) == (2, [], [])
    assert "give one of --client-id and --operator" in result.stderr


@pytest.mark.parametrize("url", ["a.example", "ftp://a", "https://"])
def test_a_text_that_is_no_url_is_refused(key: Path, url: str) -> None:
    result = login(url, key, "--client-id", "ana")

    assert result.exit_code == 2
    assert f"{url} is no URL such as https://fhir.example.org" in result.stderr


@pytest.mark.parametrize(
    ("content", "reason"), [(b"{", "is no JSON"), (b'{"kty":"EC","d":"hidden"}', "")]
)
def test_a_file_that_cannot_sign_is_named_without_its_content(
    stub: Any, tmp_path: Path, content: bytes, reason: str
) -> None:
    file = tmp_path / "k"
    file.write_bytes(content)

    result = login(stub.address, file, "--client-id", "ana")

    assert (result.exit_code != 0, stub.requests) == (True, [])
    assert f"--key: {file} {reason}" in result.stderr
    assert "hidden" not in result.output


def test_a_key_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"^--key: cannot read {tmp_path}: Is a dir"):
        _sign(tmp_path, "ana", "https://a.example/console/links")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((400, {}, {"error_description": "unknown key"}), "gives no link: unknown key"),
        ((404, {}, {}), "there is no console at "),
        ((200, {}, {"other": 1}), "answers with HTTP status 200: is --url right?"),
        ((500, {}, LINK), "answers with HTTP status 500: is --url right?"),
    ],
)
def test_an_answer_without_a_link_is_explained(
    stub: Any, key: Path, opened: list[str], answer: Any, reason: str
) -> None:
    stub.answers = [answer]

    result = login(stub.address, key, "--client-id", "ana")

    assert (result.exit_code, opened) == (1, [])
    assert reason in result.stderr


def test_a_service_that_is_not_there_is_named(key: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"

    result = login(url, key, "--client-id", "ana")

    assert result.exit_code == 1
    assert f"{url} cannot be reached: connection refused" in result.stderr


def test_a_certificate_that_is_named_is_trusted(key: Path, tmp_path: Path) -> None:
    certificate = Certificate.create(tmp_path, name="127.0.0.1")

    with Receiver(certificate=certificate) as receiver:
        words = ("--client-id", "ana", "--no-browser")
        url = receiver.url.removesuffix("/hook")
        login(url, key, *words)
        before = len(receiver.received)
        login(url, key, *words, "--cacert", str(certificate.file))
        assert (before, len(receiver.received)) == (0, 1)
