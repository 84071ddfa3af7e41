"""What a stolen token or secret is tried for stands in the trail of the tenant (D-342, D-454)."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from fhirpub.auth.clients import edit_client
from fhirpub.config.settings import Config, LimitsConfig, ServerConfig
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.audit_trail import read_chain

FORM = "application/x-www-form-urlencoded"
READ = "/fhir/r4/DiagnosticReport?_count=1"
ELSEWHERE = ["198.51.100.0/24"]
HEADER = "X-Client-Cert"
CERTIFICATE = quote(ssl.DER_cert_to_PEM_cert(b"\x30\x01"))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    config = Config(server=ServerConfig(certificate_header=HEADER, trusted_proxies=["127.0.0.1"]))
    config = replace(config, limits=LimitsConfig(token_failures=2))
    with RunningService(tmp_path_factory.mktemp("audit"), config=config) as running:
        yield running


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    return service.integrator(scopes=("system/DiagnosticReport.rs",))


def ask_for_token(lab: Integrator, certificate: str = "", **changes: str) -> Answer:
    form = {
        "grant_type": "client_credentials",
        "client_id": lab.client_id,
        "client_secret": lab.client_secret,
        "audience": lab.service.config.auth.audience,
        **changes,
    }
    body = urlencode(form).encode()
    headers = {"Content-Type": FORM, **({HEADER: certificate} if certificate else {})}
    return lab.service.request("POST", "/oauth/token", body, headers)


def refused(lab: Integrator) -> list[dict[str, Any]]:
    """Return what the chain of the tenant has of refusals, without times.

    Those that are alike are counted together: some may have been recorded before the others.
    """
    found: dict[str, dict[str, Any]] = {}
    for one in read_chain(lab, lab.tenant.id):
        if one["status"] < 400:
            continue
        kind = {name: value for name, value in one.items() if name not in ("at", "count")}
        known = found.setdefault(repr(kind), {**kind, "count": 0})
        known["count"] += one["count"]
    return [*found.values()]


def test_a_token_from_outside_of_its_networks_is_in_the_trail_of_the_tenant(
    lab: Integrator, service: RunningService
) -> None:
    service.call(edit_client(service.services.store, lab.client_id, networks=ELSEWHERE))

    statuses = [lab.get(READ, X_Forwarded_For="203.0.113.9").status for _ in range(3)]

    assert statuses == [403] * 3
    assert refused(lab) == [
        {
            "action": "search",
            "status": 403,
            "client": lab.client_id,
            "address": "203.0.113.9",
            "what": [f"Client/{lab.client_id}"],
            "count": 3,
        }
    ]


@pytest.mark.parametrize(
    "changes",
    [{"scope": "system/Patient.rs"}, {"audience": "https://other.example.org"}],
)
def test_what_a_client_may_not_have_is_refused_in_the_trail_of_its_tenant(
    lab: Integrator, changes: dict[str, str]
) -> None:
    assert ask_for_token(lab, **changes).status == 403

    (record,) = refused(lab)
    assert (record["action"], record["status"]) == ("token", 403)
    assert (record["client"], record["count"]) == (lab.client_id, 1)


def test_guesses_that_are_slowed_down_are_in_the_trail_of_the_tenant(lab: Integrator) -> None:
    statuses = [ask_for_token(lab, client_secret="wrong").status for _ in range(4)]

    assert statuses == [401, 401, 429, 429]
    assert [(one["status"], one["count"]) for one in refused(lab)] == [(401, 2), (429, 2)]


def test_a_bound_token_without_its_certificate_is_in_the_trail_of_the_tenant(
    lab: Integrator,
) -> None:
    asked = ask_for_token(lab, CERTIFICATE)
    bound = replace(lab, token=asked.json["access_token"])

    assert bound.get(READ).status == 401

    (record,) = refused(lab)
    assert (record["action"], record["status"]) == ("unauthenticated", 401)
    assert record["client"] == lab.client_id
