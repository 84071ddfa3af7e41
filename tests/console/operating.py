"""What operators find in a service: names that try to break pages, a report, and its events."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from urllib.parse import quote

from fhirpub.console.operators.catalogue import OFFERED
from fhirpub.testing.receiver import Receiver
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import organization, parameters, patient, report
from tests.console.tabs import Tab
from tests.waiting import wait_until

SCRIPT = '<script>alert("x")</script>\''
FAMILY = "Zwickmoor"
CONCLUSION = "Grenzwertig-erhoeht"
ANSWER = "receiver-says-this"
"""What a receiver answered: it is shown to the people of its tenant alone."""
CONTENT = (FAMILY, CONCLUSION, ANSWER)
OPERATIONS = "/console/operations"


@dataclass(frozen=True, kw_only=True)
class Estate:
    """A tenant with a client, an endpoint that got an event, and a report."""

    service: RunningService
    tab: Tab
    lab: Integrator
    endpoint: str
    report: str

    @property
    def tenant(self) -> str:
        """The id of the tenant."""
        return self.lab.tenant.id

    @property
    def client(self) -> str:
        """The id of the client."""
        return self.lab.client_id

    def pages(self) -> list[str]:
        """Return a path of every page of operators that reads, filled with what there is."""
        values = {
            "tenant": self.tenant,
            "client": self.client,
            "endpoint": self.endpoint,
            "chain": self.tenant,
        }
        paths = [f"{OPERATIONS}{one}" for one in ("", "/keys", "/erasures", "/audit")]
        paths += [f"{OPERATIONS}/audit/{one}" for one in ("service", self.tenant)]
        for kind in ("tenant", "client", "endpoint"):
            paths += [f"{OPERATIONS}/{kind}s", f"{OPERATIONS}/{kind}s/{values[kind]}"]
        for name, operation in OFFERED.items():
            known = [one.name for one in operation.parameters if one.name in values]
            query = "&".join(f"{one}={values[one]}" for one in known)
            paths.append(f"{OPERATIONS}/run/{name}?{query}")
        return ["/console/", *paths]


def furnish(service: RunningService, receiver: Receiver, key: str) -> Estate:
    """Return a new estate, whose event was sent, and an operator who signed in by the key."""
    tab = sign_in(service, key)
    lab = service.integrator(SCRIPT)
    run(tab, "clientEdit", client=lab.client_id, name=SCRIPT)
    fields = {"url": receiver.url, "description": SCRIPT, "event_types": "*"}
    added = run(tab, "endpointAdd", tenant=lab.tenant.id, **fields)
    body = parameters(
        patient=patient(name=[{"family": FAMILY}]),
        organization=organization(),
        diagnosticReport=report("S-1", conclusion=CONCLUSION),
    )
    registered = lab.register(body)
    assert registered.status == 201, registered.body
    searched = lab.get(f"/fhir/r4/DiagnosticReport?identifier={quote(f'x|{FAMILY}')}")
    assert searched.status == 200, searched.body
    endpoint = match(r"/operations/endpoints/([0-9a-f-]{36})", added)
    estate = Estate(
        service=service,
        tab=tab,
        lab=lab,
        endpoint=endpoint,
        report=registered.json["parameter"][0]["resource"]["id"],
    )
    path = f"/webhooks/v1/endpoints/{endpoint}/deliveries"
    assert wait_until(lambda: b'"delivered"' in lab.get(path).body)
    return estate


def sign_in(service: RunningService, key: str) -> Tab:
    """Return a tab whose session began by the form of the administrative key."""
    tab = Tab(service)
    answer = tab.post("/console/sign-in/key", {"key": key})
    assert answer.status == 303, answer.body
    tab.cookie = answer.headers["set-cookie"].partition(";")[0]
    tab.proof = match('name="proof" value="([^"]+)"', tab.get("/console/"))
    return tab


def form_path(name: str) -> str:
    """Return the path of an operation."""
    return f"{OPERATIONS}/run/{name}"


def send(tab: Tab, name: str, /, **fields: str) -> Answer:
    """Send the form of an operation."""
    return tab.post(form_path(name), fields)


def run(tab: Tab, name: str, /, **fields: str) -> Answer:
    """Run an operation by its form, which has to succeed."""
    answer = send(tab, name, **fields)
    assert answer.status == 200, answer.body.decode()
    assert "Done." in answer.body.decode()
    return answer


def match(pattern: str, page: Answer) -> str:
    """Return what a page has at the first place of a pattern."""
    found = re.search(pattern, page.body.decode())
    assert found is not None, pattern
    return unescape(found[1])
