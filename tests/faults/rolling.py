"""An integrator whose requests reach two services over one store, as behind a proxy."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Self

from fhirpub.tenant import Tenant
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Answer, Integrator, Service
from tests.bodies import SYSTEM
from tests.panels import panel, result

_REPORTS = "/fhir/r4/DiagnosticReport"


@dataclass
class Traffic:
    """Publishes, reads, searches and updates until it is stopped; a context manager.

    Each report is registered at one of the services and read, found and updated at another: what
    one has acknowledged, all must have. `surprises` has the answers that no client may get.
    Identifiers begin with ``prefix``, which no other traffic of the store has.
    """

    lab: Integrator
    services: Mapping[str, Service]
    prefix: str = "report"
    surprises: list[str] = field(default_factory=list)
    updated: dict[str, str] = field(default_factory=dict)
    """The path of each report that was registered and updated, by its identifier."""
    _enough: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._threads = [
            threading.Thread(target=self._run, args=(name,), name=name) for name in self.services
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def check(self, service: Service) -> None:
        """Assert that a service has each acknowledged report once, with its update and results."""
        lab = replace(self.lab, service=service)
        for value, path in self.updated.items():
            found = lab.get(f"{_REPORTS}?identifier={SYSTEM}|{value}").json
            assert [entry["resource"]["conclusion"] for entry in found["entry"]] == [value]
            history = lab.get(f"{path}/_history").json
            assert [entry["resource"]["meta"]["versionId"] for entry in history["entry"]] == [
                "2",
                "1",
            ]
            (reference,) = found["entry"][0]["resource"]["result"]
            assert lab.get(f"/fhir/r4/{reference['reference']}").status == HTTPStatus.OK

    def _run(self, name: str) -> None:
        """Register at one service, and do the rest at the next one."""
        names = [*self.services]
        other = names[(names.index(name) + 1) % len(names)]
        number = 0
        while not self._enough.is_set():
            number += 1
            self._publish(f"{self.prefix}-{name}-{number}", first=name, then=other)

    def _publish(self, value: str, *, first: str, then: str) -> None:
        body = panel(value, result("r"))
        answer = self._ask(first, "register", "POST", f"{_REPORTS}/$register", body)
        if answer.status != HTTPStatus.CREATED:
            return
        path = answer.headers["location"].partition("/_history")[0]
        path = path[path.index("/fhir/") :]
        again = self._ask(then, "repeat", "POST", f"{_REPORTS}/$register", body)
        if again.status < 300 and again.body != answer.body:
            self.surprises.append(f"{then}: another answer to a repetition")
        self._ask(then, "read", "GET", path)
        search = f"{_REPORTS}?identifier={SYSTEM}|{value}"
        found = self._ask(then, "search", "GET", search)
        if found.status == HTTPStatus.OK and found.json["total"] != 1:
            self.surprises.append(f"{then}: found {found.json['total']} of one report")
        change = {"resourceType": "DiagnosticReport", "conclusion": value}
        changed = self._ask(then, "update", "PATCH", path, change, {"If-Match": 'W/"1"'})
        if changed.status == HTTPStatus.NO_CONTENT:
            self.updated[value] = path

    def _ask(self, name: str, request: str, method: str, path: str, *more: Any) -> Answer:
        answer = replace(self.lab, service=self.services[name]).request(method, path, *more)
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            self.surprises.append(f"{name}: {request}: {answer.status} {answer.body[:300]!r}")
        return answer


def integrator_of(service: ServiceProcess) -> Integrator:
    """Create a tenant and a client by commands of the release of a service, and log in."""
    tenant = service.command("tenant", "add", "Lab")["id"]
    client = service.command("client", "add", "--tenant", tenant, "--scope", "system/*.cruds")
    known = Tenant(id=tenant, name="Lab", salt=b"", created=0)
    lab = Integrator(service, known, client["client_id"], client["client_secret"])
    lab.log_in()
    return lab
