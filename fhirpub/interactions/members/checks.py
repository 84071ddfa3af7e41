"""Rules about the members of a submission, beside those of every part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fhirpub.errors import Issue
from fhirpub.fhir.elements import items_of
from fhirpub.interactions.checks.merged_places import merge_places
from fhirpub.interactions.context import Context
from fhirpub.interactions.rules import codings, status
from fhirpub.interactions.submission.keys import key_of
from fhirpub.interactions.submission.record import Submission
from fhirpub.plugin_api import Entry, RuleContext
from fhirpub.problems import ContentProblem
from fhirpub.tenant import is_member_id, is_resource_id

_ID_LENGTH = 36


def check_members(
    submission: Submission, context: Context, tenant_id: str
) -> Iterator[Iterable[Issue]]:
    """Yield every rule about structurally valid members, an iterable for each group of them."""
    if not submission.members:
        return
    yield _statuses(submission)
    yield _codings(submission, context.rules_for(tenant_id))
    yield _repeated_keys(submission)
    yield _dangling_references(submission, context)
    yield _cycles(submission)
    yield _members_without_references(submission)
    yield _members_without_patient(submission)


def merge_remarks(issues: Iterable[Issue], submission: Submission) -> list[Issue]:
    """Return one remark for all places of the same: forty results may have what one has."""
    found = list(issues)
    if not submission.members:
        return found
    errors = [issue for issue in found if issue.severity == "error"]
    return [*errors, *merge_places(issue for issue in found if issue.severity != "error")]


def _statuses(submission: Submission) -> Iterator[Issue]:
    for key, entry in submission.members.items():
        allowed = submission.declared[key].statuses
        if allowed:
            yield from (issue.below(entry.at) for issue in status(entry.resource, allowed))


def _codings(submission: Submission, context: RuleContext) -> Iterator[Issue]:
    for key, entry in submission.members.items():
        elements = submission.declared[key].codings
        yield from codings(entry.resource, elements, context, below=entry.at)


def _repeated_keys(submission: Submission) -> Iterator[Issue]:
    """No two members may be the same resource: they would have one id."""
    places: dict[tuple[str, ...], str] = {}
    for key, entry in submission.members.items():
        identity = (submission.declared[key].name, *key_of(entry.resource))
        first = places.setdefault(identity, entry.at)
        if first != entry.at:
            rule = f"is the identifier of {first}, too: use one of its own, or none"
            at = f"{entry.at}.identifier"
            yield Issue.error(ContentProblem.ENTRY_REPEATED, rule, at)


def _dangling_references(submission: Submission, context: Context) -> Iterator[Issue]:
    """A local reference to a type that was sent must lead to one of the entries.

    The registered resource itself may refer to another patient or organization (D-35).
    """
    members = {entry.resource["resourceType"] for entry in submission.members.values()}
    every = {entry.resource["resourceType"] for entry in submission.parts.values()}
    yield from _dangling_in(submission.entry, members, submission, context)
    for entry in submission.members.values():
        yield from _dangling_in(entry, every, submission, context)


def _dangling_in(
    entry: Entry, sent: set[str], submission: Submission, context: Context
) -> Iterator[Issue]:
    for element in entry.rule_targets:
        literal = element.get("reference")
        if not isinstance(literal, str) or literal in submission.local:
            continue
        type_name, _, local_id = literal.partition("/")
        if type_name in sent and not _may_be_ours(type_name, local_id[:_ID_LENGTH], context):
            rule = f"leads to no entry: there is no {type_name} with this id"
            at = f"{entry.at}.{entry.place_of(element)}.reference"
            yield Issue.error(ContentProblem.REFERENCE_UNRESOLVED, rule, at)


def _may_be_ours(type_name: str, resource_id: str, context: Context) -> bool:
    """Return whether an id has the form of those that we give to resources of a type.

    Senders take random UUIDs as local ids: of a type that comes only with others, they are not
    of our form, so that a mistaken one is noticed.
    """
    is_only_member = type_name in context.members and type_name not in context.types
    return is_resource_id(resource_id) and (is_member_id(resource_id) or not is_only_member)


def _cycles(submission: Submission) -> Iterator[Issue]:
    """Elements that a part declares as acyclic lead from no member back to it."""
    leading: dict[str, list[str]] = {}
    for key, entry in submission.members.items():
        for element in submission.declared[key].acyclic:
            for _at, item in items_of(entry.resource, element):
                target = submission.local.get(item.get("reference", ""))
                if target is not None:
                    leading.setdefault(key, []).append(target)
    for key in _on_cycles(leading):
        entry = submission.parts[key]
        elements = " or ".join(submission.declared[key].acyclic)
        rule = f"leads back to itself by {elements}"
        yield Issue.error(ContentProblem.REFERENCE_WRONG, rule, entry.at)


def _on_cycles(leading: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield one member of each cycle, by a search in depth without recursion."""
    done: set[str] = set()
    for start in leading:
        path: dict[str, Iterator[str]] = {start: iter(leading[start])} if start not in done else {}
        while path:
            key = next(reversed(path))
            target = next(path[key], None)
            if target is None:
                done.add(key)
                del path[key]
            elif target in path:
                yield target
            elif target in leading and target not in done:
                path[target] = iter(leading[target])


def _members_without_references(submission: Submission) -> Iterator[Issue]:
    """Warn of what no reference leads to: readers of the report would not see it."""
    led_to = {
        submission.local.get(element["reference"])
        for entry in (submission.entry, *submission.parts.values())
        for element in entry.rule_targets
        if isinstance(element.get("reference"), str)
    }
    for key, entry in submission.members.items():
        if key not in led_to:
            rule = "is stored, but no reference leads to it: readers of the report will not see it"
            yield Issue.warning(ContentProblem.ENTRY_UNREFERENCED, rule, entry.at)


def _members_without_patient(submission: Submission) -> Iterator[Issue]:
    """Warn of what says of no patient that it is theirs."""
    for key, entry in submission.members.items():
        element = submission.declared[key].patient
        if element and element not in entry.resource:
            rule = f"{element} is missing: a search by patient will not find it"
            yield Issue.warning(ContentProblem.ELEMENT_RECOMMENDED, rule, entry.at)
