"""Validate: the result of a registration, with nothing stored (R4 resource-validate; D-182)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fhirpub.errors import InvalidContent, Issue, OtherContent, Refused
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.interactions import rules
from fhirpub.interactions.capabilities import FHIR_VERSION
from fhirpub.interactions.context import Context
from fhirpub.interactions.erased import IdentifierErased, first_version, is_tombstone, number_after
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.register import build_candidate, key_of
from fhirpub.interactions.repetition.digest import is_same
from fhirpub.interactions.submission.contained import from_contained
from fhirpub.interactions.submission.held import Held, ReadBody, held_part_of, read_with
from fhirpub.interactions.submission.parameters import from_parameters, from_wrapped
from fhirpub.interactions.submission.record import parse
from fhirpub.interactions.validation.validation import take_documents, validate_leniently
from fhirpub.plugin_api import ResourceType
from fhirpub.problems import ContentProblem, OperationProblem
from fhirpub.runtime.stages import Stages
from fhirpub.storage.contract import Version
from fhirpub.tenant import Tenant

TRIED = ("mode", "profile")
"""Parameters of the operation that may stand in the URL as well."""
_ENTRIES = "Parameters.parameter"

Compare = Callable[[Version, Version], Awaitable[Sequence[str]]]
"""Returns the names of the elements in which two registrations of one identifier differ."""


@dataclass(frozen=True, slots=True)
class Trial:
    """All issues that a registration would have, and what it would store if none is an error.

    ``digest`` is that of the content, ``id`` follows from the identifier; both are empty if there
    is none. ``held`` is the patient that is missing, if it is one that the tenant may hold.
    """

    found: list[Issue]
    id: str = ""
    digest: bytes = b""
    version: Version | None = None
    held: Held | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be tried: the parameters ``TRIED`` of the URL, empty if absent.

    ``held`` is the patient that the body refers to instead of bringing it, once it is known.
    """

    parameters: Mapping[str, str]
    held: Held | None = None


def try_registration(
    context: Context,
    body: bytes,
    *,
    is_xml: bool,
    asked: Asked,
    type_name: str,
    tenant: Tenant,
) -> Stages[Trial]:
    """Return all that would be refused or remarked, and what would be stored if nothing was.

    ``body`` is one of ``$register``, a resource as for ``create``, or FHIR's Parameters
    with one in ``resource``. Pure, for any thread or process. Raises InvalidContent for what
    cannot be parsed, for another mode than create, for a profile that the type is not held to,
    and for one of the operation's own entries twice.
    """
    content, resource_type = parse(body, is_xml=is_xml), context.types[type_name]
    yield
    named = _entries(content)
    _refuse_other_tries(asked.parameters, named, resource_type)
    try:
        read_body = _choose_reader(content, named)
        if asked.held is not None:
            read_body = partial(read_with, read=read_body, held=asked.held)
        submission = read_body(content, resource_type)
    except Refused as refusal:
        return Trial(rules.sorted_for_response(refusal.issues, context))
    version = None
    take_documents(submission)
    key = key_of(submission)
    yield
    try:
        submission, issues = yield from validate_leniently(
            submission,
            body,
            is_xml=is_xml,
            read_body=read_body,
            context=context,
            tenant_id=tenant.id,
        )
        found = [*submission.remarks, *issues]
        if not any(issue.severity == "error" for issue in found):
            version = (yield from build_candidate(submission, tenant, context)).version
    except Refused as refusal:
        found = list(refusal.issues)
    sorted_issues = rules.sorted_for_response(found, context)
    resource_id = tenant.resource_id(*key) if key else ""
    held = held_part_of(submission, PATIENT, context.fhir_url) if version is None else None
    return Trial(sorted_issues, resource_id, submission.digest, version, held)


async def add_verdict(
    trial: Trial, *, tenant: Tenant, type_name: str, context: Context, compare: Compare
) -> list[Issue]:
    """Return the issues of an answer: what was found, and what a registration would lead to."""
    known = await first_version(context.resources, tenant.id, trial.id) if trial.id else None
    if is_tombstone(known):
        try:
            number_after(known)
        except IdentifierErased as refusal:
            return [Issue.error(refusal.details, str(refusal)), *trial.found]
        known = None
    if known is None:
        would = f"the {type_name} would be registered; nothing was stored"
        return [_information(would), *trial.found] if trial.version else trial.found
    address, first = f"{type_name}/{known.id}", "its first answer would be returned"
    same = is_same(known.digest, trial.digest)
    if same:  # what refuses it today refuses a new one only
        remarks = [issue for issue in trial.found if issue.severity != "error"]
        verdict = f"{address} has this identifier with the same content: {first}"
        return [_information(verdict), *remarks]
    if trial.version is None:
        return trial.found
    if same is None:
        return [_information(f"{address} has this identifier: {first}"), *trial.found]
    other = str(OtherContent(address, await compare(known, trial.version)))
    used = Issue.error(ContentProblem.IDENTIFIER_IN_USE, other)
    if context.config.fhir.other_content == "replay":
        other = f"{other}. {first.capitalize()}"
        used = Issue.warning(ContentProblem.IDENTIFIER_IN_USE, other)
    return [used, *trial.found]


def _information(verdict: str) -> Issue:
    return Issue.information(ContentProblem.ACCEPTED, verdict)


def _entries(content: Any) -> Mapping[str, JsonObject]:
    """Return the entries of Parameters by their names, nothing of another body."""
    if not isinstance(content, dict) or content.get("resourceType") != "Parameters":
        return {}
    entries, named, twice = content.get("parameter"), {}, set()
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(name := entry.get("name"), str):
            if name in named and name in ("resource", *TRIED):
                twice.add(name)
            named[name] = entry
    problem = ContentProblem.ENTRY_REPEATED
    if twice:
        raise InvalidContent(
            Issue.error(problem, f"the entry {name} stands here more than once", _ENTRIES)
            for name in sorted(twice)
        )
    return named


def _choose_reader(content: Any, named: Mapping[str, JsonObject]) -> ReadBody:
    """Return how a body is to be read."""
    if "resource" in named:
        return from_wrapped
    if isinstance(content, dict) and content.get("resourceType") == "Parameters":
        return from_parameters
    return from_contained


def _refuse_other_tries(
    asked: Mapping[str, str], named: Mapping[str, JsonObject], resource_type: ResourceType
) -> None:
    """A registration is what can be tried, against the profile that the type is held to."""
    profiles = [resource_type.canonical]
    if not resource_type.profile:  # FHIR's own, which may be named with its version
        profiles.append(f"{resource_type.canonical}|{FHIR_VERSION}")
    issues = [
        Issue.error(OperationProblem.PARAMETER_INVALID, rule, place, code="not-supported")
        for name, fits, rule in (
            ("mode", ["create"], "only create can be tried"),
            ("profile", profiles, "the type is held to another"),
        )
        for place, value in (
            (name, asked[name]),
            (f"{_ENTRIES}.where(name='{name}')", _value(named.get(name, {}))),
        )
        if value and value not in fits
    ]
    if issues:
        raise InvalidContent(issues)


def _value(entry: JsonObject) -> Any:
    """Return the value of an entry, of whatever type it is."""
    return next((value for name, value in entry.items() if name.startswith("value")), None)
