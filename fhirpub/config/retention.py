"""The settings of retention: which resources are erased after some time."""

# ruff: noqa: FBT003, RUF009 - each setting has its default and its meaning side by side

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fhirpub.config.reader import setting as _setting

_POLICY = re.compile(
    r"(?P<type>[A-Z][A-Za-z]+)(\?status=(?P<statuses>[a-z][a-z,-]*))? "
    r"after (?P<days>[1-9][0-9]{0,5}) days"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionConfig:
    """Retention: erase resources that have not changed for some time."""

    policies: list[str] = _setting(
        [],
        "What is erased, and when, such as `DiagnosticReport?status=entered-in-error after 90 "
        "days` and `DiagnosticReport after 3650 days`. The time begins with the newest version. A "
        "resource goes as soon as one policy says so, unless it is on hold (`fhirpub hold`).",
    )
    erase: bool = _setting(
        False,
        "Erase once a day what the policies name. false: the service only logs how many resources "
        "they name; `fhirpub erase expired --dry-run` shows them.",
    )
    erasures_per_minute: int = _setting(
        60,
        "Maximum number of resources that the daily round erases in a minute.",
    )


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy: which resources, and after how many days without a change."""

    text: str
    type: str
    statuses: tuple[str, ...]
    days: int


def policies_of(config: RetentionConfig) -> list[Policy]:
    """Return the policies of valid settings."""
    return [policy for text in config.policies if (policy := _read(text)) is not None]


def wrong_policies(policies: Sequence[str]) -> list[str]:
    """Return a message for each policy that cannot be read."""
    return [
        f"[retention] policies: {text!r} must be like 'DiagnosticReport?status=entered-in-error "
        "after 90 days' or 'DiagnosticReport after 3650 days'"
        for text in policies
        if _read(text) is None
    ]


def _read(text: str) -> Policy | None:
    match = _POLICY.fullmatch(text)
    if match is None:
        return None
    statuses = tuple(filter(None, (match["statuses"] or "").split(",")))
    return Policy(text, match["type"], statuses, int(match["days"]))
