"""Whether a narrative is still true after an update (D-123).

What an update changes may be stated in the narrative, in any words. Only of a status and of
documents can it be seen that they are not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from html import unescape
from typing import Any

from fhirpub.errors import Issue
from fhirpub.fhir.document import attachments_of, is_marker
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.problems import OperationProblem

WITHDRAWN = "entered-in-error"
_TO_BE_SHOWN = frozenset({WITHDRAWN, "cancelled"})
"""Statuses without which the rest of a narrative misleads."""
_MADE_FROM_DATA = frozenset({"generated", "extensions"})
_TAG = re.compile("<[^<>]*>")
_ABOUT_STATUS = re.compile("stat(?:us|ut|o)|estad|état")
"""The word for a status in some languages; the status behind it may be in any of them."""
_STEM = 5
"""So many letters of a status are the same in several languages: prelimin-ary, -ar, -aire."""


def refuse_untrue(before: JsonObject, after: JsonObject, type_name: str) -> Iterator[Issue]:
    """Report a narrative that people wrote, which an update could make untrue.

    A resource can be withdrawn all the same: nothing in it counts then.
    """
    status = before.get("text", {}).get("status")
    if status == "additional" and after.get("status") != WITHDRAWN:
        rule = "holds more than the data, so that an update could make it untrue"
        at = f"{type_name}.text"
        yield Issue.error(OperationProblem.NARRATIVE_OUTDATED, rule, at)


def is_contradicted(
    before: JsonObject, after: JsonObject, names: Collection[str], attachments: Collection[str]
) -> bool:
    """Return whether an update may have made a narrative untrue that was made from the data.

    ``names`` are the members that the update names; a narrative among them is a new one.
    """
    narrative = after.get("text")
    if narrative is None or "text" in names or narrative.get("status") not in _MADE_FROM_DATA:
        return False
    changed = {name for name in names if before.get(name) != after.get(name)}
    if not changed:
        return False
    if changed - {"status", *attachments}:
        return True
    text = _folded(unescape(_TAG.sub(" ", narrative.get("div", ""))))
    if "status" in changed and _shows_status(text, before, after):
        return True
    return any(one in text for one in _texts_gone(before, after, attachments))


def _shows_status(text: str, before: JsonObject, after: JsonObject) -> bool:
    stem = str(before.get("status", ""))[:_STEM]
    return after["status"] in _TO_BE_SHOWN or stem in text or bool(_ABOUT_STATUS.search(text))


def _texts_gone(
    before: JsonObject, after: JsonObject, attachments: Collection[str]
) -> Iterator[str]:
    """Yield what documents stated about themselves, and do not state any more."""
    there = {_folded(text) for text in _texts_of(after, attachments)}
    for text in _texts_of(before, attachments):
        if (one := _folded(text)) and one not in there:
            yield one


def _texts_of(resource: Mapping[str, Any], attachments: Collection[str]) -> Iterator[str]:
    for _at, attachment in attachments_of(resource, [*attachments]):
        for name in ("title", "url", "hash", "creation"):
            if isinstance(text := attachment.get(name), str) and not is_marker(text):
                yield text


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
