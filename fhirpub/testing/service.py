"""The whole service on a real socket, in its own thread, and an integrator that uses it."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

from fhirpub.app.server import run_server
from fhirpub.app.services import build_services
from fhirpub.app.stores import OpenStore, open_store
from fhirpub.auth.clients import add_client
from fhirpub.auth.tenants import add_tenant
from fhirpub.config.settings import Config
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.http.sockets import bind
from fhirpub.runtime.clock import Clock, now_ms
from fhirpub.tenant import Tenant
from fhirpub.web.services import Services

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read strictly."""
        return loads(self.body)

    @property
    def issues(self) -> list[dict[str, Any]]:
        """The issues of an OperationOutcome."""
        issues: list[dict[str, Any]] = self.json["issue"]
        return issues

    @property
    def issue_expressions(self) -> set[str]:
        """The places that an OperationOutcome points at."""
        return {place for issue in self.issues for place in issue.get("expression", ())}


class Service:
    """A service that answers on 127.0.0.1, wherever it runs."""

    config: Config

    @property
    def port(self) -> int:
        """Where it listens; 0 before the first start."""
        return self.config.server.port

    @property
    def base_url(self) -> str:
        """The address, without a slash at its end."""
        return self.config.base_url

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request over a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            read = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, read, response.read())
        finally:
            connection.close()


class RunningService(Service):
    """A service with a store of its own; use it as a context manager.

    ``store_url`` names the store, by default a file in the folder; ``open_store`` opens it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        config: Config | None = None,
        clock: Clock = now_ms,
        store_url: str = "",
        open_store: OpenStore = open_store,
    ) -> None:
        base = config or Config()
        self.config = replace(
            base,
            server=replace(base.server, host="127.0.0.1", port=0),
            storage=replace(base.storage, url=store_url or f"sqlite:///{folder}/fhirpub.db"),
        )
        self._clock = clock
        self._open_store = open_store
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failure: BaseException | None = None
        self.services: Services
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_exception: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run something on the service's own loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def integrator(self, name: str = "Lab", *, scopes: tuple[str, ...] = ()) -> Integrator:
        """Create a tenant and a client; return an integrator with its token."""
        tenant = self.call(add_tenant(self.services.store, name, clock=self._clock))
        return self.another_client(tenant, scopes=scopes)

    def another_client(self, tenant: Tenant, *, scopes: tuple[str, ...] = ()) -> Integrator:
        """Make another client of a tenant."""
        client, secret = self.call(
            add_client(
                self.services.store,
                tenant=tenant.id,
                name="test",
                environment=self.config.auth.environment,
                scopes=scopes,
                clock=self._clock,
            )
        )
        integrator = Integrator(self, tenant, client.id, secret)
        integrator.log_in()
        return integrator

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as problem:  # noqa: BLE001 - passed to the starting thread
            self._failure = problem
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self.config, sockets = bind(self.config)
        opening = build_services(self.config, clock=self._clock, open_store=self._open_store)
        with ExitStack() as listening:
            for socket in sockets:  # also if nothing comes of the service
                listening.enter_context(socket)
            async with opening as self.services, run_server(self.services, sockets):
                self._ready.set()
                await self._stop.wait()


@dataclass(slots=True)
class Integrator:
    """A client of a tenant, with its token."""

    service: Service
    tenant: Tenant
    client_id: str
    client_secret: str = field(repr=False)
    token: str = field(default="", repr=False)

    def log_in(self) -> None:
        """Ask for a token."""
        form = {
            "grant_type": "client_credentials",
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "audience": self.service.config.auth.audience,
        }
        answer = self.service.request(
            "POST",
            "/oauth/token",
            urlencode(form).encode(),
            {"Content-Type": "application/x-www-form-urlencoded"},
        )
        self.token = answer.json["access_token"]

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request with the token; ``body`` is bytes, or something to encode as JSON."""
        raw = body if body is None or isinstance(body, bytes) else dumps(body)
        given = {"Authorization": f"Bearer {self.token}"}
        if raw is not None:
            given["Content-Type"] = "application/fhir+json"
        path = path.removeprefix(self.service.base_url)
        return self.service.request(method, path, raw, {**given, **(headers or {})})

    def get(self, path: str, **headers: str) -> Answer:
        """Read; header names are written with underscores."""
        return self.request("GET", path, headers=_header_names(headers))

    def register(
        self, body: Any, *, type_name: str = "DiagnosticReport", **headers: str
    ) -> Answer:
        """Send a body to ``$register``."""
        path = f"/fhir/r4/{type_name}/$register"
        return self.request("POST", path, body, _header_names(headers))

    def patch(self, path: str, body: Any, **headers: str) -> Answer:
        """Update a resource."""
        return self.request("PATCH", path, body, _header_names(headers))


def _header_names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
