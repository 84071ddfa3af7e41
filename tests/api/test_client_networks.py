"""A client that has networks gets tokens, and uses them, only from an address in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from fhirpub.auth.clients import edit_client
from fhirpub.config.settings import Config, ServerConfig
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Answer, Integrator, RunningService

NETWORKS = ["198.51.100.0/24", "2001:db8::/32"]
READ = "/fhir/r4/DiagnosticReport?_count=1"


def serve(folder: Path, *trusted: str) -> RunningService:
    server = ServerConfig(trusted_proxies=[*trusted])
    return RunningService(folder, config=replace(Config(), server=server))


def limited(service: RunningService, networks: list[str]) -> Integrator:
    """Return a client with a token, of which no process has read yet that it has networks."""
    lab = service.integrator()
    service.call(edit_client(service.services.store, lab.client_id, networks=networks))
    return lab


def read(lab: Integrator, **headers: str) -> Answer:
    return lab.get(READ, **headers)


def ask_for_token(lab: Integrator, forwarded: str) -> Answer:
    form = {
        "grant_type": "client_credentials",
        "client_id": lab.client_id,
        "client_secret": lab.client_secret,
        "audience": lab.service.config.auth.audience,
    }
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "X-Forwarded-For": forwarded,
    }
    return lab.service.request("POST", "/oauth/token", urlencode(form).encode(), headers)


@pytest.mark.parametrize(
    ("forwarded", "is_permitted"),
    [
        ("198.51.100.7", True),
        ("203.0.113.9, 198.51.100.7", True),
        ("198.51.100.7, 127.0.0.1", True),
        ("198.51.100.7, ::ffff:127.0.0.1", True),
        ("::ffff:198.51.100.7", True),
        ("2001:db8:1::7", True),
        ("203.0.113.9", False),
        ("198.51.100.7, 203.0.113.9", False),
        ("::ffff:203.0.113.9", False),
        ("2001:db9::7", False),
        ("198.51.100.7, unknown", False),
        ("198.51.100.7:443", False),
        ("", False),
    ],
)
def test_behind_a_trusted_proxy_the_address_that_it_names_counts(
    tmp_path: Path, forwarded: str, *, is_permitted: bool
) -> None:
    with serve(tmp_path, "127.0.0.1") as service:
        lab = limited(service, NETWORKS)

        used, asked = read(lab, X_Forwarded_For=forwarded), ask_for_token(lab, forwarded)

    assert (used.status, asked.status) == ((200, 200) if is_permitted else (403, 400))
    if not is_permitted:
        assert used.problems == ["address-not-permitted"]
        assert asked.json["error"] == "unauthorized_client"
        assert "may not call from this address" in asked.json["error_description"]


@pytest.mark.parametrize("trusted", [(), ("203.0.113.0/24",)])
def test_a_forged_header_from_a_client_that_is_no_proxy_is_ignored(
    tmp_path: Path, trusted: tuple[str, ...]
) -> None:
    with serve(tmp_path, *trusted) as service:
        outside, inside = limited(service, NETWORKS), limited(service, ["127.0.0.0/8"])

        assert read(outside, X_Forwarded_For="198.51.100.7").status == 403
        assert ask_for_token(outside, "198.51.100.7").status == 400
        assert read(inside, X_Forwarded_For="203.0.113.9").status == 200
        assert ask_for_token(inside, "203.0.113.9").status == 200


def test_a_token_whose_client_gets_networks_is_refused_elsewhere_within_half_a_minute(
    tmp_path: Path,
) -> None:
    now = [1_800_000_000_000]
    with RunningService(tmp_path, clock=lambda: now[0]) as service:
        lab = service.integrator()
        assert read(lab).status == 200
        service.call(edit_client(service.services.store, lab.client_id, networks=NETWORKS))
        now[0] += 30_000
        assert read(lab).status == 403

        service.call(edit_client(service.services.store, lab.client_id, networks=[]))
        now[0] += 30_000
        assert read(lab).status == 200


@pytest.mark.parametrize(("forwarded", "status"), [("198.51.100.7", "200"), ("203.0.113.9", "")])
def test_the_entries_of_a_batch_come_from_the_address_of_the_batch(
    tmp_path: Path, forwarded: str, status: str
) -> None:
    entry = {"request": {"method": "GET", "url": "DiagnosticReport?_count=1"}}
    batch: dict[str, Any] = {"resourceType": "Bundle", "type": "batch", "entry": [entry]}
    with serve(tmp_path, "127.0.0.1") as service:
        lab = limited(service, NETWORKS)

        answer = lab.request("POST", "/fhir/r4", batch, {"X-Forwarded-For": forwarded})

    if status:
        assert answer.json["entry"][0]["response"]["status"].startswith(status)
    else:
        assert answer.status == 403


def test_requests_from_a_refused_address_cannot_fill_the_log(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path) as process:
        lab = process.integrator()
        process.command("client", "edit", lab.client_id, "--network", "192.0.2.0/24")
        process.terminate()
        process.wait()
        process.start()
        statuses = {lab.get(READ).status for _ in range(30)}
        process.terminate()
        process.wait()

    lines = process.errors.read_text().splitlines()
    assert statuses == {403}
    named = [line for line in lines if "address not permitted" in line]
    assert len(named) == 10
    assert all(lab.client_id in line and "127.0.0.1" in line for line in named)
    assert all("status=403" in line for line in named)


def test_a_request_from_a_refused_address_takes_nothing_of_the_rate_of_the_client(
    tmp_path: Path,
) -> None:
    limits = replace(Config().limits, requests_per_client=1)
    with RunningService(tmp_path, config=replace(Config(), limits=limits)) as service:
        lab = limited(service, NETWORKS)
        statuses = [read(lab).status for _ in range(3)]

    assert statuses == [403] * 3
