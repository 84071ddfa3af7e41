"""From the parameters of a search for AuditEvents to what is asked of the audit trail."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo

from fhirpub.audit.conditions import (
    Condition,
    Interval,
    alternatives,
    by_agent,
    by_code,
    by_entity,
    by_patient,
    by_request,
    by_time,
    intervals_of,
)
from fhirpub.audit.event import (
    ACTION_CODES,
    OUTCOME_CODES,
    PATIENT,
    meaning_of,
    outcome_of,
    subtypes_of,
)
from fhirpub.audit.identity import place_of
from fhirpub.audit.parameters import ORDERS
from fhirpub.audit.record import Members
from fhirpub.errors import Issue, SearchTooCostly
from fhirpub.fhir.date_value import TIME_RULE, split_prefix
from fhirpub.fhir.search_value import plain, token_of, values_of
from fhirpub.problems import OperationProblem

MAX_CONDITIONS = 50
MAX_BLOCKS = 50
"""So many blocks are read for one page at most."""
IGNORED = frozenset({"_format", "_pretty"})
_LAST_COUNTS = frozenset({"_count", "_elements", "_summary"})
_SUMMARIES = frozenset({"true", "text", "data", "false"})
_MAX_ELEMENTS = 200
_NAME = re.compile(r"(?P<name>[^:.]+)(?::(?P<modifier>[^.]*))?", re.DOTALL)
_TYPE = re.compile(r"[A-Z][A-Za-z]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the values of parameters are read by.

    Attributes:
        tenant: The tenant whose trail is searched.
        prefix: What the ids of its events begin with.
        fhir_url: The FHIR base, without a slash at its end.
        issuer: The system of the ids of clients.
        zone: The time zone of times without one.
        now: The time in milliseconds.
        page_size: How many entries a page has, unless it is asked for others.
        page_size_max: How many it has at most.
        max_values: The maximum number of values of all parameters together.
        cursor: The name of the parameter with the place where a page begins.
    """

    tenant: str
    prefix: str
    fhir_url: str
    issuer: str
    zone: tzinfo
    now: int
    page_size: int
    page_size_max: int
    max_values: int
    cursor: str


@dataclass(slots=True)
class AuditSearch:
    """A search as it was understood, and what of it was not.

    Attributes:
        conditions: What a record must meet, all of them.
        ids: The places of the only records that are meant, each a block and a place in it; None
            without ``_id``.
        since: Records are of this time or later.
        until: Records are of this time or before; None: there is no end.
        count: How many entries a page has.
        understood: The parameters that are used.
        unknown: The names of those that are not known.
        empty: The names of those without a value.
        cursor: Where the page begins, empty for the first.
        summary: The value of ``_summary``.
        elements: The value of ``_elements``.
        issues: What is wrong.
    """

    conditions: list[Condition] = field(default_factory=list)
    ids: frozenset[tuple[int, int]] | None = None
    since: int = 0
    until: int | None = None
    count: int = 0
    understood: list[tuple[str, str]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    cursor: str = ""
    summary: str = ""
    elements: str = ""
    issues: list[Issue] = field(default_factory=list)

    def matches(self, record: Members) -> bool:
        """Return whether a record meets all conditions, but those on its id."""
        return all(condition.matches(record) for condition in self.conditions)

    @property
    def keys(self) -> tuple[tuple[int, ...], ...]:
        """Sets of keys: a block with a match has all keys of one of them."""
        return alternatives(self.conditions)


def read_parameters(parameters: Iterable[tuple[str, str]], terms: Terms) -> AuditSearch:
    """Read the parameters of a search; everything that is wrong with them is among its issues.

    Raises SearchTooCostly for too many conditions or values.
    """
    reading = _Reading(terms)
    for name, value in parameters:
        reading.take(name, value)
    search = reading.search
    if search.elements and search.summary not in ("", "false"):
        reading.wrong("_summary", "cannot go with _elements")
    return search


class _Reading:
    """What has been read of the parameters so far."""

    def __init__(self, terms: Terms) -> None:
        self.search = AuditSearch(count=terms.page_size)
        self._terms = terms
        self._values_left = terms.max_values
        self._readers: Mapping[str, Callable[[str, str, str], bool]] = {
            "_id": self._id,
            "_lastUpdated": self._date,
            "action": self._code,
            "agent": self._agent,
            "date": self._date,
            "entity": self._entity,
            "outcome": self._code,
            "patient": self._patient,
            "subtype": self._code,
            "_count": self._count,
            "_elements": self._elements,
            "_sort": self._sort,
            "_summary": self._summary,
            "_total": self._total,
        }

    def take(self, name: str, value: str) -> None:
        """Take one parameter: known, ignored, without a value, or unknown."""
        search = self.search
        if name in IGNORED:
            return
        if not value:
            search.empty.append(name)
        elif name == self._terms.cursor:
            search.cursor = value
        elif self._read(name, value):
            if name in _LAST_COUNTS:  # the link "self" lists what was used
                search.understood = [one for one in search.understood if one[0] != name]
            search.understood.append((name, value))
            if len(search.conditions) > MAX_CONDITIONS:
                raise _too_costly(name, f"a search has at most {MAX_CONDITIONS} conditions")
        else:
            search.unknown.append(name)

    def _read(self, name: str, value: str) -> bool:
        match = _NAME.fullmatch(name)
        reader = self._readers.get(match["name"]) if match else None
        if match is None or reader is None:
            return False
        return reader(match["name"], match["modifier"] or "", value)

    def wrong(self, name: str, rule: str) -> None:
        """Note that a parameter breaks a rule."""
        self.search.issues.append(Issue.error(OperationProblem.PARAMETER_INVALID, rule, name))

    def _refuse_modifier(self, name: str, modifier: str, *known: str) -> bool:
        """Return whether a parameter has a modifier that it does not know, which is wrong."""
        if not modifier or modifier in known:
            return False
        has = ", ".join(f":{one}" for one in known) or "none"
        self.wrong(name, f"does not support this modifier; it has {has}")
        return True

    def _split(self, name: str, value: str, rule: str) -> list[str]:
        """Return the values of a list, with their escapes; raises SearchTooCostly."""
        least = value.count(",") - value.count("\\,") + 1
        texts = values_of(value) if least <= self._values_left else None
        self._values_left -= max(least, len(texts or ()))
        if self._values_left < 0:
            said = f"a search has at most {self._terms.max_values} values over all of its"
            raise _too_costly(name, f"{said} parameters")
        if not texts:
            self.wrong(name, rule)
        return texts or []

    # What is searched.

    def _id(self, name: str, modifier: str, value: str) -> bool:
        if self._refuse_modifier(name, modifier):
            return True
        texts = self._split(name, value, "must be ids, separated by commas")
        places = (place_of(text, self._terms.prefix) for text in texts)
        found = frozenset(place for place in places if place is not None)
        known = self.search.ids
        self.search.ids = found if known is None else known & found
        if len({block for block, _place in self.search.ids}) > MAX_BLOCKS:
            raise _too_costly(name, f"ids of at most {MAX_BLOCKS} blocks are searched at a time")
        return True

    def _date(self, name: str, modifier: str, value: str) -> bool:
        if self._refuse_modifier(name, modifier):
            return True
        intervals: list[Interval] = []
        for text in self._split(name, value, TIME_RULE):
            read = split_prefix(text, default_zone=self._terms.zone)
            if read is None:
                self.wrong(name, f"{TIME_RULE}, with or without a prefix such as ge")
                return True
            intervals += intervals_of(*read, now=self._terms.now)
        if intervals:
            search, last = self.search, max(end for _start, end in intervals) - 1
            search.conditions.append(by_time(intervals))
            search.since = max(search.since, min(start for start, _end in intervals))
            search.until = last if search.until is None else min(search.until, last)
        return True

    def _agent(self, name: str, modifier: str, value: str) -> bool:
        rule = "must be the id of a client or the name of a user"
        if self._refuse_modifier(name, modifier, "identifier"):
            return True
        texts = self._split(name, value, rule)
        agents = [plain(text) for text in texts]
        if modifier:
            agents = [each for text in texts for each in self._identified(name, text)]
        self.search.conditions.append(by_agent(self._terms.tenant, agents))
        return True

    def _identified(self, name: str, text: str) -> list[str]:
        token = token_of(text)
        if token is None or not token.value:
            self.wrong(name, "must be value, system|value or |value with :identifier")
            return []
        return [token.value] if token.system in (None, "", self._terms.issuer) else []

    def _patient(self, name: str, modifier: str, value: str) -> bool:
        if self._refuse_modifier(name, modifier, PATIENT):
            return True
        named = self._references(name, value, PATIENT, "must be an id, Patient/id or a URL")
        patients = [one for one in named if one.startswith(f"{PATIENT}/")]
        self.search.conditions.append(by_patient(self._terms.tenant, patients))
        return True

    def _entity(self, name: str, modifier: str, value: str) -> bool:
        if modifier == "identifier":
            ids = map(plain, self._split(name, value, "must be the id of a request"))
            self.search.conditions.append(by_request(ids))
            return True
        target = modifier if _TYPE.fullmatch(modifier) else ""
        if not target and self._refuse_modifier(name, modifier, PATIENT):
            return True
        named = self._references(name, value, target, "must be Type/id, an id or a URL")
        within = [one for one in named if one.startswith(target and f"{target}/")]
        self.search.conditions.append(by_entity(self._terms.tenant, within))
        return True

    def _references(self, name: str, value: str, target: str, rule: str) -> list[str]:
        """Read references to what is here; an id alone is of the target."""
        base, found = f"{self._terms.fhir_url}/", []
        for text in self._split(name, value, rule):
            literal = plain(text).removeprefix(base).strip("/")
            if not literal:
                self.wrong(name, rule)
            elif "/" not in literal and target:
                found.append(f"{target}/{literal}")
            else:
                found.append(literal)
        return found

    def _code(self, name: str, modifier: str, value: str) -> bool:
        if self._refuse_modifier(name, modifier):
            return True
        rule = "must be value, system|value, system| or |value"
        tokens = [token_of(text) for text in self._split(name, value, rule)]
        if None in tokens:
            self.wrong(name, rule)
        known = [token for token in tokens if token is not None]
        self.search.conditions.append(by_code(_CODINGS[name], known))
        return True

    # What the page looks like.

    def _count(self, name: str, modifier: str, value: str) -> bool:
        is_number = value.isascii() and value.isdecimal() and len(value) < 10
        if is_number and int(value):
            self.search.count = min(int(value), self._terms.page_size_max)
        else:
            self.wrong(name, "must be a whole number of at least 1: events are not counted")
        self._refuse_modifier(name, modifier)
        return True

    def _sort(self, name: str, modifier: str, value: str) -> bool:
        self._refuse_modifier(name, modifier)
        return value in ORDERS

    def _total(self, name: str, modifier: str, value: str) -> bool:
        if value not in ("none", "estimate", "accurate"):
            self.wrong(name, "must be none, estimate or accurate")
        self._refuse_modifier(name, modifier)
        return value == "none"

    def _summary(self, name: str, modifier: str, value: str) -> bool:
        if value not in _SUMMARIES:
            self.wrong(name, "must be true, text, data or false: events are not counted")
        self._refuse_modifier(name, modifier)
        self.search.summary = value
        return True

    def _elements(self, name: str, modifier: str, value: str) -> bool:
        if value.count(",") >= _MAX_ELEMENTS:
            self.wrong(name, f"must not have more than {_MAX_ELEMENTS} names")
        self._refuse_modifier(name, modifier)
        self.search.elements = value
        return True


_CODINGS: dict[str, Callable[[Members], Sequence[tuple[str, str]]]] = {
    "action": lambda record: [(ACTION_CODES, meaning_of(record).action)],
    "outcome": lambda record: [(OUTCOME_CODES, outcome_of(record))],
    "subtype": lambda record: [(one["system"], one["code"]) for one in subtypes_of(record)],
}


def _too_costly(name: str, rule: str) -> SearchTooCostly:
    return SearchTooCostly.because(
        f"{rule}: send fewer",
        expression=name.partition(":")[0],
        details=OperationProblem.SEARCH_TOO_COSTLY,
    )
