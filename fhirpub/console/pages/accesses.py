"""Accesses: what the audit trail of the tenant has, and what was done in one request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fhirpub.audit.event import AUDIT_EVENT
from fhirpub.console.visit import Html, Page, PageRefused, Result, Visit, address

_PER_PAGE = "50"
_FILTERS = {
    "request": "entity:identifier",
    "resource": "entity",
    "patient": "patient",
    "client": "agent",
    "act": "subtype",
}
"""The parameter of the search for each field of the form."""


async def show_list(visit: Visit) -> Result:
    """Find accesses."""
    if visit.console.services.audit is None:
        raise PageRefused("The service keeps no audit trail.")
    query = [("_count", _PER_PAGE)]
    for name, parameter in _FILTERS.items():
        if text := visit.query.get(name, "").strip():
            query.append((parameter, text))
    for name, prefix in (("since", "ge"), ("until", "le")):
        if day := visit.query.get(name, "").strip():
            query.append(("date", f"{prefix}{day}"))
    found = await visit.get(f"/fhir/r4/{AUDIT_EVENT}", query)
    rows = [_row(entry["resource"]) for entry in found.get("entry", [])]
    values = {"rows": rows, "query": visit.query, "fields": _FILTERS}
    return Html(template="accesses.html", title="Accesses", section="accesses", values=values)


def _row(event: Mapping[str, Any]) -> dict[str, Any]:
    agents = event.get("agent", [{}])
    entities = [one.get("what", {}) for one in event.get("entity", [])]
    return {
        "at": event.get("recorded", ""),
        "what": ", ".join(one.get("code", "") for one in event.get("subtype", [])[-1:]),
        "who": agents[0].get("who", {}).get("display")
        or agents[0].get("who", {}).get("identifier", {}).get("value", ""),
        "address": agents[0].get("network", {}).get("address", ""),
        "outcome": event.get("outcome", ""),
        "entities": [
            {"name": reference, "path": _path_of(reference)}
            for one in entities
            if (reference := str(one.get("reference", "")))
        ],
    }


def _path_of(reference: str) -> str:
    parts = reference.split("/")
    return address("resources", parts[0], parts[1]) if len(parts) > 1 else ""


PAGES = (Page(method="GET", path="/accesses", run=show_list, audience="integrator"),)
