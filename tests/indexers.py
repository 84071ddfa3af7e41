"""Resource types as searches see them, without a service."""

from __future__ import annotations

from datetime import UTC

from fhirpub.fhir.schema import own_schemas
from fhirpub.fhir.terminology import Terminology
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.plugin_api import Part, ResourceType

SCHEMAS, TERMINOLOGY = own_schemas(), Terminology.load()


def indexer(declared: ResourceType, *, member: Part | None = None) -> SearchIndexer:
    """Return what takes the values of a type, of members if it comes as this part of others."""
    return SearchIndexer(
        declared,
        schemas=SCHEMAS,
        terminology=TERMINOLOGY,
        fhir_url="https://here.example/fhir/r4",
        zone=UTC,
        member=member,
    )
