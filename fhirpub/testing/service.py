"""The whole service on a real socket, in its own thread, and an integrator that calls it."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

from fhirpub.app.server import run_server
from fhirpub.app.services import build_services
from fhirpub.app.stores import OpenStore, open_store
from fhirpub.auth.clients import NewClient, add_client
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
    """The response to a request.

    Attributes:
        status: Its HTTP status.
        headers: Its headers; the names are in lower case.
        body: Its body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON, parsed strictly."""
        return loads(self.body)

    @property
    def issues(self) -> list[dict[str, Any]]:
        """The issues of the OperationOutcome in the body."""
        issues: list[dict[str, Any]] = self.json["issue"]
        return issues

    @property
    def problems(self) -> list[str]:
        """The code of each issue of the OperationOutcome in the body: its kind of problem."""
        return [issue["details"]["coding"][0]["code"] for issue in self.issues]

    @property
    def issue_expressions(self) -> set[str]:
        """The FHIRPath expressions of all issues of the OperationOutcome in the body."""
        return {place for issue in self.issues for place in issue.get("expression", ())}


class Service:
    """A service on 127.0.0.1, in a thread or in a process.

    Attributes:
        config: The settings in effect.
    """

    config: Config

    @property
    def port(self) -> int:
        """The port on which it listens; 0 before the first start."""
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
        """Send one request over a new connection.

        Args:
            method: The HTTP method.
            path: The path, with the query.
            body: The body, or None for none.
            headers: The headers.

        Returns:
            The response.

        Raises:
            OSError: There is no connection, or no response within 60 seconds.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            read = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, read, response.read())
        finally:
            connection.close()


class RunningService(Service):
    """A service in a thread, with a store of its own; use it as a context manager.

    Args:
        folder: The folder of the store.
        config: The settings; host, port and store are replaced.
        clock: The clock of the service, in milliseconds.
        store_url: The address of the store, by default a SQLite file in ``folder``.
        open_store: The function that opens the store.

    Attributes:
        config: The settings in effect.
        services: The parts of the service, for tests that look inside.
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
        """Run a coroutine on the event loop of the service.

        Args:
            coroutine: The coroutine, such as a call of the store.

        Returns:
            Its result. An exception that it raises is raised here.
        """
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def integrator(self, name: str = "Lab", *, scopes: tuple[str, ...] = ()) -> Integrator:
        """Create a tenant and a client.

        Args:
            name: The name of the tenant.
            scopes: The scopes of the client; empty for the default ones.

        Returns:
            An integrator that has a token.
        """
        tenant = self.call(add_tenant(self.services.store, name, clock=self._clock))
        return self.another_client(tenant, scopes=scopes)

    def another_client(self, tenant: Tenant, *, scopes: tuple[str, ...] = ()) -> Integrator:
        """Create another client of a tenant.

        Args:
            tenant: The tenant.
            scopes: The scopes of the client; empty for the default ones.

        Returns:
            An integrator that has a token.
        """
        client, secret = self.call(
            add_client(
                self.services.store,
                NewClient(
                    tenant=tenant.id,
                    name="test",
                    environment=self.config.auth.environment,
                    scopes=scopes,
                ),
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
    """A client of a tenant that sends requests with its access token.

    Attributes:
        service: The service that it calls.
        tenant: Its tenant.
        client_id: The id of the client.
        client_secret: The secret of the client.
        token: The access token, set by `log_in`.
    """

    service: Service
    tenant: Tenant
    client_id: str
    client_secret: str = field(repr=False)
    token: str = field(default="", repr=False)

    def log_in(self) -> None:
        """Request an access token by client credentials (RFC 6749, section 4.4), and use it.

        Raises:
            RuntimeError: The service gives none; the message has its answer.
        """
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
        if answer.status != HTTPStatus.OK:
            raise RuntimeError(f"no token: {answer.status} {answer.body.decode()}")
        self.token = answer.json["access_token"]

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request with the access token.

        Args:
            method: The HTTP method.
            path: The path with the query, or a URL of the service.
            body: Bytes to send, or JSON values to encode, or None.
            headers: Headers that replace or complement the usual ones, which are Authorization
                and, with a body, the Content-Type ``application/fhir+json``.

        Returns:
            The response.
        """
        raw = body if body is None or isinstance(body, bytes) else dumps(body)
        given = {"Authorization": f"Bearer {self.token}"}
        if raw is not None:
            given["Content-Type"] = "application/fhir+json"
        path = path.removeprefix(self.service.base_url)
        return self.service.request(method, path, raw, {**given, **(headers or {})})

    def get(self, path: str, **headers: str) -> Answer:
        """Send a GET request.

        Args:
            path: The path with the query, or a URL of the service.
            **headers: Headers; an underscore in a name stands for a hyphen.

        Returns:
            The response.
        """
        return self.request("GET", path, headers=_header_names(headers))

    def register(
        self, body: Any, *, type_name: str = "DiagnosticReport", **headers: str
    ) -> Answer:
        """Register a resource by ``$register``.

        Args:
            body: The Parameters, as JSON values or bytes.
            type_name: The FHIR type.
            **headers: Headers; an underscore in a name stands for a hyphen.

        Returns:
            The response.
        """
        path = f"/fhir/r4/{type_name}/$register"
        return self.request("POST", path, body, _header_names(headers))

    def patch(self, path: str, body: Any, **headers: str) -> Answer:
        """Update a resource by PATCH.

        Args:
            path: The path of the resource, or its URL.
            body: The elements to replace, as JSON values or bytes.
            **headers: Headers such as ``If_Match``; an underscore in a name stands for a hyphen.

        Returns:
            The response.
        """
        return self.request("PATCH", path, body, _header_names(headers))


def _header_names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
