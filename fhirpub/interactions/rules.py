"""The rules that are the same for every resource type, in the order in which they are asked.

Each looks at one aspect and yields issues. Errors with the code ``business-rule`` are a 422,
other errors a 400 (R-A); warnings and information travel with the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from fhirpub.errors import MAX_ISSUES, BrokenRule, InvalidContent, Issue, TooLarge
from fhirpub.fhir.document import Document
from fhirpub.fhir.element_check import element_problems
from fhirpub.fhir.elements import items_of, values_at
from fhirpub.fhir.explanation.advice import suggest_code
from fhirpub.fhir.narrative import in_characters
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.times import UnstorableTime, is_date_beside_time, is_plain_utc, to_utc
from fhirpub.interactions import references
from fhirpub.interactions.checks.all_problems import errors_of
from fhirpub.interactions.checks.attachments import check_attachments
from fhirpub.interactions.checks.merged_places import merge_places
from fhirpub.interactions.checks.organization_ids import organization_in_system
from fhirpub.interactions.checks.unusual_elements import (
    about_unusual_elements,
    refuse_modifiers,
)
from fhirpub.interactions.context import Context
from fhirpub.interactions.identity.identification import identification_of
from fhirpub.interactions.identity.problems import identifier_problems
from fhirpub.interactions.submission.record import Submission
from fhirpub.plugin_api import Entry, ResourceType, RuleContext, Rules
from fhirpub.problems import ContentProblem


def refuse(issues: Iterable[Issue], context: Context) -> list[Issue]:
    """Raise for errors, with those of 400 before those of 422; return the rest; 100 at most."""
    collected = sorted_for_response(issues, context)
    errors = [issue for issue in collected if issue.severity == "error"]
    broken = [error for error in errors if _is_broken_rule(error)]
    if len(errors) > len(broken):
        raise InvalidContent(errors)
    if broken:
        raise BrokenRule(broken)
    return collected


def _is_broken_rule(issue: Issue) -> bool:
    return issue.code == "business-rule"


def sorted_for_response(issues: Iterable[Issue], context: Context) -> list[Issue]:
    """Return issues as the response lists them: errors first, FHIRPath places, at most 100.

    Of errors those of 400 come first: a hundred of 422 must not hide them.
    """
    found = [*issues]
    if len(found) > 1:
        found.sort(key=lambda each: (each.severity != "error", _is_broken_rule(each)))
        del found[MAX_ISSUES:]
    return [issue.moved(context.schemas.fhirpath) for issue in found]


def resource_within_limits(size: int, context: Context) -> None:
    """Raise TooLarge for a resource that is too large even without its documents."""
    most = context.config.limits.resource_bytes
    if size > most:
        raise TooLarge.because(
            f"has more than {most} bytes beside its documents",
            details=ContentProblem.BODY_TOO_LARGE,
        )


def check_limits(documents: Iterable[Document], *, most: int, at: str) -> None:
    """Raise TooLarge naming each document above the limit."""
    rule = f"has more than {most} bytes when decoded, the limit of a document"
    issues = [
        Issue.error(ContentProblem.DOCUMENT_TOO_LARGE, rule, f"{at}.{document.at}.data")
        for document in documents
        if len(document.data) > most
    ]
    if issues:
        raise TooLarge(issues)


def structure(
    submission: Submission, context: Context, tenant_id: str
) -> Iterator[Iterator[Issue]]:
    """Everything that is wrong by FHIR's own definitions, an iterator for each resource."""
    entry, envelope = submission.entry, submission.envelope
    if envelope is not None:
        yield each_below(envelope, context.schemas.problems("Parameters", envelope.resource))
    statuses = submission.type.create_statuses
    if entry.is_plain:
        wrong = identifier_problems(entry.resource, submission.type, context.schemas)
        yield each_below(entry, wrong)
    else:
        for issues in check_structure(entry.resource, submission.type, context, statuses):
            yield each_below(entry, issues)
    for name, part in submission.parts.items():
        if "id" not in part.resource:
            rule = "is required: references need it"
            yield iter([Issue.error(ContentProblem.ELEMENT_REQUIRED, rule, f"{part.at}.id")])
        if part.is_plain:
            continue
        problems = context.schemas.problems(part.resource["resourceType"], part.resource)
        found = partial(submission.declared[name].rules, part, context.rules_for(tenant_id))
        yield _with_fewer_codes(each_below(part, problems), found)
        for issues in contained(part.resource, context):
            yield each_below(part, issues)


def _with_fewer_codes(
    issues: Iterator[Issue], find: Callable[[], Iterable[Issue]]
) -> Iterator[Issue]:
    """Yield issues; of codes that FHIR does not have, what rules say, which may allow fewer."""
    by_place: dict[str, Issue] | None = None
    for issue in issues:
        if issue.details != ContentProblem.CODE_NOT_ALLOWED:
            yield issue
            continue
        if by_place is None:
            by_place = {one.expression: one for one in errors_of(find())}
        better = by_place.get(issue.expression, issue)
        yield better if better.details == issue.details else issue


def check_structure(
    resource: JsonObject,
    resource_type: ResourceType,
    context: Context,
    statuses: frozenset[str],
) -> Iterator[Iterator[Issue]]:
    """What is wrong with a resource, then with each that it contains, by their definitions.

    ``statuses`` are those of the operation, fewer than FHIR has.
    """
    found = identifier_problems(resource, resource_type, context.schemas)
    said = ("identifier",) if found and identification_of(resource_type).is_single else ()
    yield iter(found)
    yield (
        _narrowed(issue, resource, statuses)
        for issue in context.schemas.problems(resource_type.name, resource)
        if not issue.expression.startswith(said)  # the rule says it better
    )
    yield from contained(resource, context)


def _narrowed(issue: Issue, resource: JsonObject, statuses: frozenset[str]) -> Issue:
    """Return an issue about a code that FHIR does not have with the codes that can be sent."""
    if issue.expression == "status" and issue.details == ContentProblem.CODE_NOT_ALLOWED:
        return next(status(resource, statuses), issue)
    return issue


def contained(resource: JsonObject, context: Context) -> Iterator[Iterator[Issue]]:
    """What is wrong with contained resources of types that have no schema here (D-251)."""
    for at, inner in items_of(resource, "contained"):
        name = inner.get("resourceType") if isinstance(inner, dict) else None
        if isinstance(name, str) and not context.schemas.knows(name):
            problems = element_problems(inner, is_of_type=context.schemas.accepts_primitive)
            yield (issue.below(place) for place, issue in zip(repeat(at), problems, strict=False))


def check_submission(
    submission: Submission, context: Context, tenant_id: str
) -> Iterator[Iterable[Issue]]:
    """Every rule about a structurally valid submission, an iterable for each group of them."""
    rules = context.rules_for(tenant_id)
    resource = submission.entry.resource
    yield each_below(submission.entry, status(resource, submission.type.create_statuses))
    if submission.envelope is not None:
        yield refuse_modifiers(submission.envelope)
    yield from check_resource(
        submission.entry, submission.type, submission.documents, context, rules
    )
    for key, entry in submission.parts.items():
        yield from about_unusual_elements(entry)
        yield _of_plugin(submission.declared[key].rules, entry, rules)
    yield references.references_to_untaken(submission)
    yield each_below(submission.entry, references.references_to_parts(submission))
    yield each_below(submission.entry, references.other_references(submission, context))
    yield each_below(submission.entry, organization_in_system(submission, tenant_id))


def check_resource(
    entry: Entry,
    resource_type: ResourceType,
    documents: Sequence[Document],
    context: Context,
    rules: RuleContext,
) -> Iterator[Iterable[Issue]]:
    """Every rule about the resource alone, at registration as at update, in groups."""
    yield from about_unusual_elements(entry)
    resource, hash_check = entry.resource, context.config.fhir.hash_check
    yield each_below(entry, check_attachments(resource, resource_type, documents, hash_check))
    yield each_below(entry, merge_places_of(codings(resource, resource_type.codings, rules)))
    yield _of_plugin(resource_type.rules, entry, rules)


def merge_places_of(issues: Iterable[Issue]) -> Iterator[Issue]:
    """Merge issues of several places only when they are asked for."""
    yield from merge_places(issues)


def _of_plugin(declared: Rules, entry: Entry, context: RuleContext) -> Iterator[Issue]:
    """Call rules only when their issues are asked for."""
    yield from declared(entry, context)


def status(resource: Mapping[str, Any], allowed: frozenset[str]) -> Iterator[Issue]:
    """One of the statuses of this operation."""
    sent = resource.get("status")
    if not isinstance(sent, str) or sent not in allowed:
        meant = suggest_code(sent, sorted(allowed)) if isinstance(sent, str) else ""
        rule = f"must be one of {', '.join(sorted(allowed))}{meant}"
        yield Issue.error(ContentProblem.STATUS_NOT_ALLOWED, rule, "status")


def state_flow(
    before: Mapping[str, Any], after: Mapping[str, Any], resource_type: ResourceType
) -> Iterator[Issue]:
    """A status that may follow the one before, which may be itself (D-114, D-115)."""
    old, new = before["status"], after["status"]
    following = resource_type.state_flow.get(old, frozenset())
    if new in following:
        return
    allowed = ", ".join(sorted(following)) or "nothing"
    if new == old:
        rule = f"a {resource_type.name} that is {old} is updated with another status: {allowed}"
    else:
        rule = f"{new} cannot follow {old}; what can: {allowed}"
    yield Issue.error(ContentProblem.STATUS_OUT_OF_ORDER, rule, "status")


def codings(
    resource: JsonObject, elements: Sequence[str], rules: RuleContext, *, below: str = ""
) -> Iterator[Issue]:
    """Warnings about codes that no value set we hold has; ``below`` a place, if there is one."""
    prefix, terminology = f"{below}." if below else "", rules.terminology
    for element in elements:
        for at, concept in items_of(resource, element):
            if "coding" not in concept:  # a single Coding, or a concept with text only
                yield from terminology.coding_issues(concept, f"{prefix}{at}")
            for index, coding in enumerate(concept.get("coding", ())):
                if not terminology.knows(coding):
                    place = f"{prefix}{at}.coding[{index}]"
                    yield from terminology.coding_issues(coding, place)


def write_narratives_in_characters(submission: Submission) -> None:
    """Rewrite entities of HTML, such as ``&nbsp;``, wherever a narrative stands (D-68)."""
    for entry in (submission.entry, *submission.parts.values()):
        for element in () if entry.is_plain else entry.rule_targets:
            if "div" in element:
                element["div"] = in_characters(element["div"])


def all_times_as_utc(submission: Submission, context: Context) -> Iterator[Issue]:
    """Convert the times of a submission and of its members to UTC, each as declared."""
    entry, paths = submission.entry, submission.type.times
    for issue in times_as_utc(entry.resource, paths, context):
        yield issue.below(entry.at)
    for key, member in submission.members.items():
        paths = submission.declared[key].times
        yield from each_below(member, times_as_utc(member.resource, paths, context))


def times_as_utc(resource: JsonObject, paths: Sequence[str], context: Context) -> Iterator[Issue]:
    """Convert times to UTC; warn when a zone was assumed (D-65). Changes the resource.

    A time beside a date, in one Period, keeps its offset: the date has none to go with it.
    """
    for path in paths:
        head, _, rest = path.partition(".")
        if head not in resource:
            continue
        for holder, name, at in values_at(resource, path) if rest else ((resource, head, head),):
            text = holder[name]
            if not isinstance(text, str) or is_plain_utc(text):
                continue
            try:
                time = to_utc(text, default_zone=context.default_zone)
            except UnstorableTime as problem:
                yield Issue.error(ContentProblem.TIME_INVALID, str(problem), at)
                continue
            if time is None:
                continue
            holder[name] = time.local if is_date_beside_time(holder) else time.text
            if time.zone_assumed:
                zone = context.config.fhir.default_timezone
                rule = f"has no offset: read as {zone}"
                yield Issue.warning(ContentProblem.TIME_ZONE_ASSUMED, rule, at)


def each_below(entry: Entry, issues: Iterable[Issue]) -> Iterator[Issue]:
    """Yield issues of a resource with their places in the request."""
    for issue in issues:
        yield issue.below(entry.at)
