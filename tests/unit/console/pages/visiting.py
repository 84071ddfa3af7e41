"""Visits of pages, and a service that has an answer for each path and notes what was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from fhirpub.auth.caller import Caller
from fhirpub.console.internal import Answer
from fhirpub.console.rendering import render
from fhirpub.console.visit import Html, Page, Redirect, Visit
from fhirpub.fhir.strict_json import dumps
from tests.unit.console import test_visit

REFUSAL = {"issue": [{"diagnostics": "no, not so"}]}
"""The body of a refusal."""


class Service:
    """Answers by method and path; what it has no answer for is not found."""

    received = 0

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = dict(answers)
        self.asked: list[tuple[str, Any]] = []

    def _answer(self, name: str) -> Answer:
        found = self.answers.get(name)
        if found is None:
            return Answer(404, {}, dumps(REFUSAL))
        status, body = found if isinstance(found, tuple) else (200, found)
        return Answer(status, {}, dumps(body))

    async def get(
        self, _caller: Caller, path: str, query: Sequence[tuple[str, str]] = ()
    ) -> Answer:
        self.asked.append((path, list(query)))
        return self._answer(path)

    async def ask(
        self, _caller: Caller, method: str, target: str, body: Mapping[str, Any] | None = None
    ) -> Answer:
        self.asked.append((f"{method} {target}", body))
        return self._answer(f"{method} {target}")


def a_visit(
    answers: Any = None,
    *blanks: str,
    form: Any = None,
    services: Any = None,
    **query: str,
) -> Visit:
    """Return the visit of a person of a client."""
    return test_visit.a_visit(
        client=Service(answers or {}),
        blanks=blanks,
        form={name: [text] for name, text in (form or {}).items()},
        query=query,
        console=SimpleNamespace(services=services),
    )


def asked(visit: Visit) -> list[tuple[str, Any]]:
    """Return what the service was asked in a visit, each with its query or body."""
    client: Any = visit.client
    found: list[tuple[str, Any]] = client.asked
    return found


def as_page(result: Any) -> Html:
    """Return a result that is a page."""
    assert isinstance(result, Html)
    return result


def place_of(result: Any) -> str:
    """Return the path to which a result leads."""
    assert isinstance(result, Redirect)
    return result.path


def written(result: Any) -> str:
    """Return the HTML of a page, with what all pages of the session of a person have."""
    page = as_page(result)
    shared = {
        "title": page.title,
        "section": page.section,
        "session": test_visit.a_session(),
        "navigation": [],
        "asset": lambda name: name,
        "path": "/console/here",
        "environment": "sandbox",
        "documentation": "",
    }
    return render(page.template, {**shared, **page.values}).decode()


def in_words(pages: Sequence[Page]) -> list[str]:
    """Return a table of pages in lines: method, path, function and audience."""
    return [f"{one.method} {one.path} {one.run.__name__} {one.audience}" for one in pages]
