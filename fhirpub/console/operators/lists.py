"""The lists of tenants, clients and endpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fhirpub.console.operators.catalogue import form_of
from fhirpub.console.operators.listing import page_of
from fhirpub.console.operators.running import run
from fhirpub.console.operators.shown import Shower
from fhirpub.console.visit import Html, Page, Result, Visit
from fhirpub.webhooks.policy.endpoint_health import EndpointHealth

Record = Mapping[str, Any]

OF_ENDPOINT = ("description", "id", "tenant", "url", "state", "why", "breaker", "failures")
_COLUMNS = {
    "tenant": ("name", "id", "disabled", "created"),
    "client": (
        *("name", "client_id", "tenant", "disabled"),
        *("scopes", "last_used", "valid_until"),
    ),
    "endpoint": OF_ENDPOINT,
}


async def list_tenants(visit: Visit) -> Result:
    """List the tenants."""
    found = await run(visit, "tenant list")
    return await _list(visit, "tenant", found, "Add a tenant")


async def list_clients(visit: Visit) -> Result:
    """List the clients, of one tenant if the query names it."""
    found = await run(visit, "client list", tenant=_tenant_in(visit) or None)
    return await _list(visit, "client", found, "Add a client")


async def list_endpoints(visit: Visit) -> Result:
    """List the endpoints, of one tenant if the query names it."""
    found = await run(visit, "endpoint list", tenant=_tenant_in(visit) or None)
    return await _list(visit, "endpoint", found, "Add an endpoint")


async def tenant_names(visit: Visit) -> dict[str, str]:
    """Return the names of all tenants, by id."""
    return {one.id: one.name for one in await visit.console.services.store.tenants()}


def health_of(condition: bytes) -> Record:
    """Return how deliveries to an endpoint go, as its ``condition`` has it."""
    health = EndpointHealth.read(condition)
    return {"breaker": health.breaker.state, "failures": health.streak.failures}


async def _list(visit: Visit, kind: str, found: Sequence[Any], add: str) -> Html:
    listing = await page_of(visit, found)
    records, names = listing.records, await tenant_names(visit)
    if kind == "endpoint":
        records = await _with_health(visit, records)
    tenant = "" if kind == "tenant" else _tenant_in(visit)
    values = {
        "table": Shower(subject=kind, names=names).table(records, columns=_COLUMNS[kind]),
        "listing": listing,
        "acts": [(add, form_of(f"{kind} add", tenant=tenant))],
        "tenant": None if kind == "tenant" else tenant,
    }
    section = f"{kind}s"
    return Html(
        template="operator_list.html", title=section.capitalize(), section=section, values=values
    )


def _tenant_in(visit: Visit) -> str:
    return visit.query.get("tenant", "").strip()


async def _with_health(visit: Visit, records: Sequence[Record]) -> list[Record]:
    """Add to a page of endpoints how deliveries to them go."""
    tenants = {one["tenant"] for one in records}
    endpoints = await visit.console.services.store.all_endpoints(of=tenants)
    conditions = {one.id: one.condition for one in endpoints}
    return [{**one, **health_of(conditions.get(one["id"], b""))} for one in records]


PAGES = (
    Page(method="GET", path="/operations/tenants", run=list_tenants, audience="operator"),
    Page(method="GET", path="/operations/clients", run=list_clients, audience="operator"),
    Page(method="GET", path="/operations/endpoints", run=list_endpoints, audience="operator"),
)
