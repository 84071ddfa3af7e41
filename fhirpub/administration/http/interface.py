"""The interface: from a request to an operation, and from its result to a response."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from fhirpub.administration.context import Administration
from fhirpub.administration.execution import execute
from fhirpub.administration.http.callers import Callers
from fhirpub.administration.http.openapi import openapi
from fhirpub.administration.http.responses import (
    JSON,
    Asked,
    Response,
    is_fault,
    refuse,
    refuse_token,
    respond,
    respond_with_list,
)
from fhirpub.administration.operation import Operation
from fhirpub.administration.table import OPERATIONS
from fhirpub.audit.record import Agent
from fhirpub.audit.trail import AuditTrail
from fhirpub.auth.token_request import Message
from fhirpub.config.settings import Config
from fhirpub.errors import (
    FhirpubError,
    InvalidContent,
    Issue,
    NotAuthenticated,
    StoreUnavailable,
    TokenRefused,
)
from fhirpub.fhir.strict_json import loads
from fhirpub.problems import ContentProblem, OperationProblem
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.web.error_mapping import MalformedRequest, MethodNotAllowed, NoSuchAddress
from fhirpub.web.message.content_negotiation import UnsupportedMediaType
from fhirpub.web.message.request import parameters_of

BASE = "/admin/v1"
_DESCRIPTION, _TOKEN = "/openapi.json", "/token"
_LONG_BYTES = 16_384
"""A longer body is read in a thread, beside the requests of others."""
_log = logger()

Open = Callable[[Agent], Administration]
"""Returns what the operations of one request work with."""


class Interface:
    """Responds to requests of administration."""

    def __init__(
        self, config: Config, callers: Callers, open_: Open, *, audit: AuditTrail | None
    ) -> None:
        self._config = config
        self.callers = callers
        self._open = open_
        self._audit = audit
        self._routes: dict[str, tuple[re.Pattern[str], dict[str, Operation]]] = {}
        for operation in OPERATIONS:
            pattern = re.sub(r"\\\{\w+\\\}", "([^/]+)", re.escape(operation.path))
            route = self._routes.setdefault(pattern, (re.compile(pattern), {}))
            route[1][operation.method] = operation

    async def respond(self, asked: Asked) -> Response:
        """Return the response to a request; it never raises."""
        try:
            if asked.path == f"{BASE}{_TOKEN}" and asked.method == "POST":
                return respond(await self.callers.grant(_message(asked)))
            return await self._respond(asked)
        except TokenRefused as problem:
            self._note(problem, asked)
            return refuse_token(problem)
        except Exception as problem:  # noqa: BLE001 - a fault is answered as well
            return self.refuse(problem, asked)

    def refuse(self, problem: Exception, asked: Asked) -> Response:
        """Return the response to a request that ended with an exception."""
        self._note(problem, asked)
        fhir_url = f"{self._config.base_url}/fhir/r4"
        return refuse(problem, fhir_url=fhir_url, request_id=asked.request_id)

    async def _respond(self, asked: Asked) -> Response:
        caller = await self.callers.authenticate(asked.headers.get("authorization", []))
        path = asked.path.removeprefix(BASE)
        if not asked.path.startswith(f"{BASE}/"):
            raise NoSuchAddress(f"administration is below {BASE}; {BASE}{_DESCRIPTION} lists it")
        if path == _DESCRIPTION and asked.method == "GET":
            return respond(openapi(self.callers.audience))
        operation, blanks = self._find(asked.method, path)
        fields, arguments = await _fields(asked), _arguments(operation, blanks, asked)
        _refuse_misplaced(operation, fields, arguments)
        given = {**fields, **arguments}
        agent = Agent(
            environment=self._config.auth.environment,
            user=caller,
            address=asked.address,
            request=asked.request_id,
        )
        result = await self.run(operation, agent, given)
        if isinstance(result, list):
            return await respond_with_list(result, status=operation.status)
        return respond(result, status=operation.status)

    async def run(self, operation: Operation, agent: Agent, given: Mapping[str, Any]) -> Any:
        """Return the result of an operation that a caller asks for. Raises FhirpubError."""
        log = _log.bind(
            operation=operation.name,
            caller=agent.user,
            address=agent.address,
            request_id=agent.request,
        )
        try:
            result = await execute(operation, self._open(agent), given)
        except FhirpubError as problem:
            log.info("not administered", reason=type(problem).__name__)
            raise
        log.info("administered")
        return result

    def _find(self, method: str, path: str) -> tuple[Operation, Sequence[str]]:
        """Return the operation that is meant, with what its path names, decoded."""
        allowed: list[str] = []
        for pattern, methods in self._routes.values():
            match = pattern.fullmatch(path)
            if match is not None and method in methods:
                return methods[method], [*map(_decoded, match.groups())]
            allowed += methods if match is not None else ()
        if allowed:
            said = f"{method} is not possible here: use {', '.join(allowed)}"
            raise MethodNotAllowed(said, allow=", ".join(allowed))
        raise NoSuchAddress(f"there is no such operation; {BASE}{_DESCRIPTION} lists all")

    def _note(self, problem: Exception, asked: Asked) -> None:
        """Log a refusal or a fault, and count requests without a valid caller."""
        if isinstance(problem, (NotAuthenticated, TokenRefused)):
            reason = problem.reason if isinstance(problem, NotAuthenticated) else str(problem)
            _log.info("administration refused", reason=reason, request_id=asked.request_id)
            if self._audit is not None:
                self._audit.count_refusal("unauthenticated", 401, address=asked.address)
        elif isinstance(problem, StoreUnavailable):
            _log.warning("store unavailable", reason=problem.reason, request_id=asked.request_id)
        elif is_fault(problem):
            _log.error("administration failed", **where(problem), request_id=asked.request_id)


def _decoded(text: str) -> str:
    """Return a name of a path, decoded: a guess could be the name of something else."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise MalformedRequest("the path must be UTF-8, percent-encoded") from None


def _message(asked: Asked) -> Message:
    return Message(
        content_type=asked.header("content-type"),
        body=asked.body,
        authorization=asked.headers.get("authorization", []),
        query=asked.query,
    )


def _arguments(operation: Operation, blanks: Sequence[str], asked: Asked) -> dict[str, Any]:
    """Return what the path and the query give to an operation, unchecked.

    Raises InvalidContent, InvalidSearch.
    """
    texts: dict[str, list[str]] = {}
    for name, text in zip(operation.blanks, blanks, strict=True):
        texts[name] = [text]
    for name, text in parameters_of(asked.query):
        if name in operation.blanks:
            raise InvalidContent.because(
                f"{name} is in the path already", details=ContentProblem.BODY_UNEXPECTED
            )
        texts.setdefault(name, []).append(text)
    known = {one.name: one for one in operation.parameters if one.place != "body"}
    return {
        name: known[name].from_texts(several) if name in known else several[-1]
        for name, several in texts.items()
    }


def _refuse_misplaced(
    operation: Operation, fields: Mapping[str, Any], arguments: Mapping[str, Any]
) -> None:
    """Refuse what is in another place than its own: addresses are in the logs of proxies."""
    places = {one.name: one.place for one in operation.parameters}
    misplaced = [name for name in fields if places.get(name, "body") != "body"]
    misplaced += [name for name in arguments if places.get(name) == "body"]
    if misplaced:
        raise InvalidContent(
            Issue.error(OperationProblem.FIELD_UNKNOWN, f"belongs into the {places[name]}", name)
            for name in misplaced
        )


async def _fields(asked: Asked) -> Mapping[str, Any]:
    """Return the body as an object; no body is an empty one. Raises InvalidContent."""
    if not asked.body:
        return {}
    if asked.header("content-type").partition(";")[0].strip().lower() != JSON:
        raise UnsupportedMediaType(f"the body must be {JSON}")
    is_long = len(asked.body) > _LONG_BYTES
    fields = await asyncio.to_thread(loads, asked.body) if is_long else loads(asked.body)
    if not isinstance(fields, dict):
        raise InvalidContent.because(
            "the body must be a JSON object", details=ContentProblem.BODY_UNEXPECTED
        )
    return fields
