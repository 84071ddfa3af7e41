"""Searches of a type with a parameter of each kind, read without a service."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

from fhirpub.config.settings import Config, FhirConfig, LimitsConfig
from fhirpub.interactions.context import Context
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.interactions.query_parser import Reading
from fhirpub.interactions.search.sought import Pair, Sought
from fhirpub.interactions.value_parser import ValueParser
from fhirpub.plugin_api import IdentifierRule, ResourceType, SearchParameter, organization, patient
from fhirpub.tenant import Tenant
from tests.indexers import indexer

TENANT = Tenant(id="8f2b6c1e-1111-4222-8333-444455556666", name="Lab", salt=b"s" * 32, created=0)
ID = "34926f96-0f76-4bf8-8d32-a6b9ec2f8936"
OTHER = "0b7e4cf0-1111-4222-8333-444455556666"
NOW = 1_800_000_000_000
SEARCH = (
    SearchParameter(name="code", type="token", paths=("code",)),
    SearchParameter(name="category", type="token", paths=("category",)),
    SearchParameter(name="combo", type="token", paths=("code", "category")),
    SearchParameter(name="date", type="date", paths=("effectiveDateTime", "effectivePeriod")),
    SearchParameter(name="value-quantity", type="quantity", paths=("valueQuantity",)),
    SearchParameter(name="value-string", type="string", paths=("valueString",)),
    SearchParameter(name="value-count", type="number", paths=("valueInteger",)),
    SearchParameter(name="rules", type="uri", paths=("implicitRules",)),
    SearchParameter(name="encounter", type="reference", paths=("encounter",)),
    SearchParameter(name="subject", type="reference", paths=("subject",)),
    SearchParameter(name="code-value", type="composite", components=("code", "value-quantity")),
)
OBSERVATION = ResourceType(
    name="Observation",
    parts=(patient(referred_by="subject"), organization(referred_by="performer")),
    create_statuses=frozenset({"final"}),
    update_statuses=frozenset({"final"}),
    search=SEARCH,
)
SEVERAL_OF = replace(OBSERVATION, identifier=IdentifierRule(most=5))
INDEXER, OF_SEVERAL = indexer(OBSERVATION), indexer(SEVERAL_OF)


def context_of(most: int = LimitsConfig().search_values, page_size: int = 20) -> Context:
    """Return what a search is read with: it needs no store."""
    config = replace(
        Config(), limits=LimitsConfig(search_values=most), fhir=FhirConfig(page_size=page_size)
    )
    found = SimpleNamespace(config=config, clock=lambda: NOW, searched={OBSERVATION.name: INDEXER})
    return cast("Context", found)


def read(
    *parameters: tuple[str, str], searched: SearchIndexer = INDEXER, alone: bool = False
) -> Reading:
    """Return what has been read of some parameters."""
    reading = Reading(searched, TENANT, context_of(), alone=alone)
    for name, value in parameters:
        reading.take(name, value)
    return reading


def problems(reading: Reading) -> list[tuple[str, str]]:
    """Return which parameters break which rules."""
    return [(issue.expression, issue.diagnostics) for issue in reading.issues]


class Parsing:
    """A parser, and what it found to be wrong."""

    def __init__(self, most: int = 1_000) -> None:
        self.wrong: list[tuple[str, str]] = []
        self.values = ValueParser(
            INDEXER,
            TENANT,
            clock=lambda: NOW,
            wrong=lambda name, rule: self.wrong.append((name, rule)),
            max_values=most,
        )

    def sought(self, name: str, value: str) -> list[Sought] | None:
        return self.values.sought(INDEXER.parameters[name], value)

    def pairs(self, value: str) -> list[Pair] | None:
        return self.values.pairs(INDEXER.parameters["code-value"], value)
