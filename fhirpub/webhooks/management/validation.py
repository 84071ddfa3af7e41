"""Validation of an endpoint's fields: all problems at once, each with its path."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from fhirpub.errors import MAX_ISSUES, InvalidContent, Issue
from fhirpub.problems import ContentProblem, OperationProblem
from fhirpub.storage.webhook_contract import Ordering, Payload
from fhirpub.suggestion import did_you_mean
from fhirpub.webhooks.management.event_types import VERIFICATION, EventTypes
from fhirpub.webhooks.transport.sender import Sender
from fhirpub.webhooks.transport.signing import BadSecret, key_of

MAX_DESCRIPTION_LENGTH = 200
MAX_TOKEN_LENGTH = 1024
MAX_PATTERNS = 50
MAX_GRACE_SECONDS = 604_800

CHANGEABLE = ("url", "event_types", "payload", "ordering", "description")
NEW = (*CHANGEABLE, "bearer_token", "signing_secret")
NEW_SECRET = ("grace_seconds", "signing_secret")
NEW_TOKEN = ("bearer_token",)
TEST = ("event_type",)

_TOKEN = re.compile(r"[\x21-\x7e]+")
_CHOICES = {"payload": typing.get_args(Payload), "ordering": typing.get_args(Ordering)}


async def validate_endpoint(
    fields: Any,
    *,
    known: Collection[str],
    tenant: str,
    sender: Sender,
    event_types: EventTypes,
    trusted: bool = False,
) -> dict[str, Any]:
    """Return the fields of a tenant's endpoint, its ``url`` in canonical form.

    ``trusted``: the operator has sent them, and may name a sink. Raises InvalidContent.
    """
    if not isinstance(fields, Mapping):
        raise InvalidContent.because(
            "the body must be a JSON object", details=ContentProblem.BODY_UNEXPECTED
        )
    issues = [*refuse_unknown_fields(fields, known), *_problems(fields, event_types)]
    values = dict(fields)
    if isinstance(fields.get("url"), str):
        try:
            values["url"] = await sender.address(fields["url"], tenant=tenant, trusted=trusted)
        except InvalidContent as problem:
            issues += problem.issues
    if issues:
        raise InvalidContent(issues)
    return values


def refuse_unknown_fields(fields: Mapping[str, Any], known: Collection[str]) -> Iterator[Issue]:
    """Refuse unknown fields, up to the number that one refusal lists: suggestions take time."""
    for name in islice((field for field in fields if field not in known), MAX_ISSUES):
        advice = did_you_mean(name, known) or f"known are {', '.join(known)}"
        rule = f"is not a field here; {advice}"
        yield Issue.error(OperationProblem.FIELD_UNKNOWN, rule, name)


def _problems(fields: Mapping[str, Any], event_types: EventTypes) -> Iterator[Issue]:
    if "event_types" in fields:
        yield from _pattern_problems(fields["event_types"], event_types)
    if "event_type" in fields:
        yield from _sample_problems(fields["event_type"], event_types)
    for name, choices in _CHOICES.items():
        if name in fields and fields[name] not in choices:
            yield wrong(f"must be one of {', '.join(choices)}", name)
    if "grace_seconds" in fields and not _is_grace(fields["grace_seconds"]):
        yield wrong(f"must be a whole number from 0 to {MAX_GRACE_SECONDS}", "grace_seconds")
    for name in _TEXTS.keys() & fields.keys():
        value = fields[name]
        missing = "is required" if value is None else "must be a string"
        rule = _TEXTS[name](value) if isinstance(value, str) else missing
        if rule:
            yield wrong(rule, name)


def _is_grace(value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and 0 <= value <= MAX_GRACE_SECONDS


def _pattern_problems(patterns: Any, event_types: EventTypes) -> Iterator[Issue]:
    if not isinstance(patterns, list) or not 1 <= len(patterns) <= MAX_PATTERNS:
        yield wrong(f"must be a list of 1 to {MAX_PATTERNS} names or patterns", "event_types")
        return
    for number, pattern in enumerate(patterns):
        place = f"event_types[{number}]"
        if not isinstance(pattern, str):
            yield wrong("must be a string", place)
        elif rule := event_types.problem(pattern):
            yield wrong(rule, place)


def _sample_problems(name: Any, event_types: EventTypes) -> Iterator[Issue]:
    if not isinstance(name, str):
        yield wrong("must be a string", "event_type")
    elif name == VERIFICATION:
        yield wrong("is sent by a verification alone", "event_type")
    elif rule := event_types.problem_of_name(name):
        yield wrong(rule, "event_type")


def _description_problem(text: str) -> str:
    if len(text) > MAX_DESCRIPTION_LENGTH:
        return f"has more than {MAX_DESCRIPTION_LENGTH} characters"
    return "" if text.isprintable() else "holds characters that cannot be shown"


def _token_problem(text: str) -> str:
    # It stands in a header: a line end in it would begin another one.
    if not _TOKEN.fullmatch(text) or len(text) > MAX_TOKEN_LENGTH:
        return f"must be of 1 to {MAX_TOKEN_LENGTH} visible ASCII characters, without blanks"
    return ""


def _secret_problem(text: str) -> str:
    try:
        key_of(text)
    except BadSecret as problem:
        return f"is not usable: {problem}"
    return ""


_TEXTS: Mapping[str, Callable[[str], str]] = {
    "url": lambda _text: "",  # validated by the sender, which resolves its host
    "description": _description_problem,
    "bearer_token": _token_problem,
    "signing_secret": _secret_problem,
}


def wrong(rule: str, place: str) -> Issue:
    """Return the sentence about an invalid value."""
    return Issue.error(OperationProblem.FIELD_INVALID, rule, place)


def settings_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return validated fields under the names of the record."""
    settings = {name: values[name] for name in CHANGEABLE if name in values}
    if "event_types" in settings:
        settings["events"] = tuple(dict.fromkeys(settings.pop("event_types")))
    return settings
