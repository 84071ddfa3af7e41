"""What pages of the console show in tests: a corrected report, and webhooks that failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fhirpub.cli.sample.pdf import page
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import document
from tests.console.test_endpoints import ENDPOINTS, deliveries_of, has_failed
from tests.console.test_resources import HIGH
from tests.panels import panel, result
from tests.waiting import wait_until

_RESULTS = (
    ("Hemoglobin", 17.5, "12 to 16 g/dL", HIGH),
    ("Hemoglobin A", 12.4, "11 to 15 g/dL", None),
    ("Hemoglobin A2", 0.4, "0.2 to 0.5 g/dL", None),
    ("Hemoglobin F", 0.1, "up to 0.2 g/dL", None),
    ("Albumin", 4.1, "3.5 to 5.2 g/dL", None),
    ("Total protein", 7.0, "6.4 to 8.3 g/dL", None),
)
ANSWER = b"upstream laboratory gateway timed out"


@dataclass(frozen=True, slots=True)
class Stage:
    """A tenant with a corrected report, and with an endpoint whose receiver fails."""

    service: RunningService
    lab: Integrator
    report: str
    endpoint: str
    event: str

    @property
    def pages(self) -> dict[str, str]:
        """Every page, by the name of its screenshot."""
        report = f"resources/DiagnosticReport/{self.report}"
        endpoint = f"endpoints/{self.endpoint}"
        return {
            "start": "",
            "reports": "resources/DiagnosticReport",
            "report": report,
            "history": f"{report}/history",
            "patients": "resources/Patient",
            "endpoints": "endpoints",
            "add-endpoint": "add-endpoint",
            "endpoint": endpoint,
            "deliveries": f"{endpoint}/deliveries",
            "delivery": f"{endpoint}/deliveries/{self.event}",
            "replay": f"{endpoint}/replay",
            "rotate": f"{endpoint}/rotate/secret",
            "delete": f"{endpoint}/delete",
            "accesses": "accesses",
            "help": "help",
        }


@contextmanager
def staged(service: RunningService) -> Iterator[Stage]:
    """Set the stage on a service with a console, until the block ends."""
    scopes = ("system/*.cruds", "system/AuditEvent.rs", "webhooks.read", "webhooks.write")
    lab = service.integrator("North Quay Laboratory", scopes=scopes)
    with Receiver() as receiver:
        receiver.answer(Reply(status=200, echo=True))
        added = {"url": receiver.url, "description": "Ward system"}
        endpoint = lab.request("POST", ENDPOINTS, added).json
        assert lab.request("POST", f"{ENDPOINTS}/{endpoint['id']}/verify").json["passed"]
        receiver.answer(Reply(status=502, body=ANSWER))
        report = _publish(lab)
        change = {"resourceType": "DiagnosticReport", "status": "final"}
        media_type = {"Content-Type": "application/merge-patch+json"}
        path = f"/fhir/r4/DiagnosticReport/{report}"
        assert lab.request("PATCH", path, change, headers=media_type).status == 204
        assert wait_until(lambda: has_failed(deliveries_of(lab, endpoint)))
        tried = next(one for one in deliveries_of(lab, endpoint) if one["attempts"])
        yield Stage(service, lab, report, endpoint["id"], tried["event_id"])


def _publish(lab: Integrator) -> str:
    """Register a report with several results; return its id."""
    results = [
        result(
            f"r{number}",
            value,
            code={"text": name},
            referenceRange=[{"text": usual}],
            interpretation=flag,
        )
        for number, (name, value, usual, flag) in enumerate(_RESULTS)
    ]
    body = panel(
        "NQ-2026-000418", *results, status="preliminary", presentedForm=[document(_pdf())]
    )
    answer = lab.request("POST", "/fhir/r4/DiagnosticReport/$register", body)
    assert answer.status == 201, answer.body
    id_: str = answer.json["parameter"][0]["resource"]["id"]
    return id_


def _pdf() -> bytes:
    lines = [f"{name}: {value} g/dL" for name, value, _usual, _flag in _RESULTS]
    return page("Blood count", lines)
