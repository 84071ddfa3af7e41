"""A resource type as a declaration: what it consists of, not how it is served (ADR 17)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fhirpub.errors import Issue
from fhirpub.fhir.elements import objects_in, places_in, with_identity, with_rules
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.terminology import Terminology
from fhirpub.plugin_api.event import Change, Event
from fhirpub.plugin_api.identifier import EXACTLY_ONE, IdentifierRule
from fhirpub.plugin_api.search import SearchParameter


class Entry:
    """One resource of a submission, with its place in the body. Rules must not change it.

    Attributes:
        resource: The resource as JSON values.
        at: The FHIRPath of the resource in the body.
        is_plain: Whether it is known to be valid, and to have nothing unusual: no extension,
            narrative, contained resource or reference into itself.
    """

    __slots__ = ("_objects", "_places", "_references", "_targets", "at", "is_plain", "resource")

    def __init__(self, resource: JsonObject, at: str) -> None:
        self.resource = resource
        self.at = at
        self.is_plain = False
        self._objects: list[JsonObject] | None = None
        self._references: list[JsonObject] | None = None
        self._targets: list[JsonObject] | None = None
        self._places: dict[int, str] | None = None

    @property
    def rule_targets(self) -> list[JsonObject]:
        """The objects in it that the rules for every type check, found once."""
        if self._targets is None:
            self._targets = with_rules(self._all_objects())
        return self._targets

    @property
    def references(self) -> list[JsonObject]:
        """The objects in it that have a reference, in any order."""
        if self._references is None:
            self._references = [one for one in self.rule_targets if "reference" in one]
        return self._references

    @references.setter
    def references(self, found: list[JsonObject]) -> None:
        self._references = found

    @property
    def identified(self) -> list[JsonObject]:
        """The objects in it that have an id, a system or a canonical."""
        return with_identity(self._all_objects())

    def _all_objects(self) -> list[JsonObject]:
        if self._objects is None:
            self._objects = objects_in(self.resource)
        return self._objects

    def place_of(self, each: JsonObject) -> str:
        """Return the place of an object inside the resource.

        Args:
            each: An object of ``resource``, identified by its identity, not by its value.

        Returns:
            Its FHIRPath below the resource; empty for the resource and for unknown objects.
        """
        if self._places is None:
            self._places = places_in(self.resource)
        return self._places.get(id(each), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleContext:
    """What a rule may use besides the resource.

    Attributes:
        tenant_id: The id of the tenant that sent the request.
        today: The current date in UTC, YYYY-MM-DD.
        terminology: The code systems and value sets that the service has.
        allow_gender_unknown: The setting ``[fhir] allow_gender_unknown``.
        organization_namespaces: The setting ``[fhir] organization_namespaces``.
    """

    tenant_id: str
    today: str
    terminology: Terminology
    allow_gender_unknown: bool = False
    organization_namespaces: tuple[str, ...] = ()


Rules = Callable[[Entry, RuleContext], Iterable[Issue]]
"""Checks one structurally valid resource, and yields issues with their complete FHIRPath.

An ``error`` refuses the request: with the code ``business-rule`` as 422, with any other code as
400 (R-A). ``warning`` and ``information`` are returned in the response.
"""

Events = Callable[[Change], Iterable[Event]]
"""Creates the events of a change, which are stored in the same write (ADR 11)."""


def no_rules(_entry: Entry, _context: RuleContext) -> Iterable[Issue]:
    """Return no issues."""
    return ()


def no_events(_change: Change) -> Iterable[Event]:
    """Return no events."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A resource that is registered together with another (ADR 15).

    A part that ``repeats`` may be sent any number of times. Each becomes a resource with an id,
    versions and a search of its own, in the commit of the other (ADR 24). Only such a part has
    the attributes from ``statuses`` on.

    Attributes:
        name: The name of its entry in the Parameters.
        type: Its FHIR type.
        referred_by: The element of the registered resource that must refer to it. Dots lead into
            nested elements. If the element repeats, one of its references must. Empty, for a part
            that is not required: any element may refer to it, none must. No element must refer to
            a part that repeats.
        required: Whether it must be sent. A part that repeats is never required.
        rules: The rules that it must keep beyond FHIR.
        include_in_events: Whether events include it. An update then reads it from version 1.
        example: A resource that could be sent, for the OpenAPI description.
        repeats: Whether it may be sent any number of times.
        statuses: The statuses with which it can be registered; empty if its type has none.
        times: Elements of type dateTime or instant that are stored as UTC (D-65).
        codings: Elements of type CodeableConcept or Coding whose codes are looked up; unknown ones
            cause a warning (D-41).
        search: Search parameters of its type, besides identifier, status, patient, _id and
            _lastUpdated. If the type is also registered alone, it has those of both.
        patient: The element that refers to the patient of the registration, by which the search
            parameter ``patient`` finds it; empty if there is none.
        acyclic: Elements by whose references no resource may lead back to where it began.
    """

    name: str
    type: str
    referred_by: str
    required: bool = True
    rules: Rules = no_rules
    include_in_events: bool = False
    example: Mapping[str, Any] = field(default_factory=dict)
    repeats: bool = False
    statuses: frozenset[str] = frozenset()
    times: tuple[str, ...] = ()
    codings: tuple[str, ...] = ()
    search: tuple[SearchParameter, ...] = ()
    patient: str = ""
    acyclic: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceType:
    """A type that can be registered, read, updated and searched.

    Element names are those of the FHIR R4 definition; dots lead into nested elements.

    Attributes:
        name: The FHIR type, such as ``DiagnosticReport``.
        parts: The resources that are registered together with it.
        create_statuses: The statuses with which it can be registered.
        update_statuses: The statuses that an update can set.
        state_flow: The statuses that may follow each status, where the operator has it checked
            (D-114).
        updatable: Elements that an update may name; each is replaced as a whole. ``value[x]``
            stands for every form of a choice; one form replaces another.
        attachments: Elements of type Attachment whose data are documents, stored separately
            (ADR 3). Dots lead into nested elements: ``content.attachment``.
        attachments_required: Whether a resource must have at least one of them.
        times: Elements of type dateTime or instant that are stored as UTC (D-65).
        codings: Elements of type CodeableConcept or Coding whose codes are looked up; unknown ones
            cause a warning (D-41).
        summary: Elements in the response to a registration, besides id, meta, identifier and
            status. ``effective[x]`` stands for every form of a choice.
        search: Search parameters, besides identifier, status, patient, _id and _lastUpdated.
        profile: The canonical URL in the CapabilityStatement; empty for the base profile of the
            type.
        rules: The rules that a resource must keep beyond FHIR and the declaration.
        events: The function that creates the events of a change.
        event_types: The names of its events, by which endpoints can subscribe to them; empty for
            ``<type in snake_case>.created`` and ``<type in snake_case>.updated``.
        problems: Codes of its rules for ``Issue.details``, each with a sentence that says what it
            means. They are published with those of the service (``fhirpub.problems``).
        schemas: JSON Schemas by type name, for types that the service has none for.
        example: A resource for the OpenAPI description. Together with the examples of its parts,
            to which it refers, it can be registered.
        identifier: Which identifier is the key of a resource (ADR 41); by default it has exactly
            one, with system and value.
    """

    name: str
    parts: tuple[Part, ...]
    create_statuses: frozenset[str]
    update_statuses: frozenset[str]
    state_flow: Mapping[str, frozenset[str]] = field(default_factory=dict)
    updatable: frozenset[str] = frozenset({"status"})
    attachments: tuple[str, ...] = ()
    attachments_required: bool = False
    times: tuple[str, ...] = ()
    codings: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()
    search: tuple[SearchParameter, ...] = ()
    profile: str = ""
    rules: Rules = no_rules
    events: Events = no_events
    event_types: tuple[str, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)
    identifier: IdentifierRule = EXACTLY_ONE

    @property
    def canonical(self) -> str:
        """The canonical URL of the profile to which resources of this type conform."""
        return self.profile or f"http://hl7.org/fhir/StructureDefinition/{self.name}"

    @property
    def repeating(self) -> tuple[Part, ...]:
        """The parts that repeat (ADR 24)."""
        return tuple(part for part in self.parts if part.repeats)

    @property
    def entry_name(self) -> str:
        """The name of its entry in the Parameters: the type in lowerCamelCase."""
        return self.name[0].lower() + self.name[1:]
