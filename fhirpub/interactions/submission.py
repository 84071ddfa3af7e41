"""From a body to a submission: the resource and its parts, and where each of them stood."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fhirpub.errors import MAX_ISSUES, InvalidContent, Issue
from fhirpub.fhir.contained import Contained, reachable
from fhirpub.fhir.document import Document
from fhirpub.fhir.elements import items_of, objects_in
from fhirpub.fhir.explanation.envelope import entries_of, missing_entry, refuse_kind, wrong_entry
from fhirpub.fhir.strict_json import JsonObject, loads
from fhirpub.fhir.xml.reader import read_xml
from fhirpub.fhir.xml.tables import tables
from fhirpub.plugin_api import Entry, Part, ResourceType
from fhirpub.problems import ContentProblem

ENTRY_IGNORED = ContentProblem.ENTRY_IGNORED
ENTRY_INVALID = ContentProblem.ENTRY_INVALID
ENTRY_MISSING = ContentProblem.ENTRY_MISSING
REPEATED = ContentProblem.ENTRY_REPEATED


@dataclass(slots=True, kw_only=True)
class Submission:
    """A submission as received, before validation.

    ``local`` names each part by the literal that references in the body use for it, such as
    ``Patient/p1`` or ``#p1``. ``documents``, ``digest`` and ``remarks`` fill up on the way.
    """

    type: ResourceType
    entry: Entry
    parts: dict[str, Entry]
    local: dict[str, str]
    documents: tuple[Document, ...] = ()
    digest: bytes = b""
    remarks: list[Issue]
    envelope: Entry | None = None
    """The Parameters without the resources, if they have more than names and resources."""
    placeholders: tuple[JsonObject, ...] = ()
    """What represents the parts among the contained resources during validation."""
    contained_of_parts: Mapping[str, Contained] = field(default_factory=dict)
    """For each part, the contained resources that it refers to, by their local references."""
    kept: Sequence[JsonObject] = ()
    """The contained resources that are no part and that no part needs."""
    content: Sequence[JsonObject]
    """Everything that was sent, taken or not, as the entries of Parameters."""
    wrong: Sequence[Issue] = ()
    """The errors about entries, such as parts that are required and were not sent."""
    untaken: Sequence[Entry] = ()
    """The entries of the Parameters that are not taken."""

    def remove_placeholders(self) -> None:
        """Keep in the resource the contained resources that are no part and that no part needs."""
        if not self.placeholders:
            return
        for name, found in self.contained_of_parts.items():
            part = self.parts[name]
            self.parts[name] = Entry({**part.resource, "contained": [*found.values()]}, part.at)
        if self.kept:
            self.entry.resource["contained"] = [*self.kept]
        else:
            del self.entry.resource["contained"]


def parse(body: bytes, *, is_xml: bool) -> Any:
    """Parse a body, JSON or XML, into the values of JSON; raises InvalidContent."""
    return read_xml(body) if is_xml else loads(body)


def from_parameters(body: Any, resource_type: ResourceType) -> Submission:
    """Read the body of ``$register``: Parameters with one entry for each resource (D-30).

    Raises InvalidContent if there is no resource of the type in it, or an entry is no object with
    a name. Other errors of the envelope are those of the submission, to be reported with the
    problems of its resources; a type may have required fewer parts when it was registered.
    """
    issues: list[Issue] = []
    unreadable: list[Issue] = []
    entries = _entries(body, resource_type)
    own = resource_type.entry_name
    wanted = {own: resource_type.name, **{part.name: part.type for part in resource_type.parts}}
    named: set[str] = set()
    found: dict[str, Entry] = {}
    untaken: list[Entry] = []
    for index, entry in enumerate(entries):
        at = f"Parameters.parameter[{index}]"
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            unreadable.append(_error("must be an object with a name", at, ENTRY_INVALID))
        elif name not in wanted:
            untaken.append(Entry(entry, at))
        elif name in named:
            issues.append(_error(f"the entry {name} stands here more than once", at, REPEATED))
        else:
            named.add(name)
            found |= _entry(entry, wanted[name], at, resource_type, issues)
    missing = [
        missing_entry(name, wanted[name], ((one.resource, one.at) for one in untaken))
        for name in (own, *(part.name for part in resource_type.parts if part.required))
        if name not in named
    ]
    entry = found.pop(own, None)
    local = _literals_of(found, issues)
    if entry is None or unreadable:
        raise InvalidContent([*missing, *unreadable, *issues])
    return Submission(
        type=resource_type,
        entry=entry,
        parts=found,
        local=local,
        remarks=[_ignored(entry) for entry in untaken[:MAX_ISSUES]],
        envelope=_envelope(body, wanted),
        content=entries,
        wrong=[*missing, *issues],
        untaken=untaken,
    )


def _ignored(entry: Entry) -> Issue:
    if resources_in(entry):
        rule = "is ignored with its resource: not known"
        return Issue.warning(ENTRY_IGNORED, rule, entry.at, code="not-supported")
    said = "is ignored: not known"
    return Issue.information(ENTRY_IGNORED, said, entry.at)


def resources_in(entry: Entry) -> list[Entry]:
    """Return the resources in an entry of Parameters and in its parts."""
    found, waiting = [], [entry]
    for one in waiting:  # grows while it is read
        resource, parts = one.resource.get("resource"), one.resource.get("part")
        if isinstance(resource, dict):
            found.append(Entry(resource, f"{one.at}.resource"))
        waiting += [
            Entry(part, f"{one.at}.part[{index}]")
            for index, part in enumerate(parts if isinstance(parts, list) else ())
            if isinstance(part, dict)
        ]
    return found


def _literals_of(parts: Mapping[str, Entry], issues: list[Issue]) -> dict[str, str]:
    """Name the parts by what refers to them; one literal must not mean two of them."""
    local: dict[str, str] = {}
    for name, part in parts.items():
        if isinstance(resource_id := part.resource.get("id"), str):
            other = local.setdefault(f"{part.resource['resourceType']}/{resource_id}", name)
            if other != name:
                rule = f"is the id of the entry {other}, too"
                issues.append(_error(rule, f"{part.at}.id", REPEATED))
    return local


def from_contained(body: Any, resource_type: ResourceType) -> Submission:
    """Read the body of ``create``: the resource, its parts contained in it (D-5)."""
    name = resource_type.name
    if not isinstance(body, dict) or body.get("resourceType") != name:
        advice = {"Parameters": f"send it to {name}/$register"}
        raise refuse_kind(body, tables().resources, f"a {name}", advice=advice, expression=name)
    contained = body.get("contained", [])
    if not isinstance(contained, list):
        raise InvalidContent.because(
            "must be a list",
            expression=f"{name}.contained",
            details=ContentProblem.ELEMENT_MALFORMED,
        )
    parts: dict[str, Entry] = {}
    local: dict[str, str] = {}
    places = {
        f"#{item['id']}": place
        for place, item in enumerate(contained)
        if isinstance(item, dict) and isinstance(item.get("id"), str)
    }
    for part in resource_type.parts:
        # The one that is referred to first: the author of a visit, and not a nurse.
        for literal in filter(places.__contains__, _literals(body, part)):
            place = places[literal]
            if contained[place].get("resourceType") == part.type:
                parts[part.name] = Entry(contained[place], f"{name}.contained[{place}]")
                local[literal] = part.name
                break
    missing = [
        _error(
            f"a contained {part.type} that {part.referred_by} refers to is required",
            name,
            ENTRY_MISSING,
        )
        for part in resource_type.parts
        if part.required and part.name not in parts
    ]
    others = {item: contained[place] for item, place in places.items() if item not in local}
    contained_of_parts = {
        name: found
        for name, entry in parts.items()
        if "contained" not in entry.resource and (found := reachable(entry.resource, others))
    }
    placeholders = {
        id(entry.resource): _placeholder(entry.resource["id"], contained_of_parts.get(name, ()))
        for name, entry in parts.items()
    }
    kept = _kept(body, parts, contained_of_parts) if parts else contained
    if placeholders:
        body["contained"] = [placeholders.get(id(item), item) for item in contained]
    return Submission(
        type=resource_type,
        entry=Entry(body, name),
        parts=parts,
        local=local,
        remarks=[],
        placeholders=tuple(placeholders.values()),
        contained_of_parts=contained_of_parts,
        kept=kept,
        content=[
            _as_entry(resource_type.entry_name, body, kept),
            *(
                _as_entry(name, part.resource, contained_of_parts.get(name, {}).values())
                for name, part in parts.items()
            ),
        ],
        wrong=missing,
    )


def _as_entry(name: str, resource: JsonObject, contained: Collection[JsonObject]) -> JsonObject:
    """Return a resource of create as the entry of Parameters that would register the same."""
    others = {key: value for key, value in resource.items() if key != "contained"}
    if contained:
        others["contained"] = [*contained]
    return {"name": name, "resource": others}


def _kept(
    body: JsonObject, parts: Mapping[str, Entry], contained_of_parts: Mapping[str, Contained]
) -> list[JsonObject]:
    """Return the contained resources that are no part, and that not only parts need."""
    brought: Contained = {}
    for found in contained_of_parts.values():
        brought |= found
    taken = {id(part.resource) for part in parts.values()} | set(map(id, brought.values()))
    rest = [one for one in body["contained"] if id(one) not in taken]
    return [*rest, *reachable({**body, "contained": rest}, brought).values()]


def from_wrapped(body: Any, resource_type: ResourceType) -> Submission:
    """Read FHIR's own body of ``$validate``: Parameters with one entry ``resource``."""
    issues: list[Issue] = []
    wrapped = None
    for index, parameter in enumerate(body["parameter"]):
        if isinstance(parameter, dict) and parameter.get("name") == "resource":
            wrapped = parameter.get("resource")
            _refuse_more(parameter, f"Parameters.parameter[{index}]", issues)
    if issues:
        raise InvalidContent(issues)
    submission = from_contained(wrapped, resource_type)
    submission.envelope = _without_resources(body, ("resource",))
    return submission


def _envelope(body: JsonObject, validated: Collection[str]) -> Entry | None:
    """Return the surroundings of the separately validated entries, if there are any."""
    plain = all(len(parameter) == 2 and "resource" in parameter for parameter in body["parameter"])
    if plain and len(body) == 2:
        return None
    return _without_resources(body, validated)


def _without_resources(body: JsonObject, validated: Collection[str]) -> Entry:
    """Return Parameters without the resources of these entries."""
    entries = [
        {**parameter, "resource": _ANY_RESOURCE}
        if isinstance(parameter, dict) and parameter.get("name") in validated
        else parameter
        for parameter in body["parameter"]
    ]
    return Entry({**body, "parameter": entries}, "Parameters")


_ANY_RESOURCE = {"resourceType": "Basic", "id": "validated-separately", "code": {"text": "-"}}


def _placeholder(resource_id: str, leading: Collection[str]) -> JsonObject:
    """Return what stands for a contained part, and leads to where that does."""
    extensions = [{"url": "urn:fhirpub:leads-to", "valueUri": name} for name in leading]
    more = {"extension": extensions} if extensions else {}
    return {**_ANY_RESOURCE, "id": resource_id, **more}


def _entries(body: Any, resource_type: ResourceType) -> list[Any]:
    name, own = resource_type.name, resource_type.entry_name
    here = f"send it to {name} itself (create), or here as the resource of the entry {own}"
    return entries_of(body, tables().resources, advice={name: here})


def _entry(
    entry: JsonObject,
    type_name: str,
    at: str,
    resource_type: ResourceType,
    issues: list[Issue],
) -> dict[str, Entry]:
    """Return an entry by its name, or nothing if something is wrong around its resource."""
    known, resource = len(issues), entry.get("resource")
    if not isinstance(resource, dict) or resource.get("resourceType") != type_name:
        issues.append(_error(wrong_entry(entry, type_name, tables().resources), at, ENTRY_INVALID))
        return {}
    _refuse_more(entry, at, issues)
    for element in resource_type.attachments if type_name == resource_type.name else ():
        if element in entry:
            _merge_attachments(entry.pop(element), resource, element, at, issues)
    return {} if len(issues) > known else {entry["name"]: Entry(resource, f"{at}.resource")}


def _refuse_more(entry: JsonObject, at: str, issues: list[Issue]) -> None:
    if len(entry) > 2 and any(name.lstrip("_").startswith(("value", "part")) for name in entry):
        rule = "must have a resource, and neither value nor part (inv-1)"
        issues.append(_error(rule, at, ENTRY_INVALID))


def _merge_attachments(
    siblings: Any, resource: JsonObject, element: str, at: str, issues: list[Issue]
) -> None:
    """Move attachments that are siblings of ``resource`` in the entry into it (D-55)."""
    if not isinstance(siblings, list):
        issues.append(_error("must be a list", f"{at}.{element}", ENTRY_INVALID))
    elif element not in resource:
        resource[element] = siblings
    elif resource[element] != siblings:
        rule = f"differs from resource.{element}: send it once"
        issues.append(_error(rule, f"{at}.{element}", ENTRY_INVALID))


def _literals(body: JsonObject, part: Part) -> Iterator[str]:
    """Yield the literals of the references that may lead to a part, in their order."""
    by_element = [one for _place, one in items_of(body, part.referred_by)]
    for one in by_element if part.referred_by else objects_in(body):
        literal = one.get("reference") if isinstance(one, dict) else None
        if isinstance(literal, str):
            yield literal


def _error(rule: str, at: str, details: ContentProblem) -> Issue:
    return Issue.error(details, rule, at)
