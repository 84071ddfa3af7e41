"""A tab of a browser, for tests that need no rendering: it has a session, and follows nothing."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import urlencode

from fhirpub.app.administration import create_interface
from fhirpub.config.administration import AdminConfig
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.console.creation import create_console
from fhirpub.console.sessions import Person
from fhirpub.testing.service import Answer, Integrator, RunningService

FORM = "application/x-www-form-urlencoded"
KEY = "fhirpub_admin_of_tests"
"""The administrative key of a service with `SETTINGS`."""
SETTINGS = Config(
    console=ConsoleConfig(enabled=True),
    admin=AdminConfig(bootstrap_key_hash=hashlib.sha256(KEY.encode()).hexdigest()),
    plugins=PluginsConfig(enabled=["diagnosticreport", "observation"]),
    webhooks=WebhooksConfig(allow_networks=["127.0.0.0/8"]),
)
"""The settings of a service with a console, which sends webhooks to this machine."""


@dataclass(slots=True)
class Tab:
    """A tab with the session of a person, or with none.

    Attributes:
        service: The service whose console is visited.
        cookie: The cookie of the session, as the browser sends it.
        proof: What forms of the session repeat.
    """

    service: RunningService
    cookie: str = field(default="", repr=False)
    proof: str = field(default="", repr=False)

    def get(self, path: str, **headers: str) -> Answer:
        """Open a page."""
        return self.service.request("GET", path, headers={"Cookie": self.cookie, **headers})

    def post(self, path: str, fields: dict[str, str] | None = None, **headers: str) -> Answer:
        """Send a form, as the page that has it would."""
        body = urlencode({"proof": self.proof, **(fields or {})}).encode()
        sent = {
            "Cookie": self.cookie,
            "Content-Type": FORM,
            "Origin": self.service.base_url,
            **headers,
        }
        return self.service.request("POST", path, body, sent)


def open_tab(lab: Integrator) -> Tab:
    """Return a tab in which a person of a client is signed in."""
    assert isinstance(lab.service, RunningService)
    return tab_of(lab.service, Person(subject=lab.client_id, name="Ada Laband"))


def open_operator(service: RunningService) -> Tab:
    """Return a tab in which an operator is signed in."""
    return tab_of(service, Person(subject="bootstrap", name="bootstrap", is_operator=True))


def tab_of(service: RunningService, person: Person) -> Tab:
    """Return a tab with a session that begins now."""
    sessions = create_console(service.services, create_interface(service.services)).sessions
    cookie = service.call(sessions.begin(person))
    proof = service.call(sessions.read(cookie)).proof
    return Tab(service, f"fhirpub_session={cookie}", proof)


def text_of(page: Answer) -> str:
    """Return the text of a page, as a person reads it."""
    inside = page.body.decode().partition("<main")[2]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", inside)))
