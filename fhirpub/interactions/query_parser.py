"""From the parameters of a search to what is asked of the store (R4 search; D-125 to D-138)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fhirpub.errors import Issue, SearchTooCostly
from fhirpub.interactions.context import Context
from fhirpub.interactions.cursors import CURSOR
from fhirpub.interactions.parameters import ResolvedParameter, SearchIndexer
from fhirpub.interactions.value_parser import ValueParser
from fhirpub.interactions.versions import MAX_COUNTED
from fhirpub.problems import OperationProblem
from fhirpub.storage.criteria import (
    ANYTHING,
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    NEWEST_FIRST,
    Criterion,
    Order,
    TimeMatch,
    TokenMatch,
)
from fhirpub.tenant import Tenant, is_resource_id

IGNORED = frozenset({"_format", "_pretty"})

_NAME = re.compile(r"(?P<name>[^:.]+)(?::(?P<modifier>[^.]*))?(?:\.(?P<further>.+))?", re.DOTALL)
_TYPE = re.compile(r"[A-Z][A-Za-z]*")
_SUMMARIES = frozenset({"true", "text", "data", "count", "false"})
_TOTALS = frozenset({"none", "estimate", "accurate"})
_LAST_COUNTS = frozenset({"_count", "_elements", "_summary", "_total"})
"""Parameters of which the last one is used, if they repeat."""
MAX_CONDITIONS = 50
_MAX_ELEMENTS = 200

TOO_MANY_CONDITIONS = (
    f"a search has at most {MAX_CONDITIONS} conditions, and each date and each system of a list "
    "is one: send fewer"
)

_Match = TokenMatch | TimeMatch


@dataclass(frozen=True, slots=True)
class _Asked:
    """One parameter of a request, taken apart: ``name:modifier.further=value``."""

    whole: str
    name: str
    modifier: str
    further: str
    value: str


class Reading:
    """What has been read of the parameters so far."""

    def __init__(self, searched: SearchIndexer, tenant: Tenant, context: Context) -> None:
        """Begin with nothing."""
        self.count = context.config.fhir.page_size
        self.cursor = ""
        self.ids: frozenset[str] | None = None
        self.identifiers: list[tuple[TokenMatch, ...]] = []
        self.criteria: list[Criterion] = []
        self.count_up_to: int | None = MAX_COUNTED
        self.summary = ""
        self.elements = ""
        self.included: set[str] = set()
        self.understood: list[tuple[str, str]] = []
        self.unknown: list[str] = []
        self.empty: list[str] = []
        self.issues: list[Issue] = []
        self._order: dict[str, Order] = {}
        self._conditions = 0
        self._searched = searched
        self._tenant = tenant
        self._values = ValueParser(
            searched,
            tenant,
            clock=context.clock,
            wrong=self._wrong,
            max_values=context.config.limits.search_values,
        )
        self._readers: dict[str, Callable[[_Asked], bool]] = {
            IDENTIFIER: self._identifier,
            ID: self._id,
            LAST_UPDATED: self._last_updated,
            "_count": self._count,
            "_sort": self._sort,
            "_total": self._total,
            "_summary": self._summary,
            "_elements": self._elements,
            "_include": self._include,
        }

    @property
    def order(self) -> tuple[Order, ...]:
        """The order that is asked for, or the newest first."""
        return tuple(self._order.values()) or NEWEST_FIRST

    @property
    def longest(self) -> str:
        """The parameter with the most values; empty if none has several."""
        return self._values.longest

    def take(self, name: str, value: str) -> None:
        """Take one parameter: known, ignored, or unknown.

        Raises SearchTooCostly if there are too many conditions or values by now (D-289).
        """
        if name in IGNORED:
            return
        if not value:
            self.empty.append(name)
            return
        if name == CURSOR:
            self.cursor = value
            return
        match = _NAME.fullmatch(name)
        if match is None:
            self.unknown.append(name)
            return
        asked = _Asked(name, match["name"], match["modifier"] or "", match["further"] or "", value)
        read = self._readers.get(asked.name, self._parameter)
        if read(asked):
            if self._conditions > MAX_CONDITIONS:
                raise SearchTooCostly.because(
                    TOO_MANY_CONDITIONS,
                    expression=asked.name,
                    details=OperationProblem.SEARCH_TOO_COSTLY,
                )
            if name in _LAST_COUNTS:  # the link "self" lists what was used
                self.understood = [item for item in self.understood if item[0] != name]
            self.understood.append((name, value))
        else:
            self.unknown.append(name)

    def finish(self) -> None:
        """Look at what parameters mean together."""
        if self.elements and self.summary not in ("", "false"):
            self._wrong("_summary", "cannot go with _elements")
        if self.included and self.summary == "text":
            self._wrong("_summary", "cannot be text together with _include")

    # Parameters that every resource has.

    def _identifier(self, asked: _Asked) -> bool:
        if asked.modifier or asked.further:
            return self._token(IDENTIFIER, asked)
        matches = self._values.tokens(asked.name, asked.value)
        # Every identifier here has a system, so that "|value" never matches.
        matches = [match for match in matches if match.system != ""]
        if all(match.system and match.value for match in matches):
            # The id follows from system and value: no index is needed.
            self._narrow(
                self._tenant.resource_id(
                    self._searched.type.name, match.system or "", match.value or ""
                )
                for match in matches
            )
        else:
            self.identifiers.append(tuple(matches))
            self._conditions += _count_systems(matches)
        return True

    def _id(self, asked: _Asked) -> bool:
        if asked.modifier or asked.further:
            return self._token(ID, asked)
        ids = self._values.ids(ID, asked.value)
        if ids is not None:
            self._narrow(id_ for id_ in ids if is_resource_id(id_))
        return True

    def _narrow(self, ids: Iterable[str]) -> None:
        found = frozenset(ids)
        self.ids = found if self.ids is None else self.ids & found

    def _last_updated(self, asked: _Asked) -> bool:
        return not asked.further and self._date(LAST_UPDATED, asked)

    # Parameters of the type.

    def _parameter(self, asked: _Asked) -> bool:
        known = self._searched.parameters.get(asked.name)
        if known is None:
            return False
        kind = known.parameter.type
        if kind == "reference":
            if asked.further:
                return self._parse_chain(known, asked)
            return self._reference(known, asked)
        if asked.further:
            return False
        if kind == "token":
            return self._token(known.stored, asked)
        return self._date(known.stored, asked)

    def _token(self, name: str, asked: _Asked) -> bool:
        if asked.further:
            return False
        if asked.modifier == "missing":
            self._missing(name, asked, ANYTHING)
        elif asked.modifier in ("", "not"):
            negated = asked.modifier == "not"
            self._demand(name, self._values.tokens(asked.name, asked.value), negated=negated)
        elif asked.modifier == "of-type" and name in self._searched.typed:
            self._demand(self._searched.typed[name], self._values.typed(asked.name, asked.value))
        else:
            typed = ["of-type"] if name in self._searched.typed else []
            self._no_modifier(asked, "missing", "not", *typed)
        return True

    def _date(self, name: str, asked: _Asked) -> bool:
        if asked.modifier == "missing":
            self._missing(name, asked, ANYTHING)
        elif asked.modifier:
            self._no_modifier(asked, "missing")
        else:
            self._conditions += asked.value.count(",")
            times = self._values.times(asked.name, asked.value)
            if times is not None:
                self._demand(name, times)
        return True

    def _reference(self, known: ResolvedParameter, asked: _Asked) -> bool:
        target = asked.modifier if _TYPE.fullmatch(asked.modifier) else ""
        wanted = TokenMatch(known.target or target or None, None)
        if asked.modifier == "missing":
            self._missing(known.stored, asked, wanted)
        elif asked.modifier and not target:
            self._no_modifier(asked, "missing", known.target or "Patient")
        elif {known.target, target} <= {"", wanted.system}:
            found = self._values.references(asked.name, asked.value, wanted.system)
            self._demand(known.stored, found)
        else:
            self._demand(known.stored, [])
        return True

    def _parse_chain(self, known: ResolvedParameter, asked: _Asked) -> bool:
        """Read ``patient.identifier`` and ``subject:Patient.identifier``."""
        names = self._searched.chains_of(known, asked.modifier)
        further, modified, _modifier = asked.further.partition(":")
        if further != IDENTIFIER or len(names) != 1:
            return False
        if modified:
            self._no_modifier(asked)
        else:
            self._demand(names[0], self._values.tokens(asked.name, asked.value))
        return True

    def _missing(self, name: str, asked: _Asked, anything: TokenMatch) -> None:
        if asked.value in ("true", "false"):
            self._demand(name, [anything], negated=asked.value == "true")
        else:
            self._wrong(asked.name, "takes true or false with :missing")

    def _demand(self, name: str, any_of: Sequence[_Match], *, negated: bool = False) -> None:
        # An engine checks each; tokens of a list and of one system it looks up together.
        self._conditions += _count_systems(any_of)
        self.criteria.append(Criterion(name, tuple(any_of), negated))

    # What the answer is to look like.

    def _count(self, asked: _Asked) -> bool:
        value = asked.value
        if value.isascii() and value.isdecimal() and len(value) < 10:
            self.count = int(value)
        else:
            self._wrong("_count", "must be a whole number of at least 0")
        return self._refuse_modifier(asked)

    def _sort(self, asked: _Asked) -> bool:
        order = []
        for text in asked.value.split(","):
            name = text.removeprefix("-")
            known = self._searched.parameters.get(name)
            if known is not None and known.parameter.type != "reference":
                name = known.stored
            elif name not in (ID, IDENTIFIER, LAST_UPDATED):
                return False
            order.append(Order(name, descending=text.startswith("-")))
        for item in order:  # a name that comes again has nothing left to sort
            self._order.setdefault(item.name, item)
        return self._refuse_modifier(asked)

    def _total(self, asked: _Asked) -> bool:
        if asked.value not in _TOTALS:
            self._wrong("_total", "must be none, estimate or accurate")
        self.count_up_to = 0 if asked.value == "none" else None
        return self._refuse_modifier(asked)

    def _summary(self, asked: _Asked) -> bool:
        if asked.value not in _SUMMARIES:
            self._wrong("_summary", "must be true, text, data, count or false")
        self.summary = asked.value
        return self._refuse_modifier(asked)

    def _elements(self, asked: _Asked) -> bool:
        if asked.value.count(",") >= _MAX_ELEMENTS:  # they are read for each entry of a page
            self._wrong("_elements", f"must not have more than {_MAX_ELEMENTS} names")
        self.elements = asked.value
        return self._refuse_modifier(asked)

    def _include(self, asked: _Asked) -> bool:
        """Read ``DiagnosticReport:patient``, also with ``:Patient`` behind it, or with ``*``."""
        every = self._searched.type
        source, _, rest = asked.value.partition(":")
        name, _, target = rest.partition(":")
        known = self._searched.parameters.get(name)
        if asked.further:
            return False
        if asked.modifier:
            self._no_modifier(asked)
            return True
        if asked.value in ("*", f"{every.name}:*"):
            self.included |= {part.name for part in every.parts}
            return True
        if source != every.name or known is None or known.parameter.type != "reference":
            return False
        self.included |= {
            part.name
            for part in every.parts
            if part.referred_by in known.parameter.paths
            and {target, known.target} <= {"", part.type}
        }
        return True

    def _refuse_modifier(self, asked: _Asked) -> bool:
        if asked.modifier:
            self._no_modifier(asked)
        return not asked.further

    def _no_modifier(self, asked: _Asked, *known: str) -> None:
        has = ", ".join(f":{name}" for name in known) or "none"
        self._wrong(asked.name, f"does not support this modifier; it has {has}")

    def _wrong(self, name: str, rule: str) -> None:
        self.issues.append(Issue.error(OperationProblem.PARAMETER_INVALID, rule, name))


def _count_systems(alternatives: Iterable[TokenMatch | TimeMatch]) -> int:
    """Count the systems that a list names, a token without one being of another; at least 1."""
    tokens = [one for one in alternatives if isinstance(one, TokenMatch)]
    return max(1, len({token.system for token in tokens}))
