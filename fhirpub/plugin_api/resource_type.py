"""A resource type as a declaration: what it is made of, not how it is served (ADR 17)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fhirpub.errors import Issue
from fhirpub.fhir.elements import objects_with_rules, places_in
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.terminology import Terminology
from fhirpub.plugin_api.event import Change, Event
from fhirpub.plugin_api.search import SearchParameter


class Entry:
    """One resource of a submission, and where it stood in the body, as FHIRPath.

    Rules look; only the service changes it.
    """

    __slots__ = ("_places", "_rule_targets", "at", "resource")

    def __init__(self, resource: JsonObject, at: str) -> None:
        self.resource = resource
        self.at = at
        self._rule_targets: list[JsonObject] | None = None
        self._places: dict[int, str] | None = None

    @property
    def rule_targets(self) -> list[JsonObject]:
        """The objects that the rules for every type look at, found once."""
        if self._rule_targets is None:
            self._rule_targets = objects_with_rules(self.resource)
        return self._rule_targets

    def place_of(self, each: JsonObject) -> str:
        """Return the FHIRPath of one of its objects, below the resource."""
        if self._places is None:
            self._places = places_in(self.resource)
        return self._places.get(id(each), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleContext:
    """What a rule may look at beside the resource."""

    tenant_id: str
    today: str
    """The current date, YYYY-MM-DD, UTC."""
    terminology: Terminology
    allow_gender_unknown: bool = False
    organization_namespaces: tuple[str, ...] = ()


Rules = Callable[[Entry, RuleContext], Iterable[Issue]]
"""Looks at one structurally valid resource; yields issues, each with its whole place.

An ``error`` refuses the request: with code ``business-rule`` as 422, with any other as 400
(R-A). ``warning`` and ``information`` travel with the answer.
"""

Events = Callable[[Change], Iterable[Event]]


def no_rules(_entry: Entry, _context: RuleContext) -> Iterable[Issue]:
    """Have no rules beyond the declaration."""
    return ()


def no_events(_change: Change) -> Iterable[Event]:
    """Return no events."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A resource that comes with the registered one and is referred to by it (ADR 15).

    ``name`` is that of its entry in the Parameters. ``referred_by`` is the element of the
    registered resource that must point at it, dots go deeper; when it repeats, one of its
    references must. Empty, for a part that is not required: any may, none must.
    """

    name: str
    type: str
    referred_by: str
    required: bool = True
    rules: Rules = no_rules
    include_in_events: bool = False
    """Whether events include this part: an update then looks it up in version 1."""
    example: Mapping[str, Any] = field(default_factory=dict)
    """Such a resource, as it could come along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceType:
    """A type that can be registered, read, updated and searched.

    Element names are those of the FHIR R4 definition. The identifier rule (exactly one, with
    system and value) is the same for all types and needs no declaration.
    """

    name: str
    """The FHIR type, such as ``DiagnosticReport``."""
    parts: tuple[Part, ...]
    create_statuses: frozenset[str]
    update_statuses: frozenset[str]
    state_flow: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The statuses that may follow each, where an operator wants that checked (D-114)."""
    updatable: frozenset[str] = frozenset({"status"})
    """Elements that an update may name; each is replaced whole.

    ``value[x]`` stands for every form of a choice; one form replaces another.
    """
    attachments: tuple[str, ...] = ()
    """Elements of type Attachment (0..*) whose data are documents, kept apart (ADR 3)."""
    attachments_required: bool = False
    times: tuple[str, ...] = ()
    """Elements of type dateTime or instant that are stored as UTC (D-65); dots go deeper."""
    codings: tuple[str, ...] = ()
    """CodeableConcept and Coding elements whose codes are looked up for warnings (D-41)."""
    summary: tuple[str, ...] = ()
    """Elements in the answer to a registration, beside id, meta, identifier and status.

    ``effective[x]`` stands for every form of a choice.
    """
    search: tuple[SearchParameter, ...] = ()
    """What it can be searched by beside identifier, status, patient, _id and _lastUpdated."""
    profile: str = ""
    """Canonical in the CapabilityStatement; empty: the base profile of the type."""
    rules: Rules = no_rules
    events: Events = no_events
    event_types: tuple[str, ...] = ()
    """The names of its events; empty: those of ``<type in snake_case>.created`` and ``.updated``.

    Endpoints can ask for them by name.
    """
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """JSON Schemas by type name that the service does not ship."""
    example: Mapping[str, Any] = field(default_factory=dict)
    """Such a resource, for the description of the interface.

    With the examples of its parts, to which it refers, it can be registered.
    """

    @property
    def canonical(self) -> str:
        """The profile that resources of this type are held to."""
        return self.profile or f"http://hl7.org/fhir/StructureDefinition/{self.name}"

    @property
    def entry_name(self) -> str:
        """The name of its entry in the Parameters: the type in lowerCamelCase."""
        return self.name[0].lower() + self.name[1:]
