"""Orders to erase, and signing keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fhirpub.console.operators.catalogue import PLAN, by_command, form_of
from fhirpub.console.operators.fields import fields_of
from fhirpub.console.operators.listing import page_of
from fhirpub.console.operators.lists import tenant_names
from fhirpub.console.operators.running import ask, run
from fhirpub.console.operators.shown import Shower
from fhirpub.console.visit import Html, Page, Result, Visit, address

_COLUMNS = ("type", "id", "tenant", "ordered", "finished", "operator", "reason", "allows_reuse")
_ACTS = {
    "Show what would be erased": PLAN,
    "Complete interrupted orders": "erase resume",
    "Put on hold": "hold add",
    "List holds": "hold list",
}


async def list_erasures(visit: Visit) -> Result:
    """List orders to erase, and lead to a dry run of the next."""
    answer = await ask(visit, by_command("erase list"))
    found = answer.result or {"orders": (), "following": None}
    listing = await page_of(visit, found["orders"])
    shower = Shower(names=await tenant_names(visit))
    fields = fields_of(answer.operation, answer.texts, answer.problems.of_fields)
    tenant = visit.query.get("tenant", "")
    values = {
        "operation": answer.operation,
        "problems": answer.problems,
        "fields": [one for one in fields if one.name != "after"],
        "table": shower.table(listing.records, columns=_COLUMNS),
        "listing": listing,
        "following": _following(visit.query, found["following"]),
        "acts": [(title, form_of(command, tenant=tenant)) for title, command in _ACTS.items()],
    }
    return Html(
        template="operator_erasures.html",
        title="Erasures",
        section="erasures",
        values=values,
        status=answer.problems.status,
    )


def _following(query: Mapping[str, str], place: Any) -> str:
    kept = {name: text for name, text in query.items() if name != "page"}
    return address("operations", "erasures", **{**kept, "after": place}) if place else ""


async def list_keys(visit: Visit) -> Result:
    """List the signing keys."""
    keys = await run(visit, "keys list")
    values = {
        "table": Shower().table(keys, title="Keys that sign access tokens, oldest first"),
        "acts": [
            ("Create a new signing key", form_of("keys rotate")),
            ("Revoke an access token", form_of("token revoke")),
            ("Encrypt secrets under the first key", form_of("secrets reseal")),
        ],
    }
    return Html(template="operator_keys.html", title="Signing keys", section="keys", values=values)


PAGES = (
    Page(method="GET", path="/operations/erasures", run=list_erasures, audience="operator"),
    Page(method="GET", path="/operations/keys", run=list_keys, audience="operator"),
)
