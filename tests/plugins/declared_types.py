"""Types with other keys and documents than those of the shelf, as a plugin for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fhirpub.fhir.definitions.schema_generator import resource
from fhirpub.plugin_api import (
    CompositionEvents,
    IdentifierRule,
    ResourceType,
    hookimpl,
    patient,
    r4_parameter,
)
from tests.element_tables import tables

_TABLES = tables()
URIS = "urn:ietf:rfc:3986"


def url_of(resource: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the canonical URL without its fragment as a key."""
    url = resource.get("url")
    return (URIS, url.partition("#")[0]) if url else None


COMPOSITION = ResourceType(
    name="Composition",
    parts=(patient(referred_by="subject"),),
    create_statuses=frozenset({"preliminary", "final"}),
    update_statuses=frozenset({"final", "amended", "entered-in-error"}),
    times=("date",),
    events=CompositionEvents("composition"),
    schemas={"Composition": resource("Composition", _TABLES)},
)
GRAPH_DEFINITION = ResourceType(
    name="GraphDefinition",
    parts=(),
    create_statuses=frozenset({"draft", "active"}),
    update_statuses=frozenset({"active", "retired"}),
    updatable=frozenset("status description contact useContext purpose".split()),
    identifier=IdentifierRule(elements=(), key=url_of),
    events=CompositionEvents("graph_definition"),
    schemas={"GraphDefinition": resource("GraphDefinition", _TABLES)},
)
MEDIA = ResourceType(
    name="Media",
    parts=(patient(referred_by="subject"),),
    create_statuses=frozenset({"completed"}),
    update_statuses=frozenset({"completed", "entered-in-error"}),
    updatable=frozenset({"status", "content"}),
    attachments=("content",),
    times=("createdDateTime", "content.creation"),
    search=(r4_parameter("Media-subject", "reference", "subject"),),
    schemas={"Media": resource("Media", _TABLES)},
)


@hookimpl
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Add the types."""
    return [COMPOSITION, GRAPH_DEFINITION, MEDIA]
