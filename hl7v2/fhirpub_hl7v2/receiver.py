"""Publishes a message that was received, and returns what to acknowledge."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import structlog

from fhirpub.cli.publish.publisher import NoToken, Publisher
from fhirpub.cli.publish.retries import Unreachable
from fhirpub.cli.publish.summary import code_of
from fhirpub_hl7v2.acknowledgement import Acknowledgement
from fhirpub_hl7v2.delivery import Delivery, deliver
from fhirpub_hl7v2.mapping.reports import Report, reports_of
from fhirpub_hl7v2.message import parse
from fhirpub_hl7v2.problems import (
    Code,
    Problem,
    Unsupported,
    Unusable,
    kept_as_registered,
)
from fhirpub_hl7v2.settings import Settings

log = structlog.get_logger()

_LATER = Acknowledgement(
    "AE",
    "the service cannot be reached; send the message again",
    [Problem("the service cannot be reached; send the message again", code=Code.INTERNAL)],
)
_OUR_FAULT = Acknowledgement(
    "AE",
    "the message could not be processed",
    [Problem("the message could not be processed", code=Code.INTERNAL)],
)


def endless_pauses() -> Iterator[float]:
    """Return the pauses before a request is sent again; a deadline ends them."""
    return chain((0.5, 1.0, 2.0), repeat(4.0))


@dataclass(frozen=True, slots=True)
class Receiver:
    """Publishes messages. ``deadline`` is the time for one message, in seconds."""

    publisher: Publisher
    settings: Settings
    deadline: float

    async def receive(self, raw: bytes) -> Acknowledgement:
        """Publish the reports of a message; positive only when all of them are stored."""
        try:
            reports = await asyncio.to_thread(self._mapped, raw)
        except Unsupported as problem:
            return Acknowledgement("AR", str(problem.problems[0]), problem.problems)
        except Unusable as problem:
            return Acknowledgement("AE", str(problem.problems[0]), problem.problems)
        except Exception as fault:  # noqa: BLE001  # it must not end the connection
            return _fail(fault)
        try:
            async with asyncio.timeout(self.deadline):
                deliveries = [await deliver(self.publisher, report) for report in reports]
        except (NoToken, Unreachable, TimeoutError) as problem:
            log.warning("service unreachable", reason=str(problem) or "no response in time")
            return _LATER
        except Exception as fault:  # noqa: BLE001  # nor must this
            return _fail(fault)
        return _acknowledged(deliveries)

    def _mapped(self, raw: bytes) -> list[Report]:
        return reports_of(parse(raw, self.settings.character_set), self.settings)


def _fail(fault: Exception) -> Acknowledgement:
    """Log a fault of ours; a traceback might show values of the message."""
    log.error("processing failed", kind=type(fault).__name__)
    return _OUR_FAULT


def _acknowledged(deliveries: list[Delivery]) -> Acknowledgement:
    problems = [
        problem
        for number, delivery in enumerate(deliveries, 1)
        if not delivery.is_stored
        for problem in _problems(delivery, number)
    ]
    if problems:
        return Acknowledgement("AE", str(problems[0]), problems)
    warnings = [kept_as_registered(delivery.kept) for delivery in deliveries if delivery.kept]
    return Acknowledgement("AA", warnings=warnings)


def _problems(delivery: Delivery, number: int) -> list[Problem]:
    if delivery.result == "superseded":
        text = "a later state of the report is stored already; this one was not stored"
        return [Problem(text, "OBR", number, 25, Code.DUPLICATE)]
    errors = [each for each in delivery.issues if each.get("severity") in ("error", "fatal")]
    if not errors:
        text = f"the service refused the report: {delivery.reason}"
        return [Problem(text, "OBR", number, code=Code.INTERNAL)]
    return [Problem(_words(issue), "OBR", number, code=Code.INTERNAL) for issue in errors]


def _words(issue: dict[str, Any]) -> str:
    place = ", ".join(issue.get("expression", []))
    return f"{place}: {issue.get('diagnostics', '')} ({code_of(issue)})".removeprefix(": ")
