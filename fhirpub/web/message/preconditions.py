"""Preconditions of a request (RFC 9110, 13.1): If-Match, If-None-Match, If-Unmodified-Since."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fhirpub.errors import PreconditionRequired, VersionConflict, VersionReplaced
from fhirpub.fhir.times import from_http, http_date
from fhirpub.problems import RequestProblem
from fhirpub.storage.contract import Version

_TAG = re.compile(r'(?:W/)?"([^"]*)"')
_VERSION = re.compile("[1-9][0-9]{0,9}")


class MalformedPrecondition(VersionConflict):
    """A version is named by something that is no entity tag, which no version has."""

    details = RequestProblem.PRECONDITION_MALFORMED


def check_if_match(if_match: Sequence[str], current: int | str) -> None:
    """Raise VersionConflict unless the current version is among the tags (D-116, D-117).

    ``if_match`` holds the value of each such header: ``W/"3"``, ``"3"``, a list of tags, or ``*``.
    """
    named = ",".join(if_match)
    if not if_match or named.strip() == "*":
        return
    tags = [] if _TAG.sub("", named).strip(" \t,") else _TAG.findall(named)
    if str(current) in tags:
        return
    if not tags:
        raise MalformedPrecondition(
            target=repr(named[:64]), current=f'{current}: send If-Match: W/"{current}"'
        )
    first = tags[0]
    target = first if first.isascii() and first.isdecimal() else repr(first[:64])
    conflict = VersionReplaced if _name_earlier(tags, str(current)) else VersionConflict
    raise conflict(target=target, current=current)


def _name_earlier(tags: Sequence[str], current: str) -> bool:
    """Return whether one of the tags is that of a version before the current one."""
    if not _VERSION.fullmatch(current):
        return False
    return any(_VERSION.fullmatch(tag) and int(tag) < int(current) for tag in tags)


def includes_tag(if_none_match: str, tag: str) -> bool:
    """Return whether If-None-Match includes a tag, by weak comparison (RFC 9110, 13.1.2)."""
    return if_none_match.strip() == "*" or tag in _TAG.findall(if_none_match)


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The conditions on a version that the headers state; If-Match takes precedence (D-267)."""

    if_match: Sequence[str] = ()
    unmodified_since: str = ""
    if_none_match: Sequence[str] = ()

    def require_if_match(self) -> None:
        """Raise PreconditionRequired without If-Match.

        A date does not do: two versions may be of the same second.
        """
        if not self.if_match:
            raise PreconditionRequired

    def check(self, latest: Version) -> None:
        """Raise VersionConflict unless they hold.

        A date that cannot be parsed is ignored (RFC 9110, 13.1.4). An HTTP-date has a resolution
        of one second: a version of that same second does not count as newer.
        """
        if self.if_match:
            check_if_match(self.if_match, latest.tag)
        elif self.unmodified_since:
            self._check_date(latest)
        if includes_tag(",".join(self.if_none_match), latest.tag):
            raise VersionConflict(target="other than the current", current=latest.tag)

    def _check_date(self, latest: Version) -> None:
        moment = from_http(self.unmodified_since)
        unit = 1 if moment is None or moment % 1000 else 1000
        if moment is not None and latest.updated // unit > moment // unit:
            raise VersionConflict(target=f"of {http_date(moment)}", current=latest.tag)


NONE = Preconditions()
