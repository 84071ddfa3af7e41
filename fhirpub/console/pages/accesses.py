"""Accesses: what the audit trail of the tenant has, and what was done in one request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fhirpub.audit.event import AUDIT_EVENT
from fhirpub.console.pages.searches import common_criteria, next_page
from fhirpub.console.visit import Html, Page, PageRefused, Result, Visit, address

SECTION = "accesses"
_PER_PAGE = "50"
_MOST_NAMES = 5
_UUID_REST = re.compile("(?<=[0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OUTCOMES = {"0": ("done", "good"), "4": ("refused", "bad"), "8": ("failed", "bad")}


@dataclass(frozen=True, slots=True)
class _Filter:
    parameter: str
    label: str
    example: str = ""


@dataclass(frozen=True, slots=True)
class _Name:
    """What was accessed, and the page that shows it, if there is one."""

    full: str
    path: str = ""

    @property
    def short(self) -> str:
        """The name without most of a long id, which would fill the table."""
        return _UUID_REST.sub("…", self.full)


_FILTERS = {
    "request": _Filter("entity:identifier", "Request id"),
    "resource": _Filter("entity", "Resource", "Type/id"),
    "patient": _Filter("patient", "Patient", "id"),
    "client": _Filter("agent", "Client", "id"),
    "act": _Filter("subtype", "Action", "read"),
}


async def show_list(visit: Visit) -> Result:
    """Find accesses."""
    if visit.console.services.audit is None:
        raise PageRefused("The service keeps no audit trail.")
    found = await visit.get(f"/fhir/r4/{AUDIT_EVENT}", _query(visit))
    values = {
        "rows": [_row(entry["resource"]) for entry in found.get("entry", [])],
        "query": visit.query,
        "fields": _FILTERS,
        "following": next_page(visit, found, SECTION),
    }
    return Html(template="accesses.html", title="Accesses", section=SECTION, values=values)


def _query(visit: Visit) -> list[tuple[str, str]]:
    query = [("_count", _PER_PAGE)]
    for name, one in _FILTERS.items():
        if text := visit.query.get(name, "").strip():
            query.append((one.parameter, text))
    return [*query, *common_criteria(visit)]


def _row(event: Mapping[str, Any]) -> dict[str, Any]:
    agent = event.get("agent", [{}])[0]
    who = agent.get("who", {})
    names = list(dict.fromkeys(_names(event)))
    is_begun = "begun" in event.get("outcomeDesc", "")
    outcome = ("begun", "") if is_begun else _OUTCOMES.get(event.get("outcome", ""), ("", ""))
    return {
        "at": event.get("recorded", ""),
        "what": ", ".join(one.get("code", "") for one in event.get("subtype", [])[-1:]),
        "who": _Name(str(who.get("display") or who.get("identifier", {}).get("value", ""))),
        "address": agent.get("network", {}).get("address", ""),
        "outcome": outcome,
        "names": names[:_MOST_NAMES],
        "more": max(0, len(names) - _MOST_NAMES),
        "request": _request_id(event),
    }


def _names(event: Mapping[str, Any]) -> Iterator[_Name]:
    """Yield the names of what was accessed, whichever version it was."""
    for entity in event.get("entity", []):
        name = entity.get("what", {}).get("reference") or entity.get("name", "")
        kind, _, id_ = name.partition("/_history")[0].partition("/")
        if kind == "Endpoint":
            yield _Name(name, address("endpoints", id_))
        elif id_:
            is_read = "reference" in entity["what"] and kind != "Binary"
            yield _Name(f"{kind}/{id_}", address("resources", kind, id_) if is_read else "")


def _request_id(event: Mapping[str, Any]) -> str:
    return next(
        (
            str(entity["what"]["identifier"]["value"])
            for entity in event.get("entity", [])
            if entity.get("type", {}).get("code") == "XrequestId"
        ),
        "",
    )


PAGES = (Page(method="GET", path="/accesses", run=show_list, audience="integrator"),)
