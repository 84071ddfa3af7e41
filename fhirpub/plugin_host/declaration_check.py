"""Finds what is wrong with the declaration of a resource type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fhirpub.plugin_api import Part, ResourceType, SearchParameter
from fhirpub.plugin_api.event import EVENT_TYPE
from fhirpub.plugin_api.search import SEARCH_TYPES
from fhirpub.plugin_host.functions import matches, wrong_function
from fhirpub.plugin_host.identifier_check import ELEMENT_PATH, identifier_problems_of
from fhirpub.problems import ALL

_TYPE = re.compile(r"[A-Z][A-Za-z]*")
_PARAMETER = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_ELEMENT_OR_CHOICE = re.compile(r"[a-z][A-Za-z0-9]*(\[x\])?")
_CODE = re.compile(r"[^\s]+( [^\s]+)*")
_PROBLEM = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_NEVER_UPDATED = frozenset({"resourceType", "id", "meta", "identifier"})
_SEARCHED_ANYWAY = frozenset({"identifier", "status", "patient"})
_RESERVED_NAMES = frozenset({"issues"})


def problems_of(declared: ResourceType) -> list[str]:
    """Return what is malformed in a declaration, or else what contradicts itself."""
    return _malformed(declared) or _contradictions(declared)


_SHAPES: Mapping[str, tuple[type[Any], re.Pattern[str]]] = {
    "create_statuses": (frozenset, _CODE),
    "update_statuses": (frozenset, _CODE),
    "updatable": (frozenset, _ELEMENT_OR_CHOICE),
    "attachments": (tuple, ELEMENT_PATH),
    "times": (tuple, ELEMENT_PATH),
    "codings": (tuple, ELEMENT_PATH),
    "summary": (tuple, _ELEMENT_OR_CHOICE),
    "event_types": (tuple, EVENT_TYPE),
}


def _malformed(declared: ResourceType) -> list[str]:
    """Return what is not even well formed, such as ("x") where ("x",) was meant."""
    found = [] if matches(_TYPE, declared.name) else ["the name must be that of a FHIR type"]
    for field, (kind, shape) in _SHAPES.items():
        value = getattr(declared, field)
        if isinstance(value, kind):
            strange = [item for item in value if not matches(shape, item)]
            found += [f"{field} holds {item!r}, which cannot be a name" for item in strange]
        else:
            found.append(f"{field} must be a {kind.__name__}, not {type(value).__name__}")
    return [
        *found,
        *_malformed_others(declared),
        *_malformed_parts(declared.parts),
        *identifier_problems_of(declared.identifier),
    ]


_GIVEN = {"rules": ("Entry", "RuleContext"), "events": ("Change",)}
"""What the functions of a declaration are called with."""


def _malformed_others(declared: Any) -> Iterator[str]:
    for field, given in _GIVEN.items():
        yield from wrong_function(field, getattr(declared, field), given)
    yield from _malformed_search(declared)
    flow, schemas = declared.state_flow, declared.schemas
    if not isinstance(flow, Mapping) or not all(isinstance(e, frozenset) for e in flow.values()):
        yield "state_flow must be a dict of a frozenset for each status"
    if not isinstance(schemas, Mapping):
        yield f"schemas must be a dict by type name, not {type(schemas).__name__}"
    elif not all(matches(_TYPE, schema) for schema in schemas):
        yield "schemas must have the names of FHIR types as keys"
    yield from _malformed_problems(declared.problems)
    if not isinstance(declared.profile, str):
        yield "profile must be a string"


def _malformed_problems(problems: Any) -> Iterator[str]:
    if not isinstance(problems, Mapping):
        yield f"problems must be a dict by code, not {type(problems).__name__}"
        return
    for code, meaning in problems.items():
        if not matches(_PROBLEM, code) or not isinstance(meaning, str) or not meaning.strip():
            yield f"problems holds {code!r}: it needs a code in lower case and a sentence"
        elif code in ALL:
            yield f"problems holds {code!r}, which is a code of the service"


def _malformed_parts(parts: Any) -> Iterator[str]:
    if not isinstance(parts, tuple) or not all(isinstance(item, Part) for item in parts):
        yield "parts must be a tuple of Part"
        return
    for part in parts:
        for field in ("name", "type", "referred_by"):
            if not isinstance(getattr(part, field), str):
                yield f"part {part.name}: {field} must be a string"
        found = [*wrong_function("rules", part.rules, _GIVEN["rules"]), *_malformed_member(part)]
        yield from (f"part {part.name}: {said}" for said in found)


_MEMBER_SHAPES: Mapping[str, tuple[type[Any], re.Pattern[str]]] = {
    "statuses": (frozenset, _CODE),
    "times": (tuple, ELEMENT_PATH),
    "codings": (tuple, ELEMENT_PATH),
    "acyclic": (tuple, ELEMENT_PATH),
}


def _malformed_member(part: Part) -> Iterator[str]:
    """Report malformed attributes of a part that repeats, and those that no other part has."""
    for field, (kind, shape) in _MEMBER_SHAPES.items():
        value = getattr(part, field)
        if not isinstance(value, kind):
            yield f"{field} must be a {kind.__name__}, not {type(value).__name__}"
            continue
        strange = [item for item in value if not matches(shape, item)]
        yield from (f"{field} holds {item!r}, which cannot be a name" for item in strange)
    yield from _malformed_search(part)
    if part.patient and not matches(ELEMENT_PATH, part.patient):
        yield f"patient: {part.patient!r} is not the name of an element"
    yield from _misplaced_attributes(part)


def _misplaced_attributes(part: Part) -> Iterator[str]:
    """Report attributes that a part does not have because it repeats, or because it does not."""
    only = [field for field in (*_MEMBER_SHAPES, "search", "patient") if getattr(part, field)]
    if not part.repeats and only:
        yield f"{', '.join(only)}: only a part with repeats=True has this"
    if part.repeats and part.required:
        yield "a part that repeats cannot be required: set required=False"
    if part.repeats and part.include_in_events:
        yield "a part that repeats cannot be included in events"


def _malformed_search(declared: ResourceType | Part) -> list[str]:
    search: Any = declared.search
    if not isinstance(search, tuple) or not all(isinstance(e, SearchParameter) for e in search):
        return ["search must be a tuple of SearchParameter"]
    found = []
    for parameter in declared.search:
        said = f"search parameter {parameter.name!r}"
        if not matches(_PARAMETER, parameter.name):
            found.append(f"{said}: the name must be that of a search parameter of FHIR")
        if parameter.type not in SEARCH_TYPES:
            found.append(f"{said}: the type must be one of {', '.join(SEARCH_TYPES)}")
        found += [f"{said}: {problem}" for problem in _malformed_elements(parameter)]
    return found


def _malformed_elements(parameter: SearchParameter) -> Iterator[str]:
    paths: Any = parameter.paths
    components: Any = parameter.components
    if not isinstance(components, tuple) or len(components) not in (0, 2):
        yield "components must be a tuple of the names of two other parameters"
    elif (parameter.type == "composite") != bool(components):
        yield "a composite has components, and no other type has"
    if parameter.type == "composite":
        if paths != ():
            yield "a composite has no paths: those of its components are compared"
    elif not isinstance(paths, tuple) or not paths:
        yield "paths must be a tuple of element paths, at least one"
    else:
        strange = [one for one in paths if not matches(ELEMENT_PATH, one)]
        yield from (f"{one!r} cannot be the path of an element" for one in strange)


def _search_problems(declared: ResourceType | Part) -> list[str]:
    found = []
    types: dict[tuple[str, ...], str] = {}
    names = [parameter.name for parameter in declared.search]
    for parameter in declared.search:
        if parameter.name in _SEARCHED_ANYWAY:
            found.append(
                f"search parameter {parameter.name}: every type has it, do not declare it"
            )
        elif parameter.type == "composite":
            said = f"search parameter {parameter.name}"
            found += [f"{said}: {problem}" for problem in _component_problems(parameter, declared)]
        elif types.setdefault(parameter.paths, parameter.type) != parameter.type:
            found.append(f"search parameter {parameter.name}: the same elements have another type")
    twice = sorted({name for name in names if names.count(name) > 1})
    return [*found, *(f"search parameter {name} is declared twice" for name in twice)]


def _component_problems(
    composite: SearchParameter, declared: ResourceType | Part
) -> Iterator[str]:
    """Report components that are not declared, cannot be compared, or never stand together."""
    known = {parameter.name: parameter for parameter in declared.search}
    unknown = [name for name in composite.components if name not in known]
    if unknown:
        yield f"its component {unknown[0]} is not among the parameters that are declared"
        return
    first, second = (known[name] for name in composite.components)
    if first.type != "token" or second.type in ("reference", "composite"):
        yield "its components must be a token, and one that is no reference and no composite"
    holders = [{path.rpartition(".")[0] for path in one.paths} for one in (first, second)]
    if not holders[0] & holders[1]:
        yield "its components have no elements in the same element"


def _contradictions(declared: ResourceType) -> list[str]:
    """Return the contradictions within the declaration."""
    found = []
    if not declared.create_statuses:
        found.append("create_statuses is empty, so nothing could ever be registered")
    if ("status" in declared.updatable) != bool(declared.update_statuses):
        found.append("status is updatable if, and only if, update_statuses names some")
    heads = [
        *(part.referred_by for part in declared.parts if not part.repeats),
        *declared.identifier.elements,
    ]
    fixed = _NEVER_UPDATED | {path.partition(".")[0] for path in heads}
    found += [f"{name} can never be updatable" for name in sorted(declared.updatable & fixed)]
    if declared.attachments_required and not declared.attachments:
        found.append("attachments_required is set, but there are no attachments")
    twice = sorted({path.partition(".")[0] for path in declared.attachments} & {*declared.summary})
    found += [f"{name} is an attachment and cannot be in the summary" for name in twice]
    found += [
        f"attachments: {one} stands below {other}"
        for one in declared.attachments
        for other in declared.attachments
        if one.startswith(f"{other}.")
    ]
    return [*found, *_part_problems(declared), *_search_problems(declared)]


def _part_problems(declared: ResourceType) -> list[str]:
    found = []
    seen = {declared.entry_name, *_RESERVED_NAMES}
    for part in declared.parts:
        if part.name in seen:
            found.append(f"part {part.name}: the name is taken, choose another")
        seen.add(part.name)
        if not matches(_TYPE, part.type):
            found.append(f"part {part.name}: {part.type!r} is not the name of a FHIR type")
        if part.repeats:
            found += [f"part {part.name}: {said}" for said in _search_problems(part)]
        if not matches(ELEMENT_PATH, part.referred_by) and (part.required or part.referred_by):
            found.append(f"part {part.name}: {part.referred_by!r} is not the name of an element")
    return found
