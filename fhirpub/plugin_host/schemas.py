"""From resource types to compiled schemas; a plugin that names unknown elements is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from fhirpub.errors import ConfigurationError, PluginError
from fhirpub.fhir.schema import Schemas, own_schemas, schema_problems
from fhirpub.plugin_api import CompositionEvents, Part, ResourceType, SearchParameter
from fhirpub.plugin_api.identifier import EXACTLY_ONE
from fhirpub.suggestion import did_you_mean

_ANY: frozenset[str] = frozenset()
_REFERENCE = frozenset({"Reference"})
_ATTACHMENT = frozenset({"Attachment"})
_TIMES = frozenset({"dateTime", "instant"})
_CONCEPTS = frozenset({"CodeableConcept", "Coding"})
_IDENTIFIER = frozenset({"Identifier"})


def compile_schema(types: Mapping[str, ResourceType], owners: Mapping[str, str]) -> Schemas:
    """Return the schemas of the types, ours and those that they bring.

    ``owners`` are the plugins that add the types, by type name.

    Raises PluginError with everything that is wrong, one problem a line.
    """
    brought = {
        name: schema
        for resource_type in types.values()
        for name, schema in resource_type.schemas.items()
    }
    try:
        schemas = Schemas(brought) if brought else own_schemas()
    except ConfigurationError as problem:
        found = _describe(types, owners, schema_and_element_problems)
        raise PluginError("\n".join(found) or str(problem)) from None
    found = _describe(types, owners, partial(_against, schemas))
    if found:
        raise PluginError("\n".join(found))
    return schemas


def _describe(
    types: Mapping[str, ResourceType],
    owners: Mapping[str, str],
    judge: Callable[[ResourceType], list[str]],
) -> list[str]:
    return [
        f"plugin {owners[name]}: {line}"
        for name, type_name in types.items()
        for line in judge(type_name)
    ]


def schema_and_element_problems(declared: ResourceType) -> list[str]:
    """Return what is wrong with the schemas of a type, or else with the elements it names."""
    found = [
        f"{declared.name}: {problem}"
        for name, document in declared.schemas.items()
        for problem in schema_problems(name, document)
    ]
    if found:
        return found
    return _against(Schemas(declared.schemas) if declared.schemas else own_schemas(), declared)


def _against(schemas: Schemas, declared: ResourceType) -> list[str]:
    names = dict.fromkeys([declared.name, *(part.type for part in declared.parts)])
    unknown = [name for name in names if not schemas.knows(name)]
    found = [
        f"no schema for {name}: the plugin must bring one{_nearest(name, declared.schemas)}"
        for name in unknown
    ]
    if declared.name not in unknown:
        found += _wrong_statuses(schemas, declared)
        for field, path, types in _quote_name(declared):
            found += _wrong_element(schemas, declared.name, field, path, types)
    for part in declared.repeating:
        if part.type not in unknown:
            found += [f"part {part.name}: {said}" for said in _wrong_in_part(schemas, part)]
    return [f"{declared.name}: {name}" for name in found]


def _describe_elements(declared: ResourceType) -> tuple[str, ...]:
    """Return the elements that events carry, as far as a declaration describes them."""
    events = declared.events
    return events.elements if isinstance(events, CompositionEvents) else ()


def _elements_of_key(declared: ResourceType) -> tuple[str, ...]:
    """Return the elements of identifiers that a rule names; schemas need not have the usual."""
    rule = declared.identifier
    return () if rule.elements == EXACTLY_ONE.elements else rule.elements


def _quote_name(declared: ResourceType) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield each element that a declaration names: the field, the path, the types it may have."""
    for part in declared.parts:
        if part.referred_by:
            yield f"part {part.name}: referred_by", part.referred_by, _REFERENCE
    yield from _quote_search(declared.search)
    yield from _quote_attribute(declared)


def _quote_search(
    search: Iterable[SearchParameter],
) -> Iterator[tuple[str, str, frozenset[str]]]:
    for parameter in search:
        types = _REFERENCE if parameter.type == "reference" else _ANY
        yield from (
            (f"search parameter {parameter.name}", path, types) for path in parameter.paths
        )


def _wrong_in_part(schemas: Schemas, part: Part) -> Iterator[str]:
    """Report elements and statuses that a part that repeats names, and its type does not have."""
    named = [
        *(("times", path, _TIMES) for path in part.times),
        *(("codings", path, _CONCEPTS) for path in part.codings),
        *(("acyclic", path, _REFERENCE) for path in part.acyclic),
        *((("patient", part.patient, _REFERENCE),) if part.patient else ()),
        *_quote_search(part.search),
    ]
    for field, path, types in named:
        yield from _wrong_element(schemas, part.type, field, path, types)
    element = schemas.element(part.type, "status")
    if part.statuses and element is None:
        yield f"statuses: {part.type} has no element status"
    elif element:
        yield from _unknown_codes("statuses", part.statuses, element.codes)


def _quote_attribute(declared: ResourceType) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield each element that an attribute of the declaration itself names."""
    for field, names, types in (
        ("updatable", sorted(declared.updatable), _ANY),
        ("attachments", declared.attachments, _ATTACHMENT),
        ("identifier", _elements_of_key(declared), _IDENTIFIER),
        ("times", declared.times, _TIMES),
        ("codings", declared.codings, _CONCEPTS),
        ("summary", declared.summary, _ANY),
        ("events", _describe_elements(declared), _ANY),
    ):
        yield from ((field, name, types) for name in names)


def _wrong_element(
    schemas: Schemas, type_name: str, field: str, path: str, types: frozenset[str]
) -> Iterator[str]:
    known = [
        property_ for property_ in schemas.document(type_name)["properties"] if property_[0] != "_"
    ]
    choices = {f"{stem}[x]" for item in known if (stem := schemas.fhirpath(item)) != item}
    if path in choices:
        return
    element = schemas.element(type_name, path)
    if element is None:
        yield f"{field}: there is no element {path}{_nearest(path, [*known, *choices])}"
    elif types and element.type and element.type not in types:
        yield f"{field}: {path} is of type {element.type}, not {' or '.join(sorted(types))}"


def _wrong_statuses(schemas: Schemas, declared: ResourceType) -> Iterator[str]:
    element = schemas.element(declared.name, "status")
    codes = element.codes if element else frozenset[str]()
    if element is None:
        yield "has no element status, so that it can be neither registered nor updated"
    named = {
        "create_statuses": declared.create_statuses,
        "update_statuses": declared.update_statuses,
        "state_flow": frozenset(declared.state_flow).union(*declared.state_flow.values()),
    }
    for field, statuses in named.items():
        yield from _unknown_codes(field, statuses, codes)


def _unknown_codes(field: str, statuses: frozenset[str], codes: frozenset[str]) -> Iterator[str]:
    for code in sorted(statuses - codes if codes else ()):
        yield f"{field}: there is no status {code}{_nearest(code, codes)}"


def _nearest(word: str, known: Iterable[str]) -> str:
    question = did_you_mean(word, known)
    return question and f"; {question}"
