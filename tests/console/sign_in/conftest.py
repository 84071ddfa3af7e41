"""A console behind a proxy with TLS, its operators, and persons who are invited."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from fhirpub.auth.assertions.signing import new_key_pair, sign_assertion
from fhirpub.auth.assertions.verification import TYPE
from fhirpub.auth.clients import NewClient, add_client
from fhirpub.auth.tenants import add_tenant
from fhirpub.cli.commands import COMMANDS, Reporting
from fhirpub.config.administration import AdminConfig
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import Config
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.contract import Client
from fhirpub.tenant import Tenant
from fhirpub.testing.clock import HandClock
from fhirpub.testing.service import Answer, RunningService
from tests.console.sign_in.passkey import Passkey
from tests.console.sign_in.visitor import Visitor
from tests.ports import free_port

ORIGIN = "https://console.example.org"
KEY = "fhirpub_admin_of_tests"
OPERATOR = "ana"
COMMAND = Reporting(places=COMMANDS)


@dataclass(kw_only=True)
class Site:
    """A service with a console.

    Attributes:
        service: The service.
        operator_key: The private key of the operator `ana`.
        clock: Its time, if that is moved by hand.
    """

    service: RunningService
    operator_key: dict[str, str] = field(repr=False)
    clock: HandClock | None = None

    def tenant(self) -> Tenant:
        return self.service.call(add_tenant(self.service.services.store, "Lab", clock=now_ms))

    def run(self, *words: str) -> Result:
        """Run a command of an operator over HTTP."""
        admin = self.service.config.admin
        environment = {
            "FHIRPUB_ADMIN_URL": f"http://127.0.0.1:{admin.port}",
            "FHIRPUB_ADMIN_KEY": KEY,
        }
        invoke = partial(CliRunner().invoke, COMMAND, words, env=environment)
        with ThreadPoolExecutor(1) as thread:  # a browser that is driven has a loop in this one
            return thread.submit(invoke).result()

    def json(self, *words: str) -> Any:
        result = self.run(*words, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    def person(self, name: str = "Ada Laband", *options: str) -> dict[str, Any]:
        """Add a person of a new tenant; return what the command prints."""
        words = ("client", "add-person", "--tenant", self.tenant().id, "--name", name)
        added: dict[str, Any] = self.json(
            *words, "--scope", "system/*.rs system/AuditEvent.rs", *options
        )
        return added

    def member(self, **options: Any) -> tuple[Visitor, Passkey, str]:
        """Return the browser of a person who has just accepted the invitation, and the client."""
        invited, passkey = self.person(), Passkey(origin=ORIGIN, **options)
        visitor = Visitor(self.service)
        answer = visitor.accept(invited["url"], passkey)
        assert answer.status == 303, answer.body.decode()
        return visitor, passkey, invited["client_id"]

    def key_client(self, **changes: Any) -> tuple[Client, dict[str, str]]:
        """Return a client with a private key."""
        private, public = new_key_pair()
        new = NewClient(
            tenant=self.tenant().id,
            name="ward system",
            environment=self.service.config.auth.environment,
            jwks=orjson.dumps(public).decode(),
        )
        added = add_client(self.service.services.store, replace(new, **changes), clock=now_ms)
        return self.service.call(added)[0], private

    def ask_link(
        self, key: dict[str, str], subject: str, place: str = "/console/links", **changes: str
    ) -> Answer:
        """Ask for a link with an assertion."""
        origin = self.service.config.console.base_url
        audience = changes.pop("audience", f"{origin}{place}")
        clock = self.clock or now_ms
        assertion = sign_assertion(key, subject=subject, audience=audience, clock=clock)
        fields = {"client_assertion_type": TYPE, "client_assertion": assertion}
        visitor = Visitor(self.service)
        visitor.address = changes.pop("address", visitor.address)
        return visitor.post(place, fields, **changes)

    def operator_link(self) -> str:
        """Return a link for the operator `ana`."""
        answer = self.ask_link(self.operator_key, OPERATOR, "/console/links/operators")
        assert answer.status == 200, answer.body.decode()
        url: str = answer.json["url"]
        return url

    def records(self, tenant: str = "service") -> list[dict[str, Any]]:
        """Return what the audit trail of a tenant, or of the service, has by now."""
        trail = self.service.services.audit
        assert trail is not None
        self.service.call(trail.settle())
        connection = HTTPConnection("127.0.0.1", self.service.config.admin.port, timeout=60)
        path, headers = f"/admin/v1/audit/{tenant}/records", {"Authorization": f"Bearer {KEY}"}
        try:
            connection.request("GET", path, headers=headers)
            records: list[dict[str, Any]] = json.loads(connection.getresponse().read())["records"]
        finally:
            connection.close()
        return records


def config_in(folder: Path, **changes: Any) -> tuple[Config, dict[str, str]]:
    """Return the settings of a console, and the private key of an operator."""
    private, public = new_key_pair()
    keys = folder / "ana.jwks.json"
    keys.write_bytes(orjson.dumps(public))
    config = Config()
    return replace(
        config,
        console=replace(ConsoleConfig(enabled=True, base_url=ORIGIN), **changes),
        server=replace(config.server, trusted_proxies=["127.0.0.1"]),
        admin=AdminConfig(
            port=free_port(),
            bootstrap_key_hash=hashlib.sha256(KEY.encode()).hexdigest(),
            callers=[f"{OPERATOR}={keys}"],
        ),
    ), private


@pytest.fixture(scope="module")
def site(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A service with a console, whose time passes."""
    folder = tmp_path_factory.mktemp("sign-in")
    config, key = config_in(folder)
    with RunningService(folder, config=config, store_url=store_url("sign_in")) as running:
        yield Site(service=running, operator_key=key)


@pytest.fixture(scope="module")
def timed(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A service with a console, whose time stands still until a test moves it."""
    folder, clock = tmp_path_factory.mktemp("timed"), HandClock(now_ms())
    config, key = config_in(folder)
    url = store_url("sign_in_timed")
    with RunningService(folder, config=config, store_url=url, clock=clock) as running:
        yield Site(service=running, operator_key=key, clock=clock)


@pytest.fixture(scope="module")
def local(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A console on a port of its own, whose origin is its real address."""
    folder, port = tmp_path_factory.mktemp("local"), free_port()
    config, key = config_in(folder, base_url=f"http://localhost:{port}", port=port)
    with RunningService(folder, config=config, store_url=store_url("sign_in_local")) as running:
        yield Site(service=running, operator_key=key)


@pytest.fixture
def visitor(site: Site) -> Visitor:
    """A browser in which no person is signed in."""
    return Visitor(site.service)
