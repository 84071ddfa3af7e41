"""A token that was requested with a TLS certificate is of no use without it (RFC 8705)."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from fhirpub.config.loader import load
from fhirpub.config.settings import Config, ServerConfig
from fhirpub.errors import ConfigurationError
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.tokens import claims_of

HEADER = "X-Client-Cert"
READ = "/fhir/r4/DiagnosticReport?_count=1"
OURS, OTHER = (quote(ssl.DER_cert_to_PEM_cert(raw)) for raw in (b"\x30\x01", b"\x30\x02"))
SAME = f":{base64.b64encode(bytes((0x30, 1))).decode()}:"


def serve(folder: Path, *, header: str = HEADER, trusted: str = "127.0.0.1") -> RunningService:
    server = ServerConfig(certificate_header=header, trusted_proxies=[trusted])
    return RunningService(folder, config=replace(Config(), server=server))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with serve(tmp_path_factory.mktemp("certificates")) as running:
        yield running


def ask(lab: Integrator, certificate: str) -> Answer:
    form = {
        "grant_type": "client_credentials",
        "client_id": lab.client_id,
        "client_secret": lab.client_secret,
        "audience": lab.service.config.auth.audience,
    }
    headers = {"Content-Type": "application/x-www-form-urlencoded", HEADER: certificate}
    return lab.service.request("POST", "/oauth/token", urlencode(form).encode(), headers)


def bound(service: RunningService) -> Integrator:
    """Return a client that has a token for our certificate."""
    lab = service.integrator()
    return replace(lab, token=ask(lab, OURS).json["access_token"])


@pytest.mark.parametrize(
    ("certificate", "status"),
    [(OURS, 200), (SAME, 200), (OTHER, 401), ("garbage", 401), ("", 401)],
)
def test_a_bound_token_is_accepted_with_its_certificate_only(
    service: RunningService, certificate: str, status: int
) -> None:
    lab = bound(service)

    for _ in range(2):  # the second time the token is known
        answer = lab.get(READ, **({"X_Client_Cert": certificate} if certificate else {}))

        assert answer.status == status
        if status == 401:
            assert answer.problems == ["token-invalid"]
            assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_the_token_names_the_digest_of_the_certificate(service: RunningService) -> None:
    lab = service.integrator()

    assert [*claims_of(bound(service).token)["cnf"]] == ["x5t#S256"]
    assert "cnf" not in claims_of(lab.token)
    assert lab.get(READ, X_Client_Cert=OTHER).status == 200


def test_the_entries_of_a_batch_come_with_its_certificate(service: RunningService) -> None:
    lab = bound(service)
    entry = {"request": {"method": "GET", "url": "DiagnosticReport?_count=1"}}
    batch = {"resourceType": "Bundle", "type": "batch", "entry": [entry] * 2}

    answer = lab.request("POST", "/fhir/r4", batch, {HEADER: OURS})

    assert [one["response"]["status"][:3] for one in answer.json["entry"]] == ["200", "200"]


def test_a_certificate_that_cannot_be_read_gets_no_token(service: RunningService) -> None:
    answer = ask(service.integrator(), "CN=ward")

    assert (answer.status, answer.json["error"]) == (400, "invalid_request")


def test_a_header_counts_only_from_a_trusted_proxy_and_if_it_is_set(tmp_path: Path) -> None:
    for number, options in enumerate(({"trusted": "192.0.2.1"}, {"header": ""})):
        folder = tmp_path / str(number)
        folder.mkdir()
        with serve(folder, **options) as elsewhere:
            lab = elsewhere.integrator()
            token = ask(lab, OURS).json["access_token"]

        assert "cnf" not in claims_of(token)


@pytest.mark.parametrize("name", ["oauth-authorization-server", "smart-configuration"])
def test_the_metadata_say_that_tokens_are_bound(service: RunningService, name: str) -> None:
    found = service.request("GET", f"/.well-known/{name}").json

    assert found["tls_client_certificate_bound_access_tokens"] is True


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('certificate_header = "X-Client-Cert"', "needs trusted_proxies"),
        (
            'certificate_header = "X Cert"\ntrusted_proxies = ["10.1.2.3"]',
            "must be the name of a header",
        ),
    ],
)
def test_a_header_that_nobody_may_set_is_refused_at_the_start(
    tmp_path: Path, lines: str, said: str
) -> None:
    file = tmp_path / "fhirpub.toml"
    file.write_text(f"[server]\n{lines}\n")

    with pytest.raises(ConfigurationError, match=said):
        load(file, environment={})
