"""The parameters of a search that define what its answer looks like (D-126 to D-138)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fhirpub.errors import Issue
from fhirpub.interactions.context import Context
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.interactions.search.includes import Include, parse_include
from fhirpub.interactions.versions import MAX_COUNTED
from fhirpub.problems import OperationProblem
from fhirpub.storage.criteria import ID, IDENTIFIER, LAST_UPDATED, NEWEST_FIRST, Order

_ITERATE = "iterate"
_SUMMARIES = frozenset({"true", "text", "data", "count", "false"})
_TOTALS = frozenset({"none", "estimate", "accurate"})
_MAX_ELEMENTS = 200
_MAX_INCLUDES = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """One parameter of a request, taken apart: ``name:modifier.further=value``."""

    whole: str
    name: str
    modifier: str
    further: str
    value: str


class PageReading:
    """What has been read of these parameters so far."""

    def __init__(self, searched: SearchIndexer, context: Context) -> None:
        """Begin with nothing."""
        self.count = context.config.fhir.page_size
        self.count_up_to: int | None = MAX_COUNTED
        self.summary = ""
        self.elements = ""
        self.included: dict[Include, None] = {}
        self.issues: list[Issue] = []
        self._order: dict[tuple[str, str | None], Order] = {}
        self._searched = searched
        self._types = context.searched

    @property
    def readers(self) -> Mapping[str, Callable[[Asked], bool]]:
        """The methods that read a parameter, each with its name."""
        return {
            "_count": self._count,
            "_sort": self._sort,
            "_total": self._total,
            "_summary": self._summary,
            "_elements": self._elements,
            "_include": self._include,
            "_revinclude": self._include,
        }

    @property
    def order(self) -> tuple[Order, ...]:
        """The order that is asked for, or the newest first."""
        return tuple(self._order.values()) or NEWEST_FIRST

    def finish(self) -> None:
        """Look at what parameters mean together."""
        if self.elements and self.summary not in ("", "false"):
            self.wrong("_summary", "cannot go with _elements")
        if self.included and self.summary == "text":
            self.wrong("_summary", "cannot be text together with _include")

    def _count(self, asked: Asked) -> bool:
        value = asked.value
        if value.isascii() and value.isdecimal() and len(value) < 10:
            self.count = int(value)
        else:
            self.wrong("_count", "must be a whole number of at least 0")
        return self._refuse_modifier(asked)

    def _sort(self, asked: Asked) -> bool:
        order = []
        for text in asked.value.split(","):
            name, kind = text.removeprefix("-"), None
            known = self._searched.parameters.get(name)
            if known is not None and known.is_sortable:
                name, kind = known.stored, known.kind
            elif name not in (ID, IDENTIFIER, LAST_UPDATED):
                return False
            order.append(Order(name, descending=text.startswith("-"), kind=kind))
        for item in order:  # a name that comes again has nothing left to sort
            self._order.setdefault((item.name, item.kind), item)
        return self._refuse_modifier(asked)

    def _total(self, asked: Asked) -> bool:
        if asked.value not in _TOTALS:
            self.wrong("_total", "must be none, estimate or accurate")
        self.count_up_to = 0 if asked.value == "none" else None
        return self._refuse_modifier(asked)

    def _summary(self, asked: Asked) -> bool:
        if asked.value not in _SUMMARIES:
            self.wrong("_summary", "must be true, text, data, count or false")
        self.summary = asked.value
        return self._refuse_modifier(asked)

    def _elements(self, asked: Asked) -> bool:
        if asked.value.count(",") >= _MAX_ELEMENTS:  # they are read for each entry of a page
            self.wrong("_elements", f"must not have more than {_MAX_ELEMENTS} names")
        self.elements = asked.value
        return self._refuse_modifier(asked)

    def _include(self, asked: Asked) -> bool:
        if asked.modifier not in ("", _ITERATE):
            self.refuse_modifiers(asked, _ITERATE)
            return not asked.further
        include = parse_include(
            asked.value,
            self._searched.type.name,
            self._types,
            reverse=asked.name == "_revinclude",
            iterate=asked.modifier == _ITERATE,
        )
        if include is None or asked.further:
            return False
        self.included[include] = None
        if len(self.included) > _MAX_INCLUDES:  # each may take a search of its own
            self.wrong(asked.name, f"must not stand more than {_MAX_INCLUDES} times")
        return True

    def _refuse_modifier(self, asked: Asked) -> bool:
        if asked.modifier:
            self.refuse_modifiers(asked)
        return not asked.further

    def refuse_modifiers(self, asked: Asked, *known: str) -> None:
        """Note that a parameter has not the modifier that it was sent with."""
        has = ", ".join(f":{name}" for name in known) or "none"
        self.wrong(asked.name, f"does not support this modifier; it has {has}")

    def wrong(self, name: str, rule: str) -> None:
        """Note that a parameter breaks a rule."""
        self.issues.append(Issue.error(OperationProblem.PARAMETER_INVALID, rule, name))
