"""From the value of a search parameter to the tokens, times, texts and references that match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal

from fhirpub.errors import SearchTooCostly
from fhirpub.fhir.date_value import TIME_RULE, split_prefix
from fhirpub.fhir.search_value import plain, quantity_of, token_of, typed_of, values_of
from fhirpub.interactions.identity.identification import Identification
from fhirpub.interactions.indexing.numbers import (
    NUMBER_RULE,
    about,
    equal_to,
    place_of,
    split_number,
)
from fhirpub.interactions.indexing.texts import normalize_text
from fhirpub.interactions.indexing.values import encode_typed_code, split_reference, unit_of
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.problems import OperationProblem
from fhirpub.runtime.clock import Clock
from fhirpub.storage.criteria import TextMatch, TimeMatch, TokenMatch
from fhirpub.tenant import Tenant


class ValueParser:
    """Reads the values of parameters; ``wrong`` takes the name and the rule of one that is not.

    Raises SearchTooCostly beyond ``max_values`` values of all parameters together (D-289).
    """

    def __init__(
        self,
        searched: SearchIndexer,
        tenant: Tenant,
        *,
        clock: Clock,
        wrong: Callable[[str, str], None],
        max_values: int,
    ) -> None:
        self._searched = searched
        self._tenant = tenant
        self._clock = clock
        self._wrong = wrong
        self._max_values = max_values
        self._counts: Counter[str] = Counter()

    @property
    def longest(self) -> str:
        """The parameter with the most values; empty if none has several."""
        (name, count), *_ = self._counts.most_common(1) or [("", 0)]
        return name if count > 1 else ""

    def ids(self, name: str, value: str) -> list[str] | None:
        """Read ids as they are; None if one of them is wrong."""
        texts = self._split(name, value)
        if texts is None:
            self._wrong(name, "must be ids, separated by commas")
        return texts

    def tokens(self, name: str, value: str) -> list[TokenMatch]:
        """Read tokens: codes and identifiers."""
        tokens = [token_of(text) for text in self._split(name, value) or [""]]
        if None in tokens:
            self._wrong(name, "must be value, system|value, system| or |value")
        return [TokenMatch(token.system, token.value) for token in tokens if token is not None]

    def typed(
        self, name: str, value: str, identification: Identification | None = None
    ) -> list[TokenMatch]:
        """Read identifiers with their types, as ``:of-type`` takes them.

        With the rule of a type for its identifiers, their values stand there in each form.
        """
        read = [typed_of(text) for text in self._split(name, value) or [""]]
        if None in read:
            self._wrong(name, "must be system|code|value with :of-type")
        known = [item for item in read if item is not None]
        return [
            TokenMatch(system, encode_typed_code(code, spelling))
            for system, code, number in known
            for spelling in (identification.spellings_of(number) if identification else [number])
        ]

    def times(self, name: str, value: str) -> list[TimeMatch] | None:
        """Read dates and times with their prefixes; None if one of them is wrong."""
        matches: list[TimeMatch] = []
        texts = value.split(",")
        self._count(name, len(texts))
        for text in texts:
            read = split_prefix(text, default_zone=self._searched.zone)
            if read is None:
                self._wrong(name, f"{TIME_RULE}, with or without a prefix such as ge")
                return None
            matches += times_meant_by(*read, now=self._clock())
        return matches

    def quantities(self, name: str, value: str) -> tuple[list[TimeMatch], str] | None:
        """Read numbers with their prefixes and units; None if one of them is wrong.

        Returns the unit, too, as it is stored; empty if any will do.
        """
        matches: list[TimeMatch] = []
        units: set[str] = set()
        for text in self._split(name, value) or [""]:
            read = quantity_of(text)
            number = split_number(read[0]) if read else None
            if read is None or number is None:
                self._wrong(name, NUMBER_RULE)
                return None
            units.add(unit_of(*read[1:]) if read[2] else "")
            matches += numbers_meant_by(*number)
        if len(units) > 1:
            self._wrong(name, "must be numbers of one unit: send a search for each")
            return None
        return matches, units.pop()

    def texts(self, name: str, value: str, kind: str | None) -> list[TextMatch]:
        """Read how texts of a kind begin."""
        texts = [normalize_text(plain(text)) for text in self._split(name, value) or [""]]
        if not all(texts):
            self._wrong(name, "must be how a text begins, such as a name: letters or digits")
        return [TextMatch(text, kind) for text in texts if text]

    def references(self, name: str, value: str, target: str | None) -> list[TokenMatch]:
        """Read references; without a type they are to a ``target``."""
        texts = self._split(name, value)
        if not texts:
            self._wrong(name, "must be an id, Type/id or a URL")
            return []
        found = []
        for text in texts:
            literal = plain(text)
            type_name, resource_id = split_reference(literal, self._searched)
            if not resource_id:
                self._wrong(name, "must be an id, Type/id or a URL")
            if not type_name:
                wanted = "" if ":" in literal else target
            elif target in (None, type_name):
                wanted = type_name
            else:
                continue
            found.append(TokenMatch(wanted, resource_id))
            found += self._searched.owners(wanted, resource_id, self._tenant)
        return found

    def _split(self, name: str, value: str) -> list[str] | None:
        """Return the values of a list, as `values_of` does; raises SearchTooCostly."""
        least = value.count(",") - value.count("\\,")
        self._check(name, least)  # before a long text is split
        texts = values_of(value)
        self._count(name, len(texts or ()))
        return texts

    def _count(self, name: str, more: int) -> None:
        self._counts[name] += more
        self._check(name, 0)

    def _check(self, name: str, more: int) -> None:
        if self._counts.total() + more > self._max_values:
            rule = f"a search has at most {self._max_values} values over all of its parameters"
            raise SearchTooCostly.because(
                f"{rule}: send fewer",
                expression=name,
                details=OperationProblem.SEARCH_TOO_COSTLY,
            )


def numbers_meant_by(prefix: str, number: Decimal) -> list[TimeMatch]:
    """Return what a prefix means for numbers (R4 search, 3.1.1.4.11).

    Only equality looks at how exactly a number is written.
    """
    if prefix == "ap":
        return times_meant_by("eq", about(number), now=0)
    place = place_of(number)
    exact = (place, place + 1)
    meant = equal_to(number) if prefix in ("eq", "ne") else exact
    return times_meant_by(prefix, meant, now=0)


def times_meant_by(prefix: str, stretch: tuple[int, int], *, now: int) -> list[TimeMatch]:
    """Return what a prefix means for times that begin and end somewhere (R4 search, 3.1.1.5.4)."""
    start, end = stretch
    slack = 0
    if prefix == "ap":  # a tenth of the distance to now, as R4 suggests
        slack = max(abs(now - start), abs(now - end)) // 10
    return {
        "eq": [TimeMatch(from_=start, until=end)],
        "ne": [TimeMatch(before=start), TimeMatch(after=end)],
        "gt": [TimeMatch(after=end)],
        "lt": [TimeMatch(before=start)],
        "ge": [TimeMatch(after=end), TimeMatch(from_=start)],
        "le": [TimeMatch(before=start), TimeMatch(until=end)],
        "sa": [TimeMatch(from_=end)],
        "eb": [TimeMatch(until=start)],
        "ap": [TimeMatch(before=end + slack, after=start - slack)],
    }[prefix]
