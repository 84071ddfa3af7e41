"""Endpoints: their states, their statistics, and what can be done with them."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fhirpub.console.internal import Answer
from fhirpub.console.spark import spark
from fhirpub.console.visit import (
    Html,
    Page,
    PageRefused,
    Redirect,
    Result,
    ServiceRefused,
    Visit,
    address,
)
from fhirpub.storage.webhook_contract import Payload
from fhirpub.webhooks.transport.pull_url import is_pull

BASE = "/webhooks/v1"
SECTION = "endpoints"
_LATEST = "10"
_ACTS: Mapping[str, str] = {"pause": "pause", "enable": "enable"}
_TRIALS: Mapping[str, str] = {"verify": "Challenge", "test": "Test event"}
_ROTATED: Mapping[str, str] = {
    "secret": "signing secret",
    "token": "bearer token",
}


async def show_list(visit: Visit) -> Result:
    """List the endpoints."""
    found = await visit.get(f"{BASE}/endpoints")
    values = {"endpoints": found["endpoints"], "level": level_of}
    return Html(template="endpoints.html", title="Endpoints", section=SECTION, values=values)


async def show_endpoint(visit: Visit) -> Result:
    """Show an endpoint, how it does, and its latest deliveries."""
    endpoint = await read_endpoint(visit)
    path = path_of(endpoint)
    stats = await visit.get(f"{path}/stats")
    latest = await visit.get(f"{path}/deliveries", [("limit", _LATEST)])
    values = {
        "endpoint": endpoint,
        "is_read": is_pull(endpoint["url"]),
        "stats": stats,
        "deliveries": latest["deliveries"],
        "day": spark(stats["by_hour"], title="Attempts of each hour of the last day"),
        "week": spark(stats["by_day"], title="Attempts of each day of the last week"),
        "level": level_of,
    }
    title = endpoint["description"] or endpoint["url"]
    return Html(template="endpoint.html", title=title, section=SECTION, values=values)


async def change_state(visit: Visit) -> Result:
    """Pause an endpoint, or enable it."""
    endpoint = await read_endpoint(visit)
    act = _ACTS.get(visit.blanks[1])
    if act is None:
        raise _nothing()
    await visit.send("POST", f"{path_of(endpoint)}/{act}")
    return Redirect(path=address("endpoints", endpoint["id"]))


async def try_endpoint(visit: Visit) -> Result:
    """Send a challenge or a test event at once, and show what came of it."""
    endpoint = await read_endpoint(visit)
    trial = visit.blanks[1]
    if trial not in _TRIALS:
        raise _nothing()
    came = await visit.send("POST", f"{path_of(endpoint)}/{trial}")
    values = {"endpoint": endpoint, "came": came, "name": _TRIALS[trial]}
    return Html(template="trial.html", title=_TRIALS[trial], section=SECTION, values=values)


async def ask_rotation(visit: Visit) -> Result:
    """Ask before a secret is replaced."""
    endpoint = await read_endpoint(visit)
    kind = _rotated(visit)
    values = {"endpoint": endpoint, "kind": kind, "name": _ROTATED[kind]}
    return Html(template="rotate.html", title="Rotate", section=SECTION, values=values)


async def rotate(visit: Visit) -> Result:
    """Replace a secret, and show the new one this once."""
    endpoint = await read_endpoint(visit)
    kind = _rotated(visit)
    new = await visit.send("POST", f"{path_of(endpoint)}/{kind}:rotate", {})
    return _secrets(new, "Rotated")


async def ask_deletion(visit: Visit) -> Result:
    """Ask before an endpoint is deleted."""
    endpoint = await read_endpoint(visit)
    return Html(
        template="delete_endpoint.html",
        title="Delete an endpoint",
        section=SECTION,
        values={"endpoint": endpoint},
    )


async def delete(visit: Visit) -> Result:
    """Delete an endpoint."""
    endpoint = await read_endpoint(visit)
    await visit.send("DELETE", path_of(endpoint))
    return Redirect(path=address("endpoints"))


async def show_form(visit: Visit) -> Result:
    """Ask for what a new endpoint needs."""
    return await _form(visit, None)


async def add(visit: Visit) -> Result:
    """Add an endpoint, and show its secrets this once."""
    body = {
        "url": visit.field("url"),
        "description": visit.field("description"),
        "event_types": [*visit.form.get("event_types", ())] or ["*"],
        "payload": visit.field("payload"),
    }
    try:
        new = await visit.send("POST", f"{BASE}/endpoints", body)
    except ServiceRefused as refusal:
        return await _form(visit, refusal.answer)
    return _secrets(new, "Added")


async def read_endpoint(visit: Visit) -> Mapping[str, Any]:
    """Return the endpoint that the path names. Raises ServiceRefused."""
    id_ = quote(visit.blanks[0], safe="")
    found: Mapping[str, Any] = await visit.get(f"{BASE}/endpoints/{id_}")
    return found


def path_of(endpoint: Mapping[str, Any]) -> str:
    """Return the path of an endpoint in the interface."""
    return f"{BASE}/endpoints/{endpoint['id']}"


def level_of(state: str) -> str:
    """Return how good a state of an endpoint or of a delivery is, as a class of styles."""
    if state in ("active", "delivered"):
        return "good"
    return "bad" if state in ("disabled", "dead") else "warn" if state != "cancelled" else ""


def _nothing() -> PageRefused:
    return PageRefused("There is nothing at this address.", status=HTTPStatus.NOT_FOUND)


def _rotated(visit: Visit) -> str:
    kind = visit.blanks[1]
    if kind not in _ROTATED:
        raise _nothing()
    return kind


def _secrets(new: Mapping[str, Any], title: str) -> Html:
    values = {"endpoint": new}
    return Html(template="secrets.html", title=title, section=SECTION, values=values)


async def _form(visit: Visit, refusal: Answer | None) -> Html:
    known = await visit.get(f"{BASE}/event-types")
    values = {
        "names": [one["name"] for one in known["event_types"]],
        "payloads": typing.get_args(Payload),
        "form": visit.form,
        "field": visit.field,
        "problems": refusal.problems if refusal else [],
    }
    status = refusal.status if refusal else 200
    return Html(
        template="add_endpoint.html",
        title="Add an endpoint",
        section=SECTION,
        values=values,
        status=status,
    )


_ONE = "/endpoints/{}"

PAGES = (
    Page(method="GET", path="/endpoints", run=show_list, audience="integrator"),
    Page(method="GET", path="/add-endpoint", run=show_form, audience="integrator"),
    Page(method="POST", path="/add-endpoint", run=add, audience="integrator"),
    Page(method="GET", path=_ONE, run=show_endpoint, audience="integrator"),
    Page(method="POST", path=f"{_ONE}/state/{{}}", run=change_state, audience="integrator"),
    Page(method="POST", path=f"{_ONE}/trial/{{}}", run=try_endpoint, audience="integrator"),
    Page(method="GET", path=f"{_ONE}/rotate/{{}}", run=ask_rotation, audience="integrator"),
    Page(method="POST", path=f"{_ONE}/rotate/{{}}", run=rotate, audience="integrator"),
    Page(method="GET", path=f"{_ONE}/delete", run=ask_deletion, audience="integrator"),
    Page(method="POST", path=f"{_ONE}/delete", run=delete, audience="integrator"),
)
