"""All that a plugin may import from the service."""

from __future__ import annotations

from fhirpub.errors import Issue
from fhirpub.plugin_api.event import Change, Event
from fhirpub.plugin_api.hookspecs import hookimpl
from fhirpub.plugin_api.parts import organization, patient
from fhirpub.plugin_api.resource_type import (
    Entry,
    Events,
    Part,
    ResourceType,
    RuleContext,
    Rules,
)
from fhirpub.plugin_api.search import SearchParameter

__all__ = [
    "Change",
    "Entry",
    "Event",
    "Events",
    "Issue",
    "Part",
    "ResourceType",
    "RuleContext",
    "Rules",
    "SearchParameter",
    "hookimpl",
    "organization",
    "patient",
]
