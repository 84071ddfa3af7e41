"""The body of ``$register`` and of ``$validate``: Parameters with an entry for each resource."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from fhirpub.errors import MAX_ISSUES, InvalidContent, Issue
from fhirpub.fhir.explanation.envelope import entries_of, missing_entry, wrong_entry
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.xml.tables import tables
from fhirpub.interactions.submission.contained import from_contained
from fhirpub.interactions.submission.record import ANY_RESOURCE, Submission, resources_in
from fhirpub.interactions.submission.usual import entries_of_type, read_usual
from fhirpub.plugin_api import Entry, ResourceType
from fhirpub.problems import ContentProblem

MAX_MEMBERS = 1_000
"""How many entries that may repeat a registration can have."""


def from_parameters(body: Any, resource_type: ResourceType) -> Submission:
    """Read the body of ``$register``: Parameters with one entry for each resource (D-30).

    Raises InvalidContent if there is no resource of the type in it, or an entry is no object with
    a name. Other errors of the envelope are those of the submission, to be reported with the
    problems of its resources; a type may have required fewer parts when it was registered.
    """
    return read_usual(body, resource_type) or _read(body, resource_type)


def _read(body: Any, resource_type: ResourceType) -> Submission:
    """Read what is not usual, or wrong."""
    entries = _entries(body, resource_type)
    sorter = _Sorter(resource_type)
    for index, entry in enumerate(entries):
        sorter.take(entry, f"Parameters.parameter[{index}]")
    sorter.refuse_too_many()
    found, issues = sorter.found, sorter.issues
    missing = sorter.missing()
    entry = found.pop(resource_type.entry_name, None)
    local = _literals_of(found, issues)
    if entry is None or sorter.unreadable:
        raise InvalidContent([*missing, *sorter.unreadable, *issues])
    return Submission(
        type=resource_type,
        entry=entry,
        parts=found,
        declared=sorter.declared,
        local=local,
        members=sorter.members(),
        remarks=[_ignored(entry) for entry in sorter.untaken[:MAX_ISSUES]],
        envelope=_envelope(body, sorter.types),
        content=entries,
        wrong=[*missing, *issues],
        untaken=sorter.untaken,
    )


class _Sorter:
    """Finds in the entries of Parameters those that a type takes."""

    def __init__(self, resource_type: ResourceType) -> None:
        self._type = resource_type
        self.types, self._named, self._required = entries_of_type(resource_type)
        self._counts: dict[str, int] = {}
        self.declared = dict(self._named)
        self.found: dict[str, Entry] = {}
        self.untaken: list[Entry] = []
        self.issues: list[Issue] = []
        self.unreadable: list[Issue] = []

    def take(self, entry: Any, at: str) -> None:
        """Sort an entry by its name."""
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            said = "must be an object with a name"
            self.unreadable.append(_error(said, at, ContentProblem.ENTRY_INVALID))
        elif name not in self.types:
            self.untaken.append(Entry(entry, at))
        elif (part := self._named.get(name)) is not None and part.repeats:
            number = self._counts.get(name, 0)
            self._counts[name] = number + 1
            self.declared[f"{name}[{number}]"] = part
            self._add(f"{name}[{number}]", _entry(entry, part.type, at, self._type, self.issues))
        elif name in self._counts:
            said = f"the entry {name} stands here more than once"
            self.issues.append(_error(said, at, ContentProblem.ENTRY_REPEATED))
        else:
            self._counts[name] = 1
            self._add(name, _entry(entry, self.types[name], at, self._type, self.issues))

    def _add(self, key: str, entry: Entry | None) -> None:
        if entry is not None:
            self.found[key] = entry

    def members(self) -> dict[str, Entry]:
        """Return the entries that repeat."""
        if len(self.declared) == len(self._named):
            return {}
        return {key: entry for key, entry in self.found.items() if key not in self._named}

    def refuse_too_many(self) -> None:
        """Report more entries that repeat than there can be."""
        number = len(self.declared) - len(self._named)
        if number > MAX_MEMBERS:
            said = f"has {number} entries that may repeat; there can be {MAX_MEMBERS}"
            at = "Parameters.parameter"
            self.issues.append(Issue.error(ContentProblem.ENTRIES_TOO_MANY, said, at))

    def missing(self) -> list[Issue]:
        """Return the errors about required entries that were not sent."""
        return [
            missing_entry(name, type_name, ((one.resource, one.at) for one in self.untaken))
            for name, type_name in self.types.items()
            if name not in self._counts and name in self._required
        ]


def _ignored(entry: Entry) -> Issue:
    if resources_in(entry):
        rule = "is ignored with its resource: not known"
        return Issue.warning(ContentProblem.ENTRY_IGNORED, rule, entry.at, code="not-supported")
    said = "is ignored: not known"
    return Issue.information(ContentProblem.ENTRY_IGNORED, said, entry.at)


def _literals_of(parts: Mapping[str, Entry], issues: list[Issue]) -> dict[str, str]:
    """Name the parts by what refers to them; one literal must not mean two of them."""
    local: dict[str, str] = {}
    for name, part in parts.items():
        if isinstance(resource_id := part.resource.get("id"), str):
            other = local.setdefault(f"{part.resource['resourceType']}/{resource_id}", name)
            if other != name:
                rule = f"is the id of the entry {other}, too"
                issues.append(_error(rule, f"{part.at}.id", ContentProblem.ENTRY_REPEATED))
    return local


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
        {**parameter, "resource": ANY_RESOURCE}
        if isinstance(parameter, dict) and parameter.get("name") in validated
        else parameter
        for parameter in body["parameter"]
    ]
    return Entry({**body, "parameter": entries}, "Parameters")


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
) -> Entry | None:
    """Return the resource of an entry, or None if something is wrong around it."""
    known, resource = len(issues), entry.get("resource")
    if not isinstance(resource, dict) or resource.get("resourceType") != type_name:
        issues.append(
            _error(
                wrong_entry(entry, type_name, tables().resources), at, ContentProblem.ENTRY_INVALID
            )
        )
        return None
    _refuse_more(entry, at, issues)
    for element in resource_type.attachments if type_name == resource_type.name else ():
        if element in entry and "." not in element:
            _merge_attachments(entry.pop(element), resource, element, at, issues)
    return None if len(issues) > known else Entry(resource, f"{at}.resource")


def _refuse_more(entry: JsonObject, at: str, issues: list[Issue]) -> None:
    if len(entry) > 2 and any(name.lstrip("_").startswith(("value", "part")) for name in entry):
        rule = "must have a resource, and neither value nor part (inv-1)"
        issues.append(_error(rule, at, ContentProblem.ENTRY_INVALID))


def _merge_attachments(
    siblings: Any, resource: JsonObject, element: str, at: str, issues: list[Issue]
) -> None:
    """Move attachments that are siblings of ``resource`` in the entry into it (D-55)."""
    if not isinstance(siblings, list):
        issues.append(_error("must be a list", f"{at}.{element}", ContentProblem.ENTRY_INVALID))
    elif element not in resource:
        resource[element] = siblings
    elif resource[element] != siblings:
        rule = f"differs from resource.{element}: send it once"
        issues.append(_error(rule, f"{at}.{element}", ContentProblem.ENTRY_INVALID))


def _error(rule: str, at: str, details: ContentProblem) -> Issue:
    return Issue.error(details, rule, at)
