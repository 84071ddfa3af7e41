"""The page of one tenant, client or endpoint, with what belongs to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fhirpub.administration.quota_usage import Owner, states_of
from fhirpub.auth.clients import is_person
from fhirpub.console.operators.catalogue import form_of
from fhirpub.console.operators.lists import OF_ENDPOINT, health_of, tenant_names
from fhirpub.console.operators.running import run
from fhirpub.console.operators.shown import Fact, Shower, Table
from fhirpub.console.spark import spark
from fhirpub.console.visit import Html, Page, Result, Visit, address
from fhirpub.storage.contract import Client
from fhirpub.webhooks.management.serializers import endpoint_record

Links = Sequence[tuple[str, str]]
"""Texts, each with where it leads."""

_FEW = 20
"""So many clients and endpoints are on the page of a tenant, and deliveries on one's own."""
_CHARTS = {
    "by_hour": "Attempts of each hour of the last day",
    "by_day": "Attempts of each day of the last week",
}
_OF_DELIVERY = ("event", "resource", "status", "created", "attempts")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """What the page of a record shows."""

    kind: str
    name: str
    facts: Sequence[Fact]
    tables: Sequence[Table]
    links: Links
    acts: Links
    more: Sequence[Fact] = ()
    charts: Links = ()

    def html(self) -> Html:
        """Return the page."""
        values = {
            name: getattr(self, name) for name in ("kind", "name", "tables", "links", "acts")
        }
        values |= {"more": self.more, "charts": self.charts, "facts_of": self.facts}
        section = f"{self.kind.lower()}s"
        return Html(
            template="operator_record.html", title=self.name, section=section, values=values
        )


async def show_tenant(visit: Visit) -> Result:
    """Show a tenant with its quotas, clients and endpoints."""
    tenant = await run(visit, "tenant show", tenant=visit.blanks[0])
    id_, store = tenant["id"], visit.console.services.store
    owner = Owner("tenant", id_, tenant["name"])
    return _Record(
        kind="Tenant",
        name=tenant["name"],
        facts=Shower(subject="tenant").facts(tenant),
        tables=[
            await _quotas(visit, owner),
            _clients(await store.clients(tenant=id_)),
            await _endpoints(visit, id_),
        ],
        links=[
            ("Its clients", address("operations", "clients", tenant=id_)),
            ("Its endpoints", address("operations", "endpoints", tenant=id_)),
            ("Its audit trail", address("operations", "audit", id_)),
            ("Its erasures", address("operations", "erasures", tenant=id_)),
            ("Its holds", form_of("hold list", tenant=id_)),
        ],
        acts=_acts_of_tenant(id_, is_disabled=tenant["disabled"]),
    ).html()


def _acts_of_tenant(id_: str, *, is_disabled: bool) -> Links:
    acts = {
        "Rename": "tenant rename",
        "Add a client": "client add",
        "Invite a person": "client add-person",
        "Add an endpoint": "endpoint add",
        "Set quotas": "quota set --tenant",
        **({"Enable": "tenant enable"} if is_disabled else {"Disable": "tenant disable"}),
    }
    return [(title, form_of(command, tenant=id_)) for title, command in acts.items()]


def _clients(clients: Sequence[Client]) -> Table:
    records = [{**_named(one), "client_id": one.id} for one in clients[:_FEW]]
    title = _counted("Clients", len(clients))
    columns = ("name", "client_id", "disabled", "scopes")
    return Shower(subject="client").table(records, title=title, columns=columns)


def _named(client: Client) -> Mapping[str, Any]:
    return {"name": client.name, "disabled": client.disabled, "scopes": client.scopes}


async def _endpoints(visit: Visit, tenant: str) -> Table:
    found = await visit.console.services.store.endpoints(tenant)
    live = [one for one in found if one.state != "deleted"]
    records = [{**endpoint_record(one), **health_of(one.condition)} for one in live[:_FEW]]
    columns = [one for one in OF_ENDPOINT if one != "tenant"]
    title = _counted("Endpoints", len(live))
    return Shower(subject="endpoint").table(records, title=title, columns=columns)


async def _quotas(visit: Visit, owner: Owner) -> Table:
    """Return the limits of a tenant or a client, and what is used of them."""
    services = visit.console.services
    quotas = services.config.quotas
    (state,) = await states_of(services.store, [owner], quotas, now=services.clock())
    records = [
        {"limit": one.limit_name.replace("_", " "), "at_most": one.limit or "no limit"}
        | {"used": "not counted" if one.used is None else one.used}
        for one in state.quotas
    ]
    return Shower().table(records, title="Quotas", columns=("limit", "at_most", "used"))


async def show_client(visit: Visit) -> Result:
    """Show a client with its quotas."""
    client = await run(visit, "client show", client=visit.blanks[0])
    id_ = client["client_id"]
    found = await visit.console.services.store.client(id_)
    shower = Shower(subject="client", names=await tenant_names(visit))
    trail = address("operations", "audit", client["tenant"], agent=id_)
    return _Record(
        kind="Client",
        name=client["name"] or id_,
        facts=shower.facts(client),
        tables=[await _quotas(visit, Owner("client", id_, client["name"]))],
        links=[("What it did", trail)],
        acts=[] if found is None or found.disabled else _acts_of_client(found),
    ).html()


def _acts_of_client(client: Client) -> Links:
    of_person = {"Invite": "client invite", "Remove a passkey": "client remove-passkey"}
    of_machine = {"Create a new secret": "client rotate", "Revoke a token": "token revoke"}
    acts = {
        "Change": "client edit",
        "Set scopes": "client scopes",
        **(of_person if is_person(client) else of_machine),
        "Set quotas": "quota set --client",
        "Disable for good": "client disable",
    }
    return [(title, form_of(command, client=client.id)) for title, command in acts.items()]


async def show_endpoint(visit: Visit) -> Result:
    """Show an endpoint with its statistics and latest deliveries, without what was sent."""
    endpoint = await run(visit, "endpoint show", endpoint=visit.blanks[0])
    id_ = endpoint["id"]
    stats = await run(visit, "endpoint stats", endpoint=id_)
    deliveries = await run(visit, "deliveries list", endpoint=id_, limit=_FEW)
    shower = Shower(subject="endpoint", names=await tenant_names(visit))
    title = f"Deliveries, the latest {_FEW}"
    return _Record(
        kind="Endpoint",
        name=endpoint["description"] or endpoint["url"],
        facts=shower.facts(endpoint),
        more=shower.facts(_without(stats, "state", *_CHARTS)),
        charts=[(title, spark(stats[name], title=title)) for name, title in _CHARTS.items()],
        tables=[Shower().table([*map(_delivery, deliveries)], title=title, columns=_OF_DELIVERY)],
        links=[("More deliveries", form_of("deliveries list", endpoint=id_, limit="200"))],
        acts=[] if endpoint["state"] == "deleted" else _acts_of_endpoint(id_),
    ).html()


def _without(members: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return {name: value for name, value in members.items() if name not in names}


def _delivery(delivery: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a delivery with its event, and each of its attempts, as texts."""
    return {
        **delivery,
        "event": [delivery["event_type"], delivery["event_id"]],
        "attempts": [*map(_attempt, delivery["attempts"])],
    }


def _attempt(attempt: Mapping[str, Any]) -> str:
    """Return what came of an attempt, in one line."""
    came = attempt["why"] or attempt["status"]
    took = f" in {attempt['milliseconds']:,} ms" if "milliseconds" in attempt else ""
    return f"{attempt['number']}: {came}{took}"


def _acts_of_endpoint(id_: str) -> Links:
    acts = {
        "Change": "endpoint set",
        "Send a test event": "endpoint ping",
        "Send a challenge": "endpoint verify-endpoint",
        "Enable": "endpoint enable",
        "Pause": "endpoint pause",
        "Disable": "endpoint disable",
        "Create a new signing secret": "endpoint rotate",
        "Replace the token": "endpoint rotate-token",
        "Replay deliveries": "deliveries replay",
        "Remove": "endpoint rm",
    }
    return [(title, form_of(command, endpoint=id_)) for title, command in acts.items()]


def _counted(title: str, total: int) -> str:
    return f"{title}, the first {_FEW} of {total:,}" if total > _FEW else title


PAGES = (
    Page(method="GET", path="/operations/tenants/{}", run=show_tenant, audience="operator"),
    Page(method="GET", path="/operations/clients/{}", run=show_client, audience="operator"),
    Page(method="GET", path="/operations/endpoints/{}", run=show_endpoint, audience="operator"),
)
