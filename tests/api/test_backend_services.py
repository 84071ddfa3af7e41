"""SMART Backend Services: third-party clients sign assertions, and each gets one token."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc7523 import PrivateKeyJWT, private_key_jwt_sign

from fhirpub.auth.assertions.verification import TYPE
from fhirpub.auth.clients import NewClient, add_client
from fhirpub.config.settings import Config
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Answer, RunningService, Service
from tests.bodies import SYSTEM, register_body
from tests.gate import gate
from tests.node.packages import Scripts
from tests.unit.auth.assertions.signing import Pair, key_set, pair
from tests.waiting import wait_until

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SMART = "/fhir/r4/.well-known/smart-configuration"


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[str], str]
) -> Iterator[RunningService]:
    """A service that may fetch key sets from this machine, in ten seconds."""
    webhooks = WebhooksConfig(
        allow_networks=["127.0.0.1/32"], connect_seconds=8.0, timeout_seconds=10.0
    )
    folder = tmp_path_factory.mktemp("smart")
    config = replace(Config(), webhooks=webhooks)
    with RunningService(folder, config=config, store_url=store_url("smart")) as running:
        yield running


@pytest.fixture
def site() -> Iterator[Receiver]:
    """A site that publishes a key set."""
    with Receiver() as receiver:
        yield receiver


def client_with(service: RunningService, *, jwks: str = "", jwks_url: str = "") -> str:
    """Add a client with keys to a new tenant, and return its id."""
    lab = service.integrator()
    scopes = ("system/DiagnosticReport.cruds",)
    new = NewClient(
        tenant=lab.tenant.id,
        name="ward",
        environment="sandbox",
        scopes=scopes,
        jwks=jwks,
        jwks_url=jwks_url,
    )
    client, _secret = service.call(add_client(service.services.store, new, clock=now_ms))
    return client.id


class FiveMinutes(PrivateKeyJWT):  # type: ignore[misc]
    """Signs assertions as SMART App Launch wants them, as docs/integrators.md shows."""

    def sign(self, auth: Any, token_endpoint: str) -> str:
        signed: str = private_key_jwt_sign(
            auth.client_secret,
            client_id=auth.client_id,
            token_endpoint=token_endpoint,
            header={"kid": auth.client_secret.kid},
            alg=self.alg,
            expires_in=300,
        )
        return signed


def session(service: Service, client_id: str, signer: Pair) -> OAuth2Session:
    opened = OAuth2Session(
        client_id,
        signer.private,
        token_endpoint=f"{service.base_url}/oauth/token",
        token_endpoint_auth_method="private_key_jwt",
        scope="system/*.read system/*.write",
    )
    opened.register_client_auth_method(
        FiveMinutes(f"{service.base_url}/oauth/token", alg=signer.algorithm)
    )
    return opened


def assertion(service: Service, client_id: str, signer: Pair, **changes: Any) -> str:
    now = now_ms() // 1000
    usual = {"iss": client_id, "sub": client_id, "aud": f"{service.base_url}/oauth/token"}
    return signer.sign({**usual, "exp": now + 300, "jti": f"j-{time.monotonic_ns()}", **changes})


def body_of(signed: str) -> bytes:
    fields = {
        "grant_type": "client_credentials",
        "client_assertion_type": TYPE,
        "client_assertion": signed,
    }
    return urlencode(fields).encode()


def ask(service: Service, signed: str) -> Answer:
    return service.request("POST", "/oauth/token", body_of(signed), FORM)


@pytest.mark.parametrize("algorithm", ["RS384", "ES384"])
@pytest.mark.parametrize("is_published", [False, True])
def test_authlib_gets_a_token_by_its_key_and_publishes_with_it(
    service: RunningService, site: Receiver, algorithm: str, *, is_published: bool
) -> None:
    signer = pair(algorithm)
    site.answer(Reply(status=200, body=key_set(signer)))
    keys = {"jwks_url": site.url} if is_published else {"jwks": key_set(signer).decode()}
    name = f"authlib-{algorithm}-{is_published}"
    with session(service, client_with(service, **keys), signer) as opened:
        token = opened.fetch_token(grant_type="client_credentials")
        answer = opened.post(
            f"{service.base_url}/fhir/r4/DiagnosticReport/$register", json=register_body(name)
        )
        read = opened.get(answer.headers["Location"]).json()

    assert (token["token_type"], token["expires_in"]) == ("Bearer", 300)
    assert token["scope"] == "system/DiagnosticReport.rs system/DiagnosticReport.cud"
    assert answer.status_code == 201
    assert read["identifier"] == [{"system": SYSTEM, "value": name}]


def test_authlib_learns_why_its_assertion_for_an_hour_is_refused(service: RunningService) -> None:
    signer = pair("RS384")
    client_id = client_with(service, jwks=key_set(signer).decode())
    with session(service, client_id, signer) as opened:
        url = f"{service.base_url}/oauth/token"
        opened.register_client_auth_method(PrivateKeyJWT(url, headers={"kid": "k1"}, alg="RS384"))

        with pytest.raises(OAuthError) as refused:
            opened.fetch_token(grant_type="client_credentials")

    assert refused.value.error == "invalid_client"
    assert refused.value.description.endswith("must expire within five minutes: exp")


def test_medplum_gets_a_token_by_its_key_and_publishes_with_it(
    node: Scripts, service: RunningService
) -> None:
    signer = pair("ES384")
    given = {
        "base": service.base_url,
        "clientId": client_with(service, jwks=key_set(signer).decode()),
        "privateKey": signer.private.as_dict(private=True),
        "toRegister": register_body("medplum-smart"),
    }

    facts = json.loads(node.run("smart.mjs", given=given))

    assert facts["loggedIn"] is True
    assert "client-confidential-asymmetric" in facts["capabilities"]
    assert facts["read"]["identifier"] == [{"system": SYSTEM, "value": "medplum-smart"}]
    assert facts["again"] == "Error: Failed to fetch tokens"


def test_the_smart_configuration_says_what_the_token_endpoint_takes(
    service: RunningService,
) -> None:
    for path in ("/.well-known/smart-configuration", SMART):
        found = service.request("GET", path).json

        assert found["token_endpoint"] == f"{service.base_url}/oauth/token"
        assert "private_key_jwt" in found["token_endpoint_auth_methods_supported"]
        assert {"RS384", "ES384"} <= {*found["token_endpoint_auth_signing_alg_values_supported"]}
        assert "system/DiagnosticReport.cruds" in found["scopes_supported"]
        assert "system/AuditEvent.rs" in found["scopes_supported"]


def test_a_slow_site_makes_only_its_own_client_wait(tmp_path: Path) -> None:
    webhooks = WebhooksConfig(
        allow_networks=["127.0.0.1/32"], connect_seconds=50.0, timeout_seconds=50.0
    )
    signer = pair("ES384")
    with (
        RunningService(tmp_path, config=replace(Config(), webhooks=webhooks)) as service,
        ThreadPoolExecutor(1) as thread,
        gate() as site,
    ):
        slow = client_with(service, jwks_url=site.url)
        quick = client_with(service, jwks=key_set(signer).decode())
        waiting = thread.submit(ask, service, assertion(service, slow, signer))
        assert wait_until(lambda: len(site.received) == 1)

        assert ask(service, assertion(service, quick, signer)).status == 200
        assert not waiting.done()
        site.may_answer.set()
        refused = waiting.result()

    assert (refused.status, refused.json["error"]) == (401, "invalid_client")
    assert "leads to no key set now" in refused.json["error_description"]


def test_a_refused_assertion_is_no_fault_and_shows_nothing_of_itself(
    service: RunningService,
) -> None:
    signer = pair("ES384")
    client_id = client_with(service, jwks=key_set(signer).decode())
    signed = assertion(service, client_id, signer, aud="https://other.example.org")

    refused = ask(service, signed)

    assert (refused.status, refused.headers["cache-control"]) == (401, "no-store")
    assert "www-authenticate" not in refused.headers
    assert signed not in refused.body.decode()


def test_of_one_assertion_on_many_connections_to_two_workers_one_gets_a_token(
    tmp_path: Path,
) -> None:
    signer = pair("ES384")
    file = tmp_path / "jwks.json"
    file.write_bytes(key_set(signer))
    limits = {"limits": {"token_failures": 0}}  # else the last rounds would be slowed down
    with ServiceProcess(tmp_path, workers=2, settings=limits) as process, ExitStack() as stack:
        tenant = process.command("tenant", "add", "Lab")["id"]
        added = process.command("client", "add", "--tenant", tenant, "--jwks", str(file))
        connections = [
            http.client.HTTPConnection("127.0.0.1", process.port, timeout=60) for _ in range(16)
        ]
        for connection in connections:
            stack.callback(connection.close)
            connection.connect()
        statuses = []
        for _ in range(3):
            body = body_of(assertion(process, added["client_id"], signer))
            for connection in connections:  # all are sent before one is answered
                connection.request("POST", "/oauth/token", body, FORM)
            for connection in connections:
                answer = connection.getresponse()
                answer.read()
                statuses.append(answer.status)

    assert (statuses.count(200), statuses.count(401)) == (3, 45)
