"""All that a plugin may import from the service."""

from __future__ import annotations

from fhirpub.errors import Issue
from fhirpub.fhir.elements import items_of
from fhirpub.plugin_api.composition import CompositionEvents
from fhirpub.plugin_api.context import PluginContext, setting
from fhirpub.plugin_api.event import Change, Event
from fhirpub.plugin_api.hookspecs import hookimpl
from fhirpub.plugin_api.identifier import IdentifierRule, ValueForm
from fhirpub.plugin_api.issuers import TokenHolder, TokenIssuer, TokenRejected
from fhirpub.plugin_api.keys import KeyProvider
from fhirpub.plugin_api.operations import (
    Operation,
    OperationParameter,
    OperationRefused,
    OperationRequest,
    OperationResult,
)
from fhirpub.plugin_api.parts import organization, patient, practitioner
from fhirpub.plugin_api.resource_type import (
    Entry,
    Events,
    Part,
    ResourceType,
    RuleContext,
    Rules,
)
from fhirpub.plugin_api.search import SearchParameter, r4_composite, r4_parameter
from fhirpub.plugin_api.sinks import EventRejected, EventSink, SinkEvent
from fhirpub.plugin_api.terminology import CodeSource

__all__ = [
    "Change",
    "CodeSource",
    "CompositionEvents",
    "Entry",
    "Event",
    "EventRejected",
    "EventSink",
    "Events",
    "IdentifierRule",
    "Issue",
    "KeyProvider",
    "Operation",
    "OperationParameter",
    "OperationRefused",
    "OperationRequest",
    "OperationResult",
    "Part",
    "PluginContext",
    "ResourceType",
    "RuleContext",
    "Rules",
    "SearchParameter",
    "SinkEvent",
    "TokenHolder",
    "TokenIssuer",
    "TokenRejected",
    "ValueForm",
    "hookimpl",
    "items_of",
    "organization",
    "patient",
    "practitioner",
    "r4_composite",
    "r4_parameter",
    "setting",
]
