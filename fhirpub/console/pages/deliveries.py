"""Deliveries of an endpoint: found, shown with every attempt, and sent again."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from fhirpub.console.pages.endpoints import BASE, SECTION, level_of, path_of, read_endpoint
from fhirpub.console.visit import Html, Page, Redirect, Result, Visit, address, moment_in_utc
from fhirpub.fhir.strict_json import pretty
from fhirpub.webhooks.management.delivery_log import SHOWN_STATES

_PER_PAGE = "50"
_MOST_BODY = 64 * 1024
_MOST_DIGITS = 15
_FILTERS = ("status", "event_type", "resource", "since", "until")


async def show_list(visit: Visit) -> Result:
    """Find deliveries by state, event, resource and time."""
    endpoint = await read_endpoint(visit)
    known = await visit.get(f"{BASE}/event-types")
    found = await visit.get(f"{path_of(endpoint)}/deliveries", _query(visit))
    following = parse_qs(urlsplit(found["next"] or "").query).get("before", [""])[0]
    given = {name: visit.query.get(name, "") for name in _FILTERS}
    values = {
        "endpoint": endpoint,
        "deliveries": found["deliveries"],
        "states": SHOWN_STATES,
        "names": [one["name"] for one in known["event_types"]],
        "query": given,
        "level": level_of,
        "following": address("endpoints", endpoint["id"], "deliveries", **given, before=following)
        if following
        else "",
    }
    return Html(template="deliveries.html", title="Deliveries", section=SECTION, values=values)


async def show_delivery(visit: Visit) -> Result:
    """Show what was sent, and what came back each time."""
    endpoint = await read_endpoint(visit)
    event_id = quote(visit.blanks[1], safe="")
    delivery = await visit.get(f"{path_of(endpoint)}/deliveries/{event_id}")
    values = {
        "endpoint": endpoint,
        "delivery": delivery,
        "body": _in_lines(delivery["body"]),
        "level": level_of,
        "replayed": visit.query.get("replayed", ""),
    }
    title = f"Delivery {delivery['sequence']}"
    return Html(template="delivery.html", title=title, section=SECTION, values=values)


async def replay_one(visit: Visit) -> Result:
    """Send a delivery again."""
    endpoint = await read_endpoint(visit)
    event_id = visit.blanks[1]
    came = await visit.send("POST", f"{path_of(endpoint)}/replay", {"event_ids": [event_id]})
    replayed = str(came["reopened"])
    return Redirect(
        path=address("endpoints", endpoint["id"], "deliveries", event_id, replayed=replayed)
    )


async def ask_replay(visit: Visit) -> Result:
    """Ask which deliveries are to be sent again."""
    endpoint = await read_endpoint(visit)
    values = {"endpoint": endpoint, "came": None, "field": visit.field}
    return Html(template="replay.html", title="Replay", section=SECTION, values=values)


async def replay_range(visit: Visit) -> Result:
    """Send deliveries again, a page of them at a time; a form goes on with those behind it."""
    endpoint = await read_endpoint(visit)
    body: dict[str, Any] = {
        name: text for name in ("since", "until") if (text := moment_in_utc(visit.field(name)))
    }
    body |= {name: _number(text) for name in ("from_seq", "to_seq") if (text := visit.field(name))}
    if status := visit.field("status"):
        body["status"] = status
    came = await visit.send("POST", f"{path_of(endpoint)}/replay", body)
    values = {"endpoint": endpoint, "came": came, "field": visit.field}
    return Html(template="replay.html", title="Replay", section=SECTION, values=values)


def _query(visit: Visit) -> list[tuple[str, str]]:
    given = [
        (name, moment_in_utc(text) if name in ("since", "until") else text)
        for name in (*_FILTERS, "before")
        if (text := visit.query.get(name, "").strip())
    ]
    return [("limit", _PER_PAGE), *given]


def _number(text: str) -> int | str:
    """Return a number; what is none as it is, for the service to refuse it."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else text


def _in_lines(body: Any) -> str:
    text = pretty(body).decode()
    return text if len(text) <= _MOST_BODY else f"{text[:_MOST_BODY]}\n…"


_ALL = "/endpoints/{}/deliveries"

PAGES = (
    Page(method="GET", path=_ALL, run=show_list, audience="integrator"),
    Page(method="GET", path=f"{_ALL}/{{}}", run=show_delivery, audience="integrator"),
    Page(method="POST", path=f"{_ALL}/{{}}/replay", run=replay_one, audience="integrator"),
    Page(method="GET", path="/endpoints/{}/replay", run=ask_replay, audience="integrator"),
    Page(method="POST", path="/endpoints/{}/replay", run=replay_range, audience="integrator"),
)
