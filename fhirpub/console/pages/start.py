"""The first page after signing in, and help."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from fhirpub.console.navigation import navigation
from fhirpub.console.operators.overview import show_overview
from fhirpub.console.pages.endpoints import BASE, level_of
from fhirpub.console.summaries import summary_of
from fhirpub.console.visit import Html, Page, Result, ServiceRefused, Visit
from fhirpub.webhooks.transport.pull_url import is_pull

_MOST = 5
_URGENCY = ("disabled", "unverified", "paused")
_LATEST = (
    ("_count", str(_MOST)),
    ("_sort", "-_lastUpdated"),
    # The page is seen by more people than want to know whose the latest reports are.
    ("_elements", "identifier,status,code"),
)
T = TypeVar("T")


async def show_start(visit: Visit) -> Result:
    """Show what needs attention and what is new; to an operator, how the service does."""
    if visit.signed_in.person.is_operator:
        return await show_overview(visit)
    sections = [one.section for one in navigation(visit.console, visit.session)]
    served = visit.console.services.types
    type_name = next((name for name in sections if name in served), "")
    problems: list[str] = []
    values = {
        "tenant": visit.caller.tenant.name,
        "has_pages": len(sections) > 1,
        "type_name": type_name,
        "latest": await _unless_refused(_latest(visit, type_name), problems) if type_name else (),
        "endpoints": await _unless_refused(_endpoints(visit), problems)
        if "endpoints" in sections
        else None,
        "most": _MOST,
        "level": level_of,
        "problems": problems,
    }
    return Html(template="start.html", title="Start", section="start", values=values)


async def _unless_refused(reading: Awaitable[T], problems: list[str]) -> T | None:
    """Return what is read; the page has its other parts if that is refused, as by a quota."""
    try:
        return await reading
    except ServiceRefused as refusal:
        problems += refusal.answer.problems
        return None


async def _latest(visit: Visit, type_name: str) -> Sequence[Any]:
    found = await visit.get(f"/fhir/r4/{type_name}", _LATEST)
    return [summary_of(entry["resource"]) for entry in found.get("entry", ())]


async def _endpoints(visit: Visit) -> Sequence[Mapping[str, Any]]:
    """Return the endpoints, those first that need attention."""
    found = await visit.get(f"{BASE}/endpoints")
    return sorted(found["endpoints"], key=_place)


def _place(endpoint: Mapping[str, Any]) -> int:
    state = endpoint["state"]
    is_well = state not in _URGENCY or is_pull(endpoint["url"])
    return len(_URGENCY) if is_well else _URGENCY.index(state)


async def show_help(visit: Visit) -> Result:
    """Show what the console is for."""
    config = visit.console.config.console
    values = {"idle_minutes": config.idle_minutes, "session_hours": config.session_hours}
    return Html(template="help.html", title="Help", values=values)


PAGES = (
    Page(method="GET", path="/", run=show_start, audience="signed-in"),
    Page(method="GET", path="/help", run=show_help, audience="anyone"),
)
