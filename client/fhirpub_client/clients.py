"""The two clients: the same requests, sent by a thread or by an event loop."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from fhirpub_client.credentials import Credentials, Deferred, TokenAuth
from fhirpub_client.documents import Body, Document, check_hash, data_of
from fhirpub_client.errors import Refused, Unanswered
from fhirpub_client.results import Registered, Stored, version_of
from fhirpub_client.retries import is_deferred, pause_after, pauses

_Lost = httpx.TimeoutException | httpx.NetworkError | httpx.RemoteProtocolError
"""What leaves open whether the service got a request."""
_LOST = (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError)
Query = Mapping[str, str | Sequence[str]]

_BASE = "/fhir/r4"
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_JSON = "application/fhir+json"
_TIMEOUT_SECONDS = 60.0


class _Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that is read again each time that it is sent."""

    def __init__(self, body: Body) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        return self._body.pieces()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = self._body.pieces()
        while piece := await asyncio.to_thread(next, pieces, b""):
            yield piece


class _Requests:
    """Builds requests and reads responses; the same for both clients."""

    def __init__(self, base_url: str, *, type_name: str) -> None:
        self.base_url = base_url.rstrip("/")
        self.type_name = type_name

    def register(
        self, parameters: Mapping[str, Any], documents: Sequence[Document], element: str
    ) -> httpx.Request:
        entry = self.type_name[:1].lower() + self.type_name[1:]
        body = Body.of(parameters, documents, entry=entry, element=element)
        url = httpx.URL(f"{self.base_url}{_BASE}/{self.type_name}/$register")
        headers = {
            "Host": url.netloc.decode(),
            "Content-Type": _JSON,
            "Content-Length": str(body.size),
            "Accept": _JSON,
        }
        return httpx.Request("POST", url, headers=headers, stream=_Pieces(body))

    def read(self, address: str) -> httpx.Request:
        return httpx.Request("GET", self.url_of(address), headers={"Accept": _JSON})

    def search(self, query: Query) -> httpx.Request:
        url = f"{self.base_url}{_BASE}/{self.type_name}"
        return httpx.Request("GET", url, params=dict(query), headers={"Accept": _JSON})

    def update(self, address: str, changes: Mapping[str, Any], version: int) -> httpx.Request:
        headers = {
            "Content-Type": "application/merge-patch+json",
            "If-Match": f'W/"{version}"',
            "Accept": _JSON,
        }
        return httpx.Request("PATCH", self.url_of(address), json=dict(changes), headers=headers)

    def download(self, url: str) -> httpx.Request:
        return httpx.Request("GET", self.url_of(url), headers={"Accept": "*/*"})

    def url_of(self, address: str) -> str:
        """Return the URL of an id, of a type with an id, or of a URL of the service.

        Raises ValueError for the URL of another service: it must not get the token.
        """
        of_type = "" if "/" in address else f"{self.type_name}/"
        base = self.base_url if address.startswith("/") else f"{self.base_url}{_BASE}/{of_type}"
        url = httpx.URL(address if _ABSOLUTE.match(address) else base + address)
        # Steps such as .. are taken by httpx, or by what is between: they could lead elsewhere.
        ours = str(httpx.URL(self.base_url)).rstrip("/") + "/"
        if not str(url).startswith(ours) or ".." in re.split(r"[/\\]", url.path):
            raise ValueError(f"{address} is not an address of {self.base_url}")
        return str(url)

    @staticmethod
    def next_of(bundle: Mapping[str, Any]) -> str:
        """Return the address of the next page, empty after the last one."""
        links = (link["url"] for link in bundle.get("link", ()) if link["relation"] == "next")
        return next(links, "")

    @staticmethod
    def resources_in(bundle: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        for entry in bundle.get("entry", ()):
            if "resource" in entry:
                yield entry["resource"]


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for httpx. No redirect is followed: it would get secrets and reports."""
    return {"timeout": _TIMEOUT_SECONDS, **given, "follow_redirects": False}


class _Attempts:
    """Decides whether a request is sent again."""

    def __init__(self) -> None:
        self._pauses = pauses()

    def pause_after(self, outcome: httpx.Response | _Lost) -> float | None:
        """Return for how many seconds to wait, nothing if the outcome is the response.

        Raises Refused, and Unanswered if it was sent often enough.
        """
        if isinstance(outcome, httpx.Response) and not is_deferred(outcome):
            if not outcome.is_success:  # a redirect, too: it could lead to another service
                raise Refused(outcome)
            return None
        pause = next(self._pauses, None)
        if isinstance(outcome, httpx.Response):
            if pause is None:
                raise Unanswered("the service defers every request") from Refused(outcome)
            return pause_after(outcome, pause)
        if pause is None:
            raise Unanswered(f"{type(outcome).__name__}: {outcome}") from outcome
        return pause


class Client:
    """A client for threads.

    Use it as a context manager, for the life of the program: it keeps connections and its token.
    Every method may raise Refused, and Unanswered when no response came after five repetitions;
    a registration can then be sent again at any time.
    """

    def __init__(
        self,
        base_url: str,
        credentials: Credentials,
        *,
        type_name: str = "DiagnosticReport",
        scope: str = "",
        **options: Any,
    ) -> None:
        """Create a client; nothing is sent yet.

        Args:
            base_url: The address of the service, such as `https://fhir.example.org`.
            credentials: What the client proves itself by.
            type_name: The type of the resources that are registered.
            scope: The scopes to ask for; by default those that the operator granted.
            options: For `httpx.Client`, such as `verify`, `proxy` and `timeout` (60 s).
        """
        self._requests = _Requests(base_url, type_name=type_name)
        auth = TokenAuth(credentials, self._requests.base_url, scope=scope)
        self._http = httpx.Client(auth=auth, **_options(options))

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close its connections."""
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def register(
        self,
        parameters: Mapping[str, Any],
        *,
        documents: Sequence[Document] = (),
        element: str = "presentedForm",
    ) -> Registered:
        """Register a report with its patient, organization and results; safe to repeat.

        Args:
            parameters: The Parameters of `$register`.
            documents: Files that are added to the report. They are read while they are sent.
            element: Where documents stand in the report.

        Returns:
            What the service has. Look at `is_different`.
        """
        return Registered.of(self._send(self._requests.register(parameters, documents, element)))

    def read(self, address: str) -> Stored:
        """Return a resource, named by its id, or by its type and id, or by its URL."""
        return Stored.of(self._send(self._requests.read(address)))

    def search(self, query: Query) -> Iterator[Mapping[str, Any]]:
        """Yield the resources that match, page by page."""
        request = self._requests.search(query)
        while True:
            bundle = self._send(request).json()
            yield from self._requests.resources_in(bundle)
            if not (following := self._requests.next_of(bundle)):
                return
            request = self._requests.read(following)

    def update(self, address: str, changes: Mapping[str, Any], *, version: int) -> int:
        """Change fields of a resource that is at a version; return its new version.

        Args:
            address: As for `read`.
            changes: A merge patch (RFC 7396): fields with their new values, None to clear one.
            version: The version that the changes are for.

        Raises:
            Refused: With status 412 another client was first: read again, then decide.
        """
        return version_of(self._send(self._requests.update(address, changes, version)))

    def read_document(self, attachment: Mapping[str, Any]) -> bytes:
        """Return the document of an attachment: its data, or what is at its address.

        Raises:
            ValueError: It has neither, is of another service, or has another hash.
        """
        data = data_of(attachment)
        if data is None:
            data = self._send(self._requests.download(attachment["url"])).content
        return check_hash(attachment, data)

    def _send(self, request: httpx.Request) -> httpx.Response:
        attempts = _Attempts()
        while True:
            outcome = self._try(request)
            pause = attempts.pause_after(outcome)
            if pause is None and isinstance(outcome, httpx.Response):
                return outcome
            time.sleep(pause or 0)

    def _try(self, request: httpx.Request) -> httpx.Response | _Lost:
        try:
            return self._http.send(request)
        except Deferred as deferred:
            return deferred.response
        except _LOST as problem:
            return problem


class AsyncClient:
    """A client for event loops of asyncio, with the methods of `Client` to be awaited."""

    def __init__(
        self,
        base_url: str,
        credentials: Credentials,
        *,
        type_name: str = "DiagnosticReport",
        scope: str = "",
        **options: Any,
    ) -> None:
        """Create a client; see `Client`."""
        self._requests = _Requests(base_url, type_name=type_name)
        auth = TokenAuth(credentials, self._requests.base_url, scope=scope)
        self._http = httpx.AsyncClient(auth=auth, **_options(options))

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close its connections."""
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def register(
        self,
        parameters: Mapping[str, Any],
        *,
        documents: Sequence[Document] = (),
        element: str = "presentedForm",
    ) -> Registered:
        """Register a report; see `Client.register`."""
        request = await asyncio.to_thread(self._requests.register, parameters, documents, element)
        return Registered.of(await self._send(request))

    async def read(self, address: str) -> Stored:
        """Return a resource; see `Client.read`."""
        return Stored.of(await self._send(self._requests.read(address)))

    async def search(self, query: Query) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the resources that match, page by page."""
        request = self._requests.search(query)
        while True:
            bundle = (await self._send(request)).json()
            for resource in self._requests.resources_in(bundle):
                yield resource
            if not (following := self._requests.next_of(bundle)):
                return
            request = self._requests.read(following)

    async def update(self, address: str, changes: Mapping[str, Any], *, version: int) -> int:
        """Change fields of a resource; see `Client.update`."""
        return version_of(await self._send(self._requests.update(address, changes, version)))

    async def read_document(self, attachment: Mapping[str, Any]) -> bytes:
        """Return the document of an attachment; see `Client.read_document`."""
        data = data_of(attachment)
        if data is None:
            data = (await self._send(self._requests.download(attachment["url"]))).content
        return check_hash(attachment, data)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        attempts = _Attempts()
        while True:
            outcome = await self._try(request)
            pause = attempts.pause_after(outcome)
            if pause is None and isinstance(outcome, httpx.Response):
                return outcome
            await asyncio.sleep(pause or 0)

    async def _try(self, request: httpx.Request) -> httpx.Response | _Lost:
        try:
            return await self._http.send(request)
        except Deferred as deferred:
            return deferred.response
        except _LOST as problem:
            return problem
