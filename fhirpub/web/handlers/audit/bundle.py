"""The searchset Bundle of AuditEvents; pure, for any thread or process."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.audit.event import AUDIT_EVENT
from fhirpub.audit.parameters import hint_of
from fhirpub.fhir.strict_json import JsonObject, loads_stored
from fhirpub.interactions.checks.search_names import unused_empty, unused_unknown
from fhirpub.interactions.context import Context
from fhirpub.interactions.execute import outcome_entry
from fhirpub.interactions.summary import is_subset, subset


def make_bundle(
    context: Context,
    *,
    bodies: Sequence[bytes],
    links: Sequence[tuple[str, str]],
    search: tuple[str, str],
    unused: tuple[Sequence[str], Sequence[str]],
) -> JsonObject:
    """Return a Bundle of events.

    Args:
        context: What every interaction works with.
        bodies: The events as JSON.
        links: The relation and the URL of each link.
        search: The values of ``_summary`` and ``_elements``.
        unused: The names of parameters that are unknown, and of those without a value.
    """
    schema = context.schemas.document(AUDIT_EVENT)
    summary, elements = search
    entries: list[JsonObject] = []
    for body in bodies:
        event = loads_stored(body)
        if is_subset(summary, elements):
            event = subset(event, schema, summary=summary, elements=elements)
        url = f"{context.fhir_url}/{AUDIT_EVENT}/{event['id']}"
        entries.append({"fullUrl": url, "resource": event, "search": {"mode": "match"}})
    unknown, empty = unused
    if issues := [*unused_unknown(unknown, hint_of), *unused_empty(empty)]:
        entries.append(outcome_entry(issues, context))
    bundle: JsonObject = {
        "resourceType": "Bundle",
        "type": "searchset",
        "link": [{"relation": relation, "url": url} for relation, url in links],
    }
    return {**bundle, "entry": entries} if entries else bundle
