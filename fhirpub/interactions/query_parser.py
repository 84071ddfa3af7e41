"""From the parameters of a search to what is asked of the store (R4 search; D-125 to D-138)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from fhirpub.interactions.context import Context
from fhirpub.interactions.cursors import CURSOR
from fhirpub.interactions.indexing.resolution import IDENTIFIERS, ResolvedParameter
from fhirpub.interactions.indexing.texts import exact_under
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.interactions.search.page_parser import Asked, PageReading
from fhirpub.interactions.value_parser import MAX_CONDITIONS, ValueParser, too_many_conditions
from fhirpub.plugin_api import SearchParameter
from fhirpub.storage.criteria import (
    ANYTHING,
    ID,
    IDENTIFIER,
    LAST_UPDATED,
    Condition,
    Criterion,
    Either,
    Match,
    TextMatch,
    TokenMatch,
)
from fhirpub.tenant import Tenant, is_resource_id

IGNORED = frozenset({"_format", "_pretty"})

_IDENTIFIERS = frozenset({IDENTIFIER, IDENTIFIERS})
"""The names under which identifiers are compared in their normal form."""
_NAME = re.compile(r"(?P<name>[^:.]+)(?::(?P<modifier>[^.]*))?(?:\.(?P<further>.+))?", re.DOTALL)
_TYPE = re.compile(r"[A-Z][A-Za-z]*")
_LAST_COUNTS = frozenset({"_count", "_elements", "_summary", "_total"})
"""Parameters of which the last one is used, if they repeat."""
MODIFIERS = {
    "token": ("missing", "not"),
    "date": ("missing",),
    "number": ("missing",),
    "quantity": ("missing",),
    "string": ("missing", "exact", "contains"),
    "uri": ("missing", "below", "above"),
}
"""The modifiers of each type, but for those of references and of identifiers."""
_LAST_UPDATED = ResolvedParameter(
    SearchParameter(name=LAST_UPDATED, type="date", paths=(LAST_UPDATED,))
)


class Reading(PageReading):
    """What has been read of the parameters so far."""

    def __init__(
        self, searched: SearchIndexer, tenant: Tenant, context: Context, *, alone: bool = False
    ) -> None:
        """Begin with nothing.

        If ``alone``, an identifier is that of a resource that was not registered with another.
        """
        super().__init__(searched, context)
        self.cursor = ""
        self.ids: frozenset[str] | None = None
        self.identifiers: list[tuple[TokenMatch, ...]] = []
        self.criteria: list[Condition] = []
        self.understood: list[tuple[str, str]] = []
        self.unknown: list[str] = []
        self.empty: list[str] = []
        self._conditions = 0
        self._tenant = tenant
        self._alone = alone
        self._identification = searched.identification
        self._values = ValueParser(
            searched,
            tenant,
            clock=context.clock,
            wrong=self.wrong,
            max_values=context.config.limits.search_values,
        )
        self._readers: dict[str, Callable[[Asked], bool]] = {
            IDENTIFIER: self._identifier,
            ID: self._id,
            LAST_UPDATED: self._last_updated,
            **self.readers,
        }

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
        asked = Asked(name, match["name"], match["modifier"] or "", match["further"] or "", value)
        read = self._readers.get(asked.name, self._parameter)
        if read(asked):
            if self._conditions > MAX_CONDITIONS:
                raise too_many_conditions(asked.name)
            if name in _LAST_COUNTS:  # the link "self" lists what was used
                self.understood = [item for item in self.understood if item[0] != name]
            self.understood.append((name, value))
        else:
            self.unknown.append(name)

    # Parameters that every resource has.

    def _identifier(self, asked: Asked) -> bool:
        if self._searched.identifiers and not (self._alone and self._identification.is_single):
            return self._identifier_among_values(asked)
        if asked.modifier or asked.further:
            return self._token(IDENTIFIER, asked)
        matches = self._identification.matches_of(self._values.tokens(asked.name, asked.value))
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

    def _identifier_among_values(self, asked: Asked) -> bool:
        """Read the identifier of a type whose resources may have several (ADR 24, ADR 41)."""
        if self._alone and self._searched.member:
            # What came with another resource has no key.
            self._demand(IDENTIFIER, [TokenMatch("", "")], negated=True)
        return self._parameter(asked)

    def _id(self, asked: Asked) -> bool:
        if asked.modifier or asked.further:
            return self._token(ID, asked)
        ids = self._values.ids(ID, asked.value)
        if ids is not None:
            self._narrow(id_ for id_ in ids if is_resource_id(id_))
        return True

    def _narrow(self, ids: Iterable[str]) -> None:
        found = frozenset(ids)
        self.ids = found if self.ids is None else self.ids & found

    def _last_updated(self, asked: Asked) -> bool:
        return not asked.further and self._search(_LAST_UPDATED, asked)

    # Parameters of the type.

    def _parameter(self, asked: Asked) -> bool:
        known = self._searched.parameters.get(asked.name)
        if known is None:
            return False
        if known.parameter.type == "reference":
            if asked.further:
                return self._parse_chain(known, asked)
            return self._reference(known, asked)
        return not asked.further and self._search(known, asked)

    def _search(self, known: ResolvedParameter, asked: Asked) -> bool:
        if known.parameter.type == "composite":
            return self._composite(known, asked)
        if known.parameter.type == "token" and len(known.names) == 1:
            return self._token(known.stored, asked)
        if asked.modifier:
            return self._modified(known, asked)
        found = self._values.sought(known, asked.value)
        if found is not None:
            groups = [one.stored_under(name) for name in known.names for one in found]
            self._demand_one_of(groups, values=len(found))
        return True

    def _composite(self, known: ResolvedParameter, asked: Asked) -> bool:
        if asked.modifier:
            self.refuse_modifiers(asked)
            return True
        found = self._values.pairs(known, asked.value)
        if found is not None:
            groups = [pair.found_in(pairing) for pairing in known.pairings for pair in found]
            self._demand_one_of(groups, values=len(found))
        return True

    def _modified(self, known: ResolvedParameter, asked: Asked) -> bool:
        """Read a parameter with a modifier, which depends on its type."""
        type_, modifier = known.parameter.type, asked.modifier
        if modifier == "missing":
            self._missing(known.names, asked, TokenMatch(known.kind, None))
        elif type_ == "token" and modifier == "not":
            tokens = self._values.tokens(asked.name, asked.value)
            for name in known.names:
                self._demand(name, tokens, negated=True)
        elif type_ == "string" and modifier in ("exact", "contains"):
            self._text(known, asked)
        elif type_ == "uri" and modifier in ("below", "above"):
            matches = self._values.uris(asked.name, asked.value, modifier)
            self._demand_one_of([(Criterion(name, tuple(matches)),) for name in known.names])
        else:
            self.refuse_modifiers(asked, *MODIFIERS[type_])
        return True

    def _text(self, known: ResolvedParameter, asked: Asked) -> None:
        found = self._values.sought(known, asked.value) or []
        matches = [match for one in found for match in one.matches if isinstance(match, TextMatch)]
        if asked.modifier == "contains":
            parts = tuple(replace(match, anywhere=True) for match in matches)
            groups = [(Criterion(name, parts),) for name in known.names]
            self._demand_one_of(groups, values=len(parts))
            return
        exact = tuple(self._values.exact_texts(known, asked.value))
        self._demand_one_of(
            [
                (Criterion(name, tuple(matches)), Criterion(exact_under(name), exact))
                for name in known.names
            ],
            values=len(matches),
        )

    def _token(self, name: str, asked: Asked) -> bool:
        if asked.further:
            return False
        if asked.modifier == "missing":
            self._missing((name,), asked, ANYTHING)
        elif asked.modifier in ("", "not"):
            negated = asked.modifier == "not"
            matches = self._values.tokens(asked.name, asked.value)
            if name in _IDENTIFIERS:
                matches = self._identification.matches_of(matches)
            self._demand(name, matches, negated=negated)
        elif asked.modifier == "of-type" and name in self._searched.typed:
            typed = self._values.typed(
                asked.name, asked.value, self._identification if name in _IDENTIFIERS else None
            )
            self._demand(self._searched.typed[name], typed)
        else:
            more = ["of-type"] if name in self._searched.typed else []
            self.refuse_modifiers(asked, "missing", "not", *more)
        return True

    def _reference(self, known: ResolvedParameter, asked: Asked) -> bool:
        target = asked.modifier if _TYPE.fullmatch(asked.modifier) else ""
        wanted = TokenMatch(known.target or target or None, None)
        if asked.modifier == "missing":
            self._missing((known.stored,), asked, wanted)
        elif asked.modifier and not target:
            self.refuse_modifiers(asked, "missing", known.target or "Patient")
        elif {known.target, target} <= {"", wanted.system}:
            found = self._values.references(asked.name, asked.value, wanted.system)
            self._demand(known.stored, found)
        else:
            self._demand(known.stored, [])
        return True

    def _parse_chain(self, known: ResolvedParameter, asked: Asked) -> bool:
        """Read ``patient.identifier`` and ``subject:Patient.identifier``."""
        names = self._searched.chains_of(known, asked.modifier)
        further, modified, _modifier = asked.further.partition(":")
        if further != IDENTIFIER or len(names) != 1:
            return False
        if modified:
            self.refuse_modifiers(asked)
        else:
            self._demand(names[0], self._values.tokens(asked.name, asked.value))
        return True

    def _missing(self, names: Sequence[str], asked: Asked, anything: TokenMatch) -> None:
        if asked.value == "true":
            for name in names:
                self._demand(name, [anything], negated=True)
        elif asked.value == "false":
            self._demand_one_of([(Criterion(name, (anything,)),) for name in names])
        else:
            self.wrong(asked.name, "takes true or false with :missing")

    def _demand_one_of(self, groups: Sequence[tuple[Criterion, ...]], *, values: int = 1) -> None:
        """Demand that a group holds; those that differ in the first matches alone are one.

        An engine checks each of the ``values`` that were asked for.
        """
        matches: defaultdict[tuple[str, tuple[Criterion, ...]], list[Match]] = defaultdict(list)
        for first, *others in groups:
            matches[first.name, tuple(others)] += first.any_of
        found = tuple(
            (Criterion(name, tuple(any_of)), *others) for (name, others), any_of in matches.items()
        )
        self._conditions += max(0, values - len(found))
        self._conditions += sum(_count_systems(one.any_of) for group in found for one in group)
        if len(found) == 1:
            self.criteria += found[0]
        else:
            self.criteria.append(Either(found))

    def _demand(self, name: str, any_of: Sequence[Match], *, negated: bool = False) -> None:
        # An engine checks each; tokens of a list and of one system it looks up together.
        self._conditions += _count_systems(any_of)
        self.criteria.append(Criterion(name, tuple(any_of), negated))


def _count_systems(alternatives: Iterable[Match]) -> int:
    """Count the systems that a list names, a token without one being of another; at least 1."""
    tokens = [one for one in alternatives if isinstance(one, TokenMatch)]
    return max(1, len({token.system for token in tokens}))
