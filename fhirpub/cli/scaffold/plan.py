"""The contents of a new plugin, derived from the element tables of FHIR R4."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fhirpub.cli.scaffold.example import EXAMPLE_PARTS, example_of
from fhirpub.errors import PluginError
from fhirpub.fhir.definitions.element_tables import Element, Tables, json_names
from fhirpub.fhir.strict_json import JsonObject

_PATIENT = ("patient", "subject", "beneficiary", "for", "individual")
_ORGANIZATION = (
    "managingOrganization",
    "serviceProvider",
    "organization",
    "provider",
    "performer",
    "custodian",
    "author",
    "sender",
    "requester",
)
_TIMES = ("dateTime", "instant")
_LEFT_OUT = {
    "id",
    "meta",
    "implicitRules",
    "language",
    "text",
    "contained",
    "identifier",
    "status",
}
_FIRST_IDENTIFIERS = ("masterIdentifier", "accessionIdentifier")
"""Elements whose identifier is the key where there is one, before that in `identifier`."""
_FINISHED = ("completed", "final", "active", "finished", "available")
_IN_ERROR = "entered-in-error"


@dataclass(frozen=True, slots=True)
class Role:
    """An element that refers to a part, and whether the part is required."""

    part: str
    referred_by: str
    required: bool


@dataclass(frozen=True, slots=True)
class Blueprint:
    """The first declaration of a resource type in its new plugin."""

    type: str
    roles: tuple[Role, ...]
    statuses: tuple[str, ...]
    attachments: tuple[str, ...]
    times: tuple[str, ...]
    codings: tuple[str, ...]
    summary: tuple[str, ...]
    identified_by: tuple[str, ...]
    """The elements of the key, unless that is the only identifier."""
    has_list: bool
    """Whether ``identifier`` is a list."""
    body: JsonObject
    """A valid body of ``$register``."""

    @property
    def plugin(self) -> str:
        """The name that enables the plugin."""
        return self.type.lower()

    @property
    def package(self) -> str:
        """The name of the Python package."""
        return f"fhirpub_{self.plugin}"

    @property
    def distribution(self) -> str:
        """The name of the distribution that is installed."""
        return f"fhirpub-{self.plugin}"

    @property
    def constant(self) -> str:
        """The name of the constant that holds the declaration."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.type).upper()

    @property
    def composition(self) -> str:
        """The first part of the names of its events."""
        return self.constant.lower()

    @property
    def create_statuses(self) -> tuple[str, ...]:
        """All statuses except that of a mistake, which no new resource has."""
        return tuple(status for status in self.statuses if status != _IN_ERROR)


def blueprint(type_name: str, tables: Tables) -> Blueprint:
    """Return the blueprint of a plugin for a type.

    Raises PluginError with the reason if the type cannot be registered.
    """
    _check(type_name, tables)
    children = dict(tables.children(type_name))
    names = list(_names(type_name, tables))
    attachments = (*_of_type(names, "Attachment"), *_attachments_below(type_name, tables))
    below = {path.partition(".")[0] for path in attachments}
    statuses = [code for _, code in tables.codes[tables.required_set(children["status"])]]
    shown = [
        name
        for name, element in children.items()
        if element.get("summary") and not ({name, *json_names(name, element)} & below)
    ]
    first = tuple(name for name in _FIRST_IDENTIFIERS if name in children)
    roles = tuple(_roles(children))
    return Blueprint(
        type=type_name,
        roles=roles,
        statuses=tuple(statuses),
        attachments=attachments,
        times=(
            *(time for item in _TIMES for time in _of_type(names, item)),
            *(f"{item}.{end}" for item in _of_type(names, "Period") for end in ("start", "end")),
        ),
        codings=_of_type(names, "CodeableConcept"),
        summary=tuple(item for item in shown if item not in _LEFT_OUT),
        identified_by=(*first, "identifier") if first else (),
        has_list=children["identifier"]["max"] == "*",
        body=_body(type_name, roles, statuses, tables),
    )


def _check(type_name: str, tables: Tables) -> None:
    known = tables.resource_types()
    if type_name not in known:
        listed = {name.lower(): name for name in known}
        near = difflib.get_close_matches(type_name.lower(), listed, n=1, cutoff=0.5)
        hint = f"; did you mean {listed[near[0]]}?" if near else ""
        raise PluginError(f"FHIR R4 has no resource type {type_name}{hint}")
    children = dict(tables.children(type_name))
    if reason := _why_not_registered(children, tables):
        raise PluginError(f"{type_name} cannot be registered: {reason}")


def _why_not_registered(children: Mapping[str, Element], tables: Tables) -> str:
    """Return why no resource of this type can be registered, or an empty text."""
    identifier, status = children.get("identifier"), children.get("status")
    if identifier is None or identifier["types"] != ["Identifier"]:
        return "it has no identifier; declare it by hand, with a function as its key"
    if status is None or status["types"] != ["code"]:
        return "it has no status of type code, which registrations set and updates change"
    if not tables.required_set(status):
        return "the codes of its status are not known"
    return ""


def _names(type_name: str, tables: Tables) -> Iterator[tuple[str, str, Element]]:
    """Yield the elements of a resource in JSON: name, type, row of the table."""
    for name, element in tables.children(type_name):
        types = element["types"] or [""]
        yield from zip(json_names(name, element), types, [element] * len(types), strict=False)


def _of_type(names: list[tuple[str, str, Element]], wanted: str) -> tuple[str, ...]:
    return tuple(name for name, type_name, _element in names if type_name == wanted)


def _attachments_below(type_name: str, tables: Tables) -> Iterator[str]:
    """Yield the attachments in elements that are nested in a resource, one level deep."""
    for name, element in tables.children(type_name):
        if element["types"] == ["BackboneElement"]:
            for inner, nested in tables.children(element["path"]):
                if nested["types"] == ["Attachment"]:
                    yield f"{name}.{inner}"


def _roles(children: dict[str, Element]) -> Iterator[Role]:
    for part, target, names in (
        ("patient", "Patient", _PATIENT),
        ("organization", "Organization", _ORGANIZATION),
    ):
        for name in names:
            element = children.get(name, {})
            if element.get("types") == ["Reference"] and target in element.get("targets", ()):
                yield Role(part, name, required=element["min"] > 0)
                break


def _body(
    type_name: str, roles: tuple[Role, ...], statuses: list[str], tables: Tables
) -> JsonObject:
    one = {"system": f"https://lab.example/{type_name.lower()}", "value": "1001"}
    children = dict(tables.children(type_name))
    resource: JsonObject = {
        "resourceType": type_name,
        "identifier": _value_of(children["identifier"], one),
        "status": next((name for name in _FINISHED if name in statuses), statuses[0]),
    }
    resource = {**resource, **example_of(type_name, tables), **resource}
    for role in roles:
        resource[role.referred_by] = _value_of(children[role.referred_by], _reference_to(role))
    entries = [{"name": item.part, "resource": EXAMPLE_PARTS[item.part]} for item in roles]
    own = {"name": type_name[0].lower() + type_name[1:], "resource": resource}
    return {"resourceType": "Parameters", "parameter": [*entries, own]}


def _reference_to(role: Role) -> JsonObject:
    part = EXAMPLE_PARTS[role.part]
    return {"reference": f"{part['resourceType']}/{part['id']}"}


def _value_of(element: Element, value: JsonObject) -> JsonObject | list[JsonObject]:
    """Return a value as JSON has it in an element: in a list if that can be repeated."""
    return [value] if element["max"] == "*" else value
