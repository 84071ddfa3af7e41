"""What is seen of a request from outside: its line in the log, its metrics, its span."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from http import HTTPStatus
from typing import ClassVar

from fhirpub.auth.caller import Caller
from fhirpub.errors import (
    Issue,
    NotAuthenticated,
    QuotaExceeded,
    SecretsUnavailable,
    StorageQuotaExceeded,
    StoreUnavailable,
    TokenRefused,
)
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import request_lines
from fhirpub.runtime.metrics import NO_ROUTE, method_word
from fhirpub.runtime.request_lines import Fact, Level
from fhirpub.runtime.tracing.context import TraceContext
from fhirpub.runtime.tracing.spans import Span, current_span
from fhirpub.storage.contract import Version
from fhirpub.web.error_mapping import AddressNotPermitted, is_expected
from fhirpub.web.message.request import Request
from fhirpub.web.services import Services

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_OUR_ID = re.compile(r"(?:ep_)?[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
"""The form of ids that the service makes; anything else in a path may be a patient's data."""
_PLACE = re.compile(r"[A-Za-z][A-Za-z0-9]*(\[[0-9]+\])?(\.[A-Za-z][A-Za-z0-9]*(\[[0-9]+\])?)*")
_MAX_NAMED = 10
"""So many codes, and so many places, of a refusal are named."""


class ObservedRequest:
    """Leaves one line in the log and one count in the metrics, however it ends (D-370)."""

    caller: Caller
    route = NO_ROUTE
    """The path of its row in the table of URLs."""
    status = 200
    level: ClassVar[Level] = "info"
    """The level of the line of a request that is not refused."""
    span: Span | None = None
    """Its span, if the service traces."""
    _resource = ""
    _length: int | None = None
    """How many bytes the body of its answer has; None as long as it has no answer."""
    _is_sent = False
    _has_left = False
    _issues: Sequence[Issue] = ()
    _problem: Exception | None = None

    def __init__(self, request: Request, services: Services) -> None:
        self.request = request
        self.services = services

    @cached_property
    def request_id(self) -> str:
        """The id by which this request is known in the log: the client's, or one of ours."""
        asked = self.request.headers.get("X-Request-Id", "")
        return asked if _REQUEST_ID.fullmatch(asked) else next(self.services.request_ids)

    @cached_property
    def trace(self) -> TraceContext | None:
        """The trace that it belongs to: its own span, or what the client sent."""
        if self.span is not None:
            return self.span.context
        return self._sent_trace()

    def _sent_trace(self) -> TraceContext | None:
        headers = self.request.headers
        if "Traceparent" not in headers:
            return None
        return TraceContext.parse(headers.get_list("Traceparent"))

    @property
    def sampled_trace_id(self) -> str:
        """The id of the trace, if it is sent to a collector; empty otherwise."""
        return self.span.context.trace_id if self.span is not None else ""

    def begin_span(self) -> None:
        """Begin its span, below that of the client, if its trace is sent."""
        if self.services.tracer is not None:
            name = f"{method_word(self.request.method)} {self.route}"
            self.span = self.services.tracer.start(name, "server", self._sent_trace())

    def enter_span(self) -> None:
        """Let the steps of the current task be those of this request."""
        if self.span is not None:
            current_span.set(self.span)

    def note_resource(self, version: Version) -> None:
        """Note which resource the response is about."""
        self._resource = f"{version.type}/{version.id}"

    def note_issues(self, issues: Sequence[Issue]) -> None:
        """Note the problem that a refusal names."""
        self._issues = issues

    def note_problem(self, problem: Exception) -> None:
        """Note why the request is refused, or failed."""
        self._problem = problem
        if isinstance(problem, StoreUnavailable):
            self.services.metrics.store_unavailable.inc()
        elif isinstance(problem, QuotaExceeded | StorageQuotaExceeded):
            self.services.metrics.quota_refusals.labels(problem.quota).inc()

    @property
    def acting(self) -> tuple[str, str] | None:
        """The tenant and the client that act, if they are known."""
        caller: Caller | None = getattr(self, "caller", None)
        return (caller.tenant.id, caller.client_id) if caller is not None else None

    @property
    def address(self) -> str:
        """The address of the client."""
        return self.request.client_address(self.services.config.server.trusted_proxies)

    def note_end(self) -> None:
        """Write the line, and end the span; only the first call does."""
        if self._has_left:
            return
        self._has_left = True
        is_refused = self.status >= HTTPStatus.BAD_REQUEST and self._is_sent
        is_fault = self.status >= HTTPStatus.INTERNAL_SERVER_ERROR
        if is_refused or self.services.config.logs.requests or self._problem is not None:
            self._write_line(is_refused=is_refused, is_fault=is_fault)
        if self.span is not None:
            self.span.end(self._attributes(), failed=is_fault)

    def _write_line(self, *, is_refused: bool, is_fault: bool) -> None:
        lines = request_lines()
        if lines is None:
            return
        facts = self._facts()
        why = _why(self._problem, self.address) if self._problem is not None else {}
        kind = self.route
        level: Level = self.level
        if is_refused:
            event, level = "refused", self._level_of_refusal(is_fault=is_fault)
            kind = str(why.get("reason") or why.get("place") or self.status)
            facts |= _named(self._issues)
        elif self._is_sent and self._problem is None:
            event = "answered"
        else:  # the client has left, or a large response could not be read to its end
            event = "cut off"
            level = "error" if self._problem is not None else self.level
        lines.write(level, event, facts | why, kind=kind)

    def _level_of_refusal(self, *, is_fault: bool) -> Level:
        """Return ``warning`` for what passes, such as a store that is away, not ``error``."""
        if not is_fault:
            return "info"
        passes = self._problem is not None and is_expected(self._problem)
        return "warning" if passes else "error"

    def _facts(self) -> dict[str, Fact]:
        facts: dict[str, Fact] = {
            "method": method_word(self.request.method),
            "route": self.route,
        }
        if self._length is not None:
            facts["status"], facts["bytes"] = int(self.status), self._length
        facts["milliseconds"] = round(self.request.milliseconds(), 1)
        facts["request_id"] = self.request_id
        if (acting := self.acting) is not None:
            facts["tenant"], facts["client"] = acting
        if (resource := self._resource or self._resource_in_path()) != "":
            facts["resource"] = resource
        if (trace := self.trace) is not None:
            facts["trace_id"] = trace.trace_id
        return facts

    def _resource_in_path(self) -> str:
        return ""

    def _attributes(self) -> dict[str, str | int]:
        attributes: dict[str, str | int] = {
            "http.request.method": method_word(self.request.method),
            "http.route": self.route,
            "fhirpub.request_id": self.request_id,
        }
        if self._length is not None:
            attributes["http.response.status_code"] = int(self.status)
        if (acting := self.acting) is not None:
            attributes["fhirpub.tenant"], attributes["fhirpub.client"] = acting
        return attributes


def our_name(type_name: str, resource_id: str) -> str:
    """Return the name of a resource that a path names, if its id can be one of ours."""
    return f"{type_name}/{resource_id}" if _OUR_ID.fullmatch(resource_id) else ""


def _named(issues: Sequence[Issue]) -> dict[str, Fact]:
    """Return the codes of a refusal and the elements that it is about, never their values."""
    errors = [one for one in issues if one.severity in ("error", "fatal")]
    codes = dict.fromkeys(str(one.details) for one in errors)
    places = dict.fromkeys(one.expression for one in errors if _PLACE.fullmatch(one.expression))
    facts: dict[str, Fact] = {}
    if codes:
        facts["codes"] = list(codes)[:_MAX_NAMED]
    if places:
        facts["places"] = list(places)[:_MAX_NAMED]
    return facts


def _why(problem: Exception, address: str) -> dict[str, Fact]:
    """Return why a request failed: of a fault its place, never its text."""
    if isinstance(problem, NotAuthenticated | StoreUnavailable | SecretsUnavailable):
        return {"reason": problem.reason}
    if isinstance(problem, AddressNotPermitted):
        reason = f"address not permitted: {problem.client_id}"
        return {"reason": reason, "address": problem.address}
    if isinstance(problem, QuotaExceeded | StorageQuotaExceeded):
        return {"reason": f"quota used up: {problem.quota}"}
    if isinstance(problem, TokenRefused):
        return {"codes": [problem.error], "reason": str(problem), "address": address}
    if is_expected(problem):
        return {}
    return where(problem)
