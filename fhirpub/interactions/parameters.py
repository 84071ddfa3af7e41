"""What a resource type is searched by, and the values for it, taken when a version is made."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from fhirpub.errors import ConfigurationError, TooLarge
from fhirpub.fhir.date_value import TimeRange, parse_range
from fhirpub.fhir.schema import Schemas
from fhirpub.fhir.strict_json import JsonObject, dumps
from fhirpub.fhir.terminology import Terminology
from fhirpub.fhir.times import zone_of
from fhirpub.plugin_api import ResourceType, SearchParameter, r4_parameter
from fhirpub.problems import ContentProblem
from fhirpub.storage.criteria import (
    EARLIEST,
    IDENTIFIER,
    LATEST,
    SearchValue,
    TokenMatch,
    decode,
    encode,
)
from fhirpub.tenant import Tenant, is_resource_id

_FORM = 3
"""Changes when values are taken otherwise than before."""
MAX_SEARCH_VALUES = 2_000
"""The maximum number of search values of a resource. Each is a row of an index: so many take the
writer of SQLite up to 20 ms, in which no other tenant can write. A real report has below 300."""
MAX_SEARCH_BYTES = 262_144
"""The maximum number of bytes that they take as JSON: long ones take the writer time as well."""
_PATIENT = "Patient"
_HISTORY = "/_history/"
_VALUE_SETS = "http://hl7.org/fhir/ValueSet"
_ELEMENTS = {
    "token": frozenset({"CodeableConcept", "Coding", "Identifier", "code", "boolean"}),
    "date": frozenset({"date", "dateTime", "instant", "Period", "Timing"}),
    "reference": frozenset({"Reference"}),
}

_NOTHING: JsonObject = {}

Take = Callable[[list[SearchValue], str, Any, "SearchIndexer"], None]


@dataclass(frozen=True, slots=True)
class ResolvedParameter:
    """A parameter of a type. ``target`` is the type that its references must have, if any."""

    parameter: SearchParameter
    target: str = ""

    @property
    def stored(self) -> str:
        """The name that values are stored under: parameters over the same elements share it."""
        return "|".join(self.parameter.paths)


class SearchIndexer:
    """A resource type as searches see it; one for the life of the service."""

    def __init__(
        self,
        resource_type: ResourceType,
        *,
        schemas: Schemas,
        terminology: Terminology,
        fhir_url: str,
        zone: tzinfo,
    ) -> None:
        """Take a declaration; raises ConfigurationError for elements that it cannot compare."""
        self.type = resource_type
        self.zone = zone
        self.relative_to = f"{_without_scheme(fhir_url)}/"
        known = [*_common_parameters(resource_type), *map(ResolvedParameter, resource_type.search)]
        self.parameters = {
            resolved_parameter.parameter.name: resolved_parameter for resolved_parameter in known
        }
        stored = {
            resolved_parameter.stored: resolved_parameter.parameter for resolved_parameter in known
        }
        self._taken = [
            (name, _TAKE[parameter.type], *path.partition(".")[::2])
            for name, parameter in stored.items()
            for path in parameter.paths
        ]
        self.systems: dict[str, str] = {}
        identifiers = {IDENTIFIER: IDENTIFIER}
        for name, parameter in stored.items():
            for path in parameter.paths:
                values = _check(parameter, path, resource_type, schemas)
                self.systems[name] = terminology.system_of(f"{_VALUE_SETS}/{values}")
                if values == "Identifier":
                    identifiers[name] = path
        self.typed = {name: f"{name}:of-type" for name in identifiers}
        """Under which names identifiers are stored together with their types."""
        self._taken_typed = [
            (self.typed[name], *path.partition(".")[::2]) for name, path in identifiers.items()
        ]
        self._chained = {
            f"{part.referred_by}:{part.type}.identifier": part
            for part in resource_type.parts
            if part.type == _PATIENT and part.referred_by
        }
        types = [part.type for part in resource_type.parts]
        self._only = [part for part in resource_type.parts if types.count(part.type) == 1]

    @property
    def rules(self) -> str:
        """What the values that are taken depend on, as a short text to compare."""
        taken = [(name, take.__name__, head, rest) for name, take, head, rest in self._taken]
        described = [
            _FORM,
            taken,
            self._taken_typed,
            list(self._chained),
            self.systems,
            str(self.zone),
        ]
        return hashlib.sha256(dumps(described)).hexdigest()[:16]

    def chains_of(self, known: ResolvedParameter, target: str) -> list[str]:
        """Return under which names the identifiers of what is referred to are stored."""
        return [
            name
            for name, part in self._chained.items()
            if part.referred_by in known.parameter.paths
            and {target, known.target} <= {"", part.type}
        ]

    def includable(self) -> list[str]:
        """Return the parameters that lead to something that can be included."""
        led_to = {part.referred_by for part in self.type.parts}
        return [
            name
            for name, known in self.parameters.items()
            if known.parameter.type == "reference" and led_to & {*known.parameter.paths}
        ]

    def owners(self, type_name: str | None, part_id: str, tenant: Tenant) -> Iterator[TokenMatch]:
        """Return how resources match that refer to a part of their own: its id leads to theirs."""
        for part in self._only:
            if type_name in (None, part.type) and is_resource_id(part_id):
                yield TokenMatch(part.type, "", tenant.part_id(part_id, part.name))

    def values(
        self, resource: JsonObject, parts: Mapping[str, Any], *, limited: bool = True
    ) -> bytes:
        """Return what the first version of a resource is found by, which these parts came with.

        Raises TooLarge for more than `MAX_SEARCH_VALUES` or `MAX_SEARCH_BYTES`, unless it is not
        ``limited``, because it is stored already.
        """
        ids = {name: part["id"] for name, part in parts.items()}
        values = self._values_of(resource, ids)
        for name, part in self._chained.items():
            for one in parts.get(part.name, _NOTHING).get("identifier", ()):
                _tokens(values, name, one, self)
        encoded = encode(values)
        if limited:
            _refuse_excess(len(values), len(encoded))
        return encoded

    def next_values(
        self, resource: JsonObject, before: bytes, tenant: Tenant, *, limited: bool = True
    ) -> bytes:
        """Return what a later version is found by: its parts are those of the first.

        Raises TooLarge as `values` does, but for a resource that had as many before: there was no
        limit when it was stored, and it must stay open to corrections.
        """
        known = decode(before)
        inherited = [item for item in known if item[0] in self._chained]
        ids = {part.name: tenant.part_id(resource["id"], part.name) for part in self._only}
        values = [*self._values_of(resource, ids), *inherited]
        encoded = encode(values)
        if limited and (len(values) > len(known) or len(encoded) > len(before)):
            _refuse_excess(len(values), len(encoded))
        return encoded

    def _values_of(self, resource: JsonObject, ids: Mapping[str, str]) -> list[SearchValue]:
        values: list[SearchValue] = []
        for name, take, head, rest in self._taken:
            if head not in resource:
                continue
            before = len(values)
            found = _at(resource, head, rest)
            for item in found:
                take(values, name, item, self)
            if found and len(values) == before:
                values.append((name, None, None))
        for name, head, rest in self._taken_typed:
            for item in _at(resource, head, rest) if head in resource else ():
                _extract_typed(values, name, item)
        own = {(part.type, ids.get(part.name)) for part in self._only}
        return [
            (name, "", second) if (second, first) in own else (name, first, second)
            for name, first, second in values
        ]


def _refuse_excess(number: int, size: int) -> None:
    if number > MAX_SEARCH_VALUES or size > MAX_SEARCH_BYTES:
        what = f"{MAX_SEARCH_VALUES}" if number > MAX_SEARCH_VALUES else "256 KiB of"
        raise TooLarge.because(
            f"has more than {what} search values, which are the codings, "
            "identifiers, references and times that searches compare: send fewer of them, or "
            "divide the content among several resources",
            details=ContentProblem.SEARCH_VALUES_TOO_MANY,
        )


def _check(
    parameter: SearchParameter, path: str, resource_type: ResourceType, schemas: Schemas
) -> str:
    """Return the name of the values of an element that a parameter can compare."""
    found, values = schemas.type_at(resource_type.name, path)
    if found not in _ELEMENTS[parameter.type]:
        what = f"an element of type {found}" if found else "no element of it"
        takes = ", ".join(sorted(_ELEMENTS[parameter.type]))
        raise ConfigurationError(
            f"{resource_type.name}: search parameter {parameter.name}: {path} is {what}; "
            f"a {parameter.type} is one of type {takes}"
        )
    return values


def _common_parameters(resource_type: ResourceType) -> Iterator[ResolvedParameter]:
    yield ResolvedParameter(SearchParameter(name="status", type="token", paths=("status",)))
    for part in resource_type.parts:
        if part.type == _PATIENT and part.referred_by:
            patient = r4_parameter("clinical-patient", "reference", part.referred_by)
            yield ResolvedParameter(patient, target=_PATIENT)


def _at(holder: JsonObject, head: str, rest: str) -> Sequence[Any]:
    """Return what stands at an element, and below it, through lists."""
    member = holder[head]
    items = member if type(member) is list else (member,)
    if not rest:
        return items
    further, _, last = rest.partition(".")
    return [one for item in items if further in item for one in _at(item, further, last)]


def _tokens(values: list[SearchValue], name: str, item: Any, searched: SearchIndexer) -> None:
    if isinstance(item, str):
        values.append((name, item, searched.systems.get(name, "")))
    elif isinstance(item, bool):
        values.append((name, "true" if item else "false", ""))
    else:  # a Coding has a code, an Identifier a value
        for coding in item.get("coding", (item,)):
            code = coding.get("code", coding.get("value"))
            if code is not None:
                values.append((name, code, coding.get("system", "")))


def _extract_typed(values: list[SearchValue], name: str, item: Any) -> None:
    for coding in item.get("type", _NOTHING).get("coding", ()):
        if "code" in coding and "value" in item:
            code = encode_typed_code(coding["code"], item["value"])
            values.append((name, code, coding.get("system", "")))


def encode_typed_code(code: str, value: str) -> str:
    """Return the code of an identifier's type, and its value, as one text without doubt."""
    escaped = code.replace("\\", "\\\\").replace("|", "\\|")
    return f"{escaped}|{value}"


def _times(values: list[SearchValue], name: str, item: Any, searched: SearchIndexer) -> None:
    def stretch(text: str, beside: str = "") -> TimeRange | None:
        return parse_range(text, default_zone=zone_of(beside) or searched.zone)

    if isinstance(item, str):
        one = stretch(item)
        known = [] if one is None else [one]
    else:
        known = [element for element in map(stretch, item.get("event", ())) if element is not None]
        bounds = item.get("repeat", _NOTHING).get("boundsPeriod", item)
        start, end = bounds.get("start", ""), bounds.get("end", "")
        first, last = stretch(start, end), stretch(end, start)  # a date is of the time's zone
        if first or last:
            known.append((first[0] if first else EARLIEST, last[1] if last else LATEST))
    if known:  # of a Timing the outer limits count
        values.append(
            (name, min(element[0] for element in known), max(element[1] for element in known))
        )


def _references(values: list[SearchValue], name: str, item: Any, searched: SearchIndexer) -> None:
    literal = item.get("reference", "#")
    if not literal.startswith("#"):
        type_name, resource_id = split_reference(literal, searched)
        values.append((name, resource_id, type_name))


def split_reference(literal: str, searched: SearchIndexer) -> tuple[str, str]:
    """Return type and id of a reference to what could be here; else no type, and all of it."""
    if ":" in literal:
        plain = _without_scheme(literal)
        relative = plain.removeprefix(searched.relative_to)
        if relative == plain:
            return "", literal
        literal = relative
    type_name, _, resource_id = literal.partition(_HISTORY)[0].rpartition("/")
    return type_name, resource_id


def _without_scheme(url: str) -> str:
    """Return a URL without http or https, between which FHIR makes no difference."""
    return url.removeprefix("http://").removeprefix("https://")


_TAKE: dict[str, Take] = {"token": _tokens, "date": _times, "reference": _references}
