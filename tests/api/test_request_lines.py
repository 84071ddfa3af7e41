"""Every request leaves one line in the log, which says what became of it, and no value (D-370)."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from fhirpub.config.settings import Config
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Answer, Integrator, RunningService, Service
from tests.bodies import register_body
from tests.log_lines import caught_lines

TYPE = "/fhir/r4/DiagnosticReport"
READ = "/fhir/r4/DiagnosticReport/{}"
REGISTER = "/fhir/r4/DiagnosticReport/$register"
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def register(lab: Integrator, value: str) -> str:
    """Register a report, and return its id."""
    registered: str = lab.register(register_body(value)).headers["location"].split("/")[-3]
    return registered


def line_of(
    lab: Integrator | Service, method: str, path: str, *more: Any
) -> tuple[Answer, dict[str, Any]]:
    """Return the answer to a request, and the one line that it left."""
    with caught_lines() as log:
        answer = lab.request(method, path, *more)
        return answer, log.of(answer.headers["x-request-id"])


def test_a_read_leaves_a_line_with_all_that_is_known_of_it(lab: Integrator) -> None:
    report = register(lab, "read-line")

    answer, line = line_of(lab, "GET", f"{TYPE}/{report}")

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("timestamp"))
    assert 0 < line.pop("milliseconds") < 10_000
    assert line == {
        "level": "info",
        "event": "answered",
        "method": "GET",
        "route": READ,
        "status": 200,
        "bytes": len(answer.body),
        "request_id": answer.headers["x-request-id"],
        "tenant": lab.tenant.id,
        "client": lab.client_id,
        "resource": f"DiagnosticReport/{report}",
    }


def test_a_registration_names_the_resource_that_was_made(lab: Integrator) -> None:
    answer, line = line_of(lab, "POST", REGISTER, register_body("line-of-a-registration"))

    report = answer.headers["location"].split("/")[-3]
    assert (line["status"], line["route"]) == (201, REGISTER)
    assert line["resource"] == f"DiagnosticReport/{report}"


def test_the_id_of_the_client_is_that_of_the_line(lab: Integrator) -> None:
    _, line = line_of(lab, "GET", TYPE, None, {"X-Request-Id": "abc.17"})

    assert line["request_id"] == "abc.17"
    assert "resource" not in line


def test_a_refusal_names_codes_and_places_and_no_values(lab: Integrator) -> None:
    body = register_body("Verraeterisch", status="Verraeterisch", conclusion=["Verraeterisch"])

    _, line = line_of(lab, "POST", REGISTER, body)

    assert (line["event"], line["level"], line["status"]) == ("refused", "info", 400)
    assert line["codes"] == ["status-not-allowed", "value-invalid"]
    assert sorted(line["places"]) == [
        "Parameters.parameter[2].resource.conclusion",
        "Parameters.parameter[2].resource.status",
    ]
    assert "Verraeterisch" not in json.dumps(line)


def test_an_id_that_cannot_be_ours_is_not_named(lab: Integrator) -> None:
    ours = line_of(lab, "GET", f"{TYPE}/{UNKNOWN}")[1]
    other = line_of(lab, "GET", f"{TYPE}/Ana-Lopez-1980-02-29")[1]

    assert (ours["status"], ours["resource"]) == (404, f"DiagnosticReport/{UNKNOWN}")
    assert (other["status"], other["route"]) == (404, READ)
    assert "Lopez" not in json.dumps(other)


def test_the_name_of_an_element_that_is_unknown_is_not_named(lab: Integrator) -> None:
    body = register_body("place", AnaLopez={"AnaLopez": "x"})

    _, line = line_of(lab, "POST", REGISTER, body)

    assert line["codes"] == ["element-unknown"]
    assert line["places"] == ["Parameters.parameter[2].resource"]
    assert "Lopez" not in json.dumps(line)


def test_a_path_without_a_route_is_not_named(lab: Integrator) -> None:
    _, line = line_of(lab, "GET", "/fhir/r4/Ana-Lopez")

    assert (line["route"], line["status"]) == ("none", 404)
    assert "Lopez" not in json.dumps(line)


def test_a_request_without_a_token_says_why_it_is_refused(service: RunningService) -> None:
    _, line = line_of(service, "GET", TYPE)

    assert (line["event"], line["status"]) == ("refused", 401)
    assert line["reason"] == "no Authorization header"
    assert not line.keys() & {"client", "tenant"}


def test_a_token_that_is_refused_says_why_and_to_which_address(service: RunningService) -> None:
    body, headers = b"grant_type=password", {"Content-Type": "application/x-www-form-urlencoded"}

    _, line = line_of(service, "POST", "/oauth/token", body, headers)

    assert (line["event"], line["status"]) == ("refused", 400)
    assert (line["codes"], line["address"]) == (["unsupported_grant_type"], "127.0.0.1")


def test_a_token_that_is_granted_names_its_client(lab: Integrator) -> None:
    form = {"grant_type": "client_credentials", "audience": Config().auth.audience}
    form |= {"client_id": lab.client_id, "client_secret": lab.client_secret}
    headers = {"Content-Type": "application/x-www-form-urlencoded"}

    _, line = line_of(lab, "POST", "/oauth/token", urlencode(form).encode(), headers)

    assert (line["route"], line["status"]) == ("/oauth/token", 200)
    assert (line["tenant"], line["client"]) == (lab.tenant.id, lab.client_id)


def test_each_entry_of_a_batch_has_a_line_under_the_id_of_the_batch(lab: Integrator) -> None:
    report = register(lab, "line-of-a-batch")
    entries = [
        {"request": {"method": "GET", "url": f"DiagnosticReport/{report}"}},
        {"request": {"method": "GET", "url": f"DiagnosticReport/{UNKNOWN}"}},
    ]
    batch = {"resourceType": "Bundle", "type": "batch", "entry": entries}

    with caught_lines() as log:
        lab.request("POST", "/fhir/r4", batch, {"X-Request-Id": "night"})
        lines = {name: log.of(name) for name in ("night", "night-0", "night-1")}

    assert {name: line["status"] for name, line in lines.items()} == {
        "night": 200,
        "night-0": 200,
        "night-1": 404,
    }
    assert lines["night-0"]["resource"] == f"DiagnosticReport/{report}"


def test_a_check_of_health_has_a_line_at_debug_only(service: RunningService) -> None:
    _, line = line_of(service, "GET", "/health/live")

    assert line["level"] == "debug"


def test_a_client_that_leaves_before_it_has_sent_all_has_a_line_without_a_status(
    lab: Integrator, service: RunningService
) -> None:
    head = (
        f"POST {REGISTER} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {lab.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\nX-Request-Id: gone\r\n\r\n{"
    )
    with caught_lines() as log:
        with socket.create_connection(("127.0.0.1", service.port)) as sending:
            sending.sendall(head.encode())
        line = log.of("gone")

    assert (line["event"], line["route"]) == ("cut off", REGISTER)
    assert not line.keys() & {"status", "bytes"}


def test_without_the_switch_only_refusals_have_lines(tmp_path: Path) -> None:
    config = replace(Config(), logs=replace(Config().logs, requests=False))
    with RunningService(tmp_path, config=config) as service:
        lab = service.integrator()
        with caught_lines() as log:
            lab.get(TYPE)
            refused = lab.get(f"{TYPE}/{UNKNOWN}").headers["x-request-id"]
            assert log.of(refused)["event"] == "refused"
            assert len(log.lines) == 1


@pytest.mark.parametrize(
    ("level", "expected"), [("info", {"answered", "refused"}), ("warning", set())]
)
def test_lines_of_requests_have_the_level_info(
    tmp_path: Path, level: str, expected: set[str]
) -> None:
    settings: dict[str, Mapping[str, Any]] = {"logs": {"format": "json", "level": level}}
    with ServiceProcess(tmp_path, settings=settings) as process:
        lab = process.integrator()
        lab.get(TYPE)
        lab.get(f"{TYPE}/{UNKNOWN}")
        process.terminate()
        process.wait()
        output = process.errors.read_text(encoding="utf-8")

    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    found = {line["event"] for line in lines if line.get("client") and "status" in line}
    assert found == expected
