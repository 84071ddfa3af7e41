"""Practitioners that come with other resources, and the values by which they are found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.plugin_api import ResourceType, SearchParameter, practitioner
from fhirpub.storage.criteria import SearchValue, decode
from tests.indexers import indexer

MEMBER = replace(practitioner(referred_by="performer"), repeats=True)


def text(name: str, *paths: str) -> SearchParameter:
    return SearchParameter(name=name, type="string", paths=paths)


def coded(name: str, *paths: str) -> SearchParameter:
    return SearchParameter(name=name, type="token", paths=paths)


def searched(*search: SearchParameter) -> SearchIndexer:
    """Return practitioners that come with other resources, found by these parameters."""
    declared = ResourceType(
        name="Practitioner",
        parts=(),
        create_statuses=frozenset(),
        update_statuses=frozenset(),
        search=search,
    )
    return indexer(declared, member=MEMBER)


def values_of(it: SearchIndexer, **elements: Any) -> set[SearchValue]:
    return set(decode(it.values_of_member({"resourceType": "Practitioner", **elements}, {})))
