"""Elements that few resources have, and that can change or cover what the others mean."""

from __future__ import annotations

from collections.abc import Iterator

from fhirpub.errors import Issue
from fhirpub.fhir.narrative import narrative_warnings
from fhirpub.plugin_api import Entry
from fhirpub.problems import ContentProblem

_MODIFIERS = frozenset({"modifierExtension", "implicitRules", "_implicitRules"})


def about_unusual_elements(entry: Entry) -> Iterator[Iterator[Issue]]:
    """Yield the issues of modifiers, then those of narratives; a plain resource has neither."""
    if not entry.is_plain:
        yield refuse_modifiers(entry)
        yield warn_of_narratives(entry)


def refuse_modifiers(entry: Entry) -> Iterator[Issue]:
    """What must be understood or refused is refused (D-38)."""
    for element in entry.rule_targets:
        if _MODIFIERS.isdisjoint(element):
            continue
        for name in sorted(_MODIFIERS & element.keys()):
            names = (entry.at, entry.place_of(element), name.removeprefix("_"))
            at = ".".join(filter(None, names))
            rule = "is not supported, because it changes meanings: leave it out"
            yield Issue.error(ContentProblem.MODIFIER_UNSUPPORTED, rule, at)


def warn_of_narratives(entry: Entry) -> Iterator[Issue]:
    """Warnings about narratives that cover content or load images (D-299)."""
    for element in entry.rule_targets:
        for rule in narrative_warnings(str(element.get("div", ""))):
            at = f"{entry.at}.{entry.place_of(element)}.div"
            yield Issue.warning(ContentProblem.NARRATIVE_QUESTIONABLE, rule, at)
