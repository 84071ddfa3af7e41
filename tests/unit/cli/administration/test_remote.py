"""Operations of a service over HTTP: how they are asked for, and what becomes of refusals."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from fhirpub.administration import clients, deliveries, endpoint_acts, persons, tenants
from fhirpub.administration.audit import operations as trail
from fhirpub.administration.erasure import holds
from fhirpub.administration.erasure import operations as erasures
from fhirpub.administration.operation import Operation
from fhirpub.auth.assertions.signing import new_key_pair
from fhirpub.auth.assertions.verification import TYPE
from fhirpub.cli.administration.remote import RemoteRefusal, open_remote
from fhirpub.errors import ConfigurationError, InvalidContent, NoSuchRecord
from fhirpub.testing.certificate import Certificate
from fhirpub.testing.receiver import Receiver
from tests.canned import issue, outcome
from tests.ports import free_port
from tests.tokens import claims_of
from tests.unit.cli.bureau import KEY, Bureau
from tests.unit.cli.prepared import Reply

REFUSED = "the service does not accept the key of --admin-key or FHIRPUB_ADMIN_KEY"
NO_KEY = (
    "--admin-url needs a key: name a file in --admin-key, or set FHIRPUB_ADMIN_KEY to the "
    "bootstrap key"
)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FHIRPUB_ADMIN_KEY", f" {KEY}\n")


def ask(url: str, operation: Operation, *, key: Path | None = None, **arguments: Any) -> Any:
    async def asked() -> Any:
        async with open_remote(url, key) as call:
            return await call(operation, **arguments)

    return asyncio.run(asked())


def key_file(folder: Path, **changes: Any) -> Path:
    private, _ = new_key_pair()
    file = folder / "ana.key.json"
    file.write_text(json.dumps({"name": "ana", **private, **changes}))
    return file


@pytest.mark.parametrize("end", ["", "/", "/admin/v1", "/admin/v1/"])
def test_the_url_may_end_with_the_path_of_the_interface(bureau: Bureau, end: str) -> None:
    bureau.answer(tenants.LIST, [])

    assert ask(f"{bureau.url}{end}", tenants.LIST) == []
    assert bureau.asked[0].path == "/admin/v1/tenants"


@pytest.mark.parametrize("url", ["admin.example.org", "ftp://a", "https://", "https:///a"])
def test_a_text_that_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"is no URL such as https://admin.example.org"):
        ask(url, tenants.LIST)


def test_the_bootstrap_key_is_sent_without_blanks(bureau: Bureau) -> None:
    ask(bureau.url, tenants.LIST)

    assert bureau.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert bureau.tokens == []


def test_a_file_of_a_key_is_used_before_the_variable(bureau: Bureau, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("other\n")

    ask(bureau.url, tenants.LIST, key=file)

    assert bureau.asked[0].headers["Authorization"] == "Bearer other"


def test_without_a_key_nothing_is_sent(bureau: Bureau, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FHIRPUB_ADMIN_KEY", " ")

    with pytest.raises(ConfigurationError) as refusal:
        ask(bureau.url, tenants.LIST)

    assert (str(refusal.value), bureau.asked) == (NO_KEY, [])


def test_an_empty_file_is_no_key_even_beside_the_variable(bureau: Bureau, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("\n")

    with pytest.raises(ConfigurationError, match=r"--admin-url needs a key"):
        ask(bureau.url, tenants.LIST, key=tmp_path / "key")


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file or directory"), (b"\xff", "it is no text")]
)
def test_a_file_that_cannot_be_read_is_named(
    bureau: Bureau, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ConfigurationError) as refusal:
        ask(bureau.url, tenants.LIST, key=file)

    assert str(refusal.value) == f"--admin-key: cannot read {file}: {reason}"


def test_a_private_key_gets_a_token_for_an_assertion(bureau: Bureau, tmp_path: Path) -> None:
    ask(bureau.url, tenants.LIST, key=key_file(tmp_path))

    (asked,) = bureau.tokens
    fields = asked.arguments
    assert fields["grant_type"] == "client_credentials"
    assert fields["client_assertion_type"] == TYPE
    claims = claims_of(fields["client_assertion"])
    assert (claims["sub"], claims["iss"]) == ("ana", "ana")
    assert claims["aud"] == f"{bureau.url}/admin/v1/token"
    assert bureau.asked[0].headers["Authorization"] == "Bearer a.b.c"


def test_one_token_serves_several_operations(bureau: Bureau, tmp_path: Path) -> None:
    async def twice() -> None:
        async with open_remote(bureau.url, key_file(tmp_path)) as call:
            await call(tenants.LIST)
            await call(tenants.LIST)

    asyncio.run(twice())

    assert (len(bureau.tokens), len(bureau.asked)) == (1, 2)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(400, {"error": "x", "error_description": "expired"}), "expired"),
        (Reply(503, {}), "HTTP status 503"),
        (Reply(401, b"no json"), "HTTP status 401"),
    ],
)
def test_a_refused_assertion_names_the_reason(
    bureau: Bureau, tmp_path: Path, reply: Reply, reason: str
) -> None:
    bureau.token = reply

    with pytest.raises(RemoteRefusal) as refusal:
        ask(bureau.url, tenants.LIST, key=key_file(tmp_path))

    assert str(refusal.value) == f"{REFUSED}: {reason}"
    assert bureau.asked == []


def test_a_key_that_is_no_json_is_refused(bureau: Bureau, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("{x")

    with pytest.raises(ConfigurationError, match=r"^--admin-key is no JSON$"):
        ask(bureau.url, tenants.LIST, key=tmp_path / "key")


def test_a_key_that_cannot_sign_is_refused_without_its_content(
    bureau: Bureau, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text('{"kty": "EC", "d": "hidden"}')

    with pytest.raises(ConfigurationError, match=r"^--admin-key ") as refusal:
        ask(bureau.url, tenants.LIST, key=tmp_path / "key")

    assert "hidden" not in str(refusal.value)


def test_arguments_are_checked_before_anything_is_sent(bureau: Bureau, tmp_path: Path) -> None:
    with pytest.raises(InvalidContent):
        ask(bureau.url, clients.SHOW, key=key_file(tmp_path))

    assert (bureau.tokens, bureau.asked) == ([], [])


def test_what_is_in_the_path_is_escaped(bureau: Bureau) -> None:
    ask(bureau.url, persons.REMOVE_PASSKEY, client="a/b c", kid="é?")

    assert bureau.asked[0].path == "/admin/v1/clients/a%2Fb%20c/passkeys/%C3%A9%3F"
    assert bureau.only()[1] == {"client": "a/b c", "kid": "é?"}


def test_what_is_in_the_query_is_text(bureau: Bureau) -> None:
    ask(bureau.url, deliveries.LIST, endpoint="a&b", tenant="t", limit=7, state=None)

    path = bureau.asked[0].path
    assert path.startswith("/admin/v1/deliveries?")
    assert sorted(path.partition("?")[2].split("&")) == ["endpoint=a%26b", "limit=7", "tenant=t"]


@pytest.mark.parametrize(
    ("operation", "arguments", "query"),
    [
        (erasures.LIST, {"unfinished": True}, "unfinished=true"),
        (erasures.LIST, {"unfinished": False}, "unfinished=false"),
        (erasures.LIST, {"after": ""}, "after="),
        (trail.EXPORT, {"chain": "t", "after": 0}, "after=0"),
        (
            trail.LIST,
            {"chain": "t", "since": "2026-11-21T10:00:00+01:00"},
            "since=2026-11-21T10%3A00%3A00%2B01%3A00",
        ),
        (trail.LIST, {"chain": "t"}, ""),
    ],
)
def test_what_is_false_or_0_is_in_the_query_as_well(
    bureau: Bureau, operation: Operation, arguments: dict[str, Any], query: str
) -> None:
    ask(bureau.url, operation, **arguments)

    assert bureau.asked[0].path.partition("?")[2] == query
    assert bureau.only()[1] == arguments


def test_a_body_has_what_is_false_or_empty(bureau: Bureau) -> None:
    given: dict[str, Any] = {"reports": [], "expired": False, "from": 0, "type": ""}

    ask(bureau.url, erasures.PLAN, tenant="t", patients=None, **given)

    assert json.loads(bureau.asked[0].body) == given


def test_a_body_is_json_with_what_is_given(bureau: Bureau) -> None:
    ask(bureau.url, clients.ADD, tenant="t", name="é", scopes=[], valid_days=None)

    (asked,) = bureau.asked
    assert asked.headers["Content-Type"] == "application/json"
    assert json.loads(asked.body) == {"name": "é", "scopes": []}


def test_a_body_of_which_nothing_is_given_is_an_empty_object(bureau: Bureau) -> None:
    ask(bureau.url, endpoint_acts.ROTATE, endpoint="e")

    assert bureau.asked[0].body == b"{}"


@pytest.mark.parametrize("operation", [endpoint_acts.PAUSE, holds.LIST])
def test_an_operation_without_a_body_has_no_type_of_one(
    bureau: Bureau, operation: Operation
) -> None:
    arguments: dict[str, Any] = dict.fromkeys(operation.blanks, "x")
    ask(bureau.url, operation, **arguments)

    (asked,) = bureau.asked
    assert asked.body == b""
    assert "application/json" not in asked.headers.values()


def test_texts_of_refusals_have_their_places(bureau: Bureau) -> None:
    issues = [issue("invalid", "name", text="is wrong"), issue("invalid", text="and that")]
    bureau.answer(tenants.LIST, Reply(400, outcome(*issues)))

    with pytest.raises(RemoteRefusal, match=r"^name: is wrong; and that$"):
        ask(bureau.url, tenants.LIST)


def test_another_success_than_the_one_of_the_operation_is_a_refusal(bureau: Bureau) -> None:
    bureau.answer(tenants.LIST, Reply(202, []))

    with pytest.raises(RemoteRefusal) as refusal:
        ask(bureau.url, tenants.LIST)

    assert str(refusal.value) == (
        "HTTP status 202 is no response of the interface for administration: is --admin-url right?"
    )


def test_issues_of_another_object_are_no_refusal_of_the_service(bureau: Bureau) -> None:
    bureau.answer(tenants.LIST, Reply(400, {**outcome(issue("x")), "resourceType": "Bundle"}))

    with pytest.raises(RemoteRefusal, match=r"HTTP status 400 is no response"):
        ask(bureau.url, tenants.LIST)


def test_a_key_that_is_not_accepted_is_named(bureau: Bureau) -> None:
    bureau.answer(tenants.LIST, Reply(401, outcome(issue("token-invalid", text="unknown key"))))

    with pytest.raises(RemoteRefusal) as refusal:
        ask(bureau.url, tenants.LIST)

    assert str(refusal.value) == f"{REFUSED}: unknown key"


def test_a_record_that_is_unknown_is_named_as_in_a_store(bureau: Bureau) -> None:
    text = "there is no client x y"
    bureau.answer(clients.SHOW, Reply(404, outcome(issue("record-unknown", text=text))))

    with pytest.raises(NoSuchRecord) as refusal:
        ask(bureau.url, clients.SHOW, client="x y")

    assert (refusal.value.kind, refusal.value.record_id) == ("client", "x y")


def test_the_same_text_of_another_problem_is_a_refusal(bureau: Bureau) -> None:
    bureau.answer(clients.SHOW, Reply(404, outcome(issue("other", text="there is no client x"))))

    with pytest.raises(RemoteRefusal, match=r"^there is no client x$"):
        ask(bureau.url, clients.SHOW, client="x")


def test_a_service_that_is_not_there_is_named() -> None:
    url = f"http://127.0.0.1:{free_port()}"

    with pytest.raises(RemoteRefusal, match=f"^{url} cannot be reached: connection refused"):
        ask(url, tenants.LIST)


def test_a_certificate_that_is_not_trusted_is_named_with_the_variable(tmp_path: Path) -> None:
    certificate = Certificate.create(tmp_path, name="127.0.0.1")
    with Receiver(certificate=certificate) as receiver, pytest.raises(RemoteRefusal) as refusal:
        ask(receiver.url.removesuffix("/hook"), tenants.LIST)

    assert "SSL_CERT_FILE FILE.pem" in str(refusal.value)
