"""Patients that match by the newest statement about them (ADR 26)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

from fhirpub.errors import InvalidSearch
from fhirpub.interactions.context import Context, May
from fhirpub.interactions.indexing.persons import PATIENT, StatementNames, marked
from fhirpub.interactions.indexing.resolution import IDENTIFIERS
from fhirpub.interactions.patients.statements import (
    Asked,
    PatientVersion,
    Source,
    Statement,
    StatementWalk,
    newest_statement,
    patients_of,
    sources_of,
    stating,
)
from fhirpub.problems import OperationProblem
from fhirpub.storage.contract import Page, SearchQuery, Version
from fhirpub.storage.criteria import (
    ANYTHING,
    ID,
    NEWEST_FIRST,
    Condition,
    Criterion,
    Either,
    Order,
    SortKey,
    TokenMatch,
    comes_after,
    sort_key,
)
from fhirpub.tenant import Tenant, is_member_id

_BATCH = 50
_AT_ONCE = 4
_MOST_EXCLUDED = 100
"""So many persons are left out by the store; the statements of further ones are passed over."""


async def search_patients(
    query: SearchQuery, *, tenant: Tenant, context: Context, may: May
) -> Page:
    """Return a page of the patients that match, those with the newest statements first.

    Raises SearchTooCostly, InvalidSearch for another order.
    """
    if query.order != NEWEST_FIRST:
        raise InvalidSearch.because(
            "of patients must be -_lastUpdated, which is the order without it",
            expression="_sort",
            details=OperationProblem.PARAMETER_INVALID,
        )
    sources = [one for one in sources_of(context) if may("s", (PATIENT, one.type_name))]
    search = _Search(query, sources, tenant, context)
    await search.walk()
    more = bool(query.limit) and len(search.found) > query.limit
    is_whole = query.count_up_to is None or (query.after is None and not more)
    total = search.total if is_whole and query.count_up_to != 0 else None
    return Page(tuple(await patients_of(search.found[: query.limit])), total, more=more)


def place_of(version: Version, order: Sequence[Order]) -> SortKey:
    """Return the place of a match in the order of its search, where the next page begins."""
    return version.place if isinstance(version, PatientVersion) else sort_key(order, version)


class _Search:
    """A search for patients, and what it has found."""

    def __init__(
        self, query: SearchQuery, sources: Sequence[Source], tenant: Tenant, context: Context
    ) -> None:
        self._query = query
        self._tenant = tenant
        self._context = context
        self._asked = [asked for source in sources for asked in self._asked_of(source)]
        self._seen: set[str] = set()
        self.found: list[Statement] = []
        self.total = 0

    async def walk(self) -> None:
        """Look for the matches: up to one more than the page has, or all if they are counted."""
        after = None if self._query.count_up_to is None else self._query.after
        walk = StatementWalk(self._asked, tenant=self._tenant, context=self._context, after=after)
        while self._wants_more and (batch := await walk.take(_BATCH)):
            newest = await self._newest_among(batch)
            self.total += len(newest)
            self.found += [one for one in newest if self._is_behind(one)]
            del self.found[self._query.limit + 1 :]
            persons = [one for one in self._seen if is_member_id(one)]
            walk.excluded = persons[:_MOST_EXCLUDED]

    @property
    def _wants_more(self) -> bool:
        return self._query.count_up_to is None or len(self.found) <= self._query.limit

    def _is_behind(self, statement: Statement) -> bool:
        """Return whether a match is behind the previous page, where all are counted."""
        after, owner = self._query.after, statement.owner
        return after is None or comes_after((owner.updated, owner.id), after, NEWEST_FIRST)

    async def _newest_among(self, batch: Sequence[Statement]) -> list[Statement]:
        """Return those of a batch that are the newest statement about their patient."""
        first: dict[str, Statement] = {}
        for one in batch:
            if one.patient_id not in self._seen:
                first.setdefault(one.patient_id, one)
        self._seen |= first.keys()
        persons = [patient_id for patient_id in first if is_member_id(patient_id)]
        for start in range(0, len(persons), _AT_ONCE):
            few = persons[start : start + _AT_ONCE]
            for patient_id, newest in zip(few, await self._newest_of(few), strict=True):
                if newest is None or newest.version_id != first[patient_id].version_id:
                    del first[patient_id]
        return [*first.values()]

    async def _newest_of(self, persons: Sequence[str]) -> list[Statement | None]:
        # All sources, whether they may be searched: an older statement must not look current.
        sources = [*sources_of(self._context)]
        return await asyncio.gather(
            *(
                newest_statement(one, tenant=self._tenant, context=self._context, sources=sources)
                for one in persons
            )
        )

    def _asked_of(self, source: Source) -> Iterator[Asked]:
        """Yield what is asked of a source, for shared patients and for others apart."""
        criteria = tuple(_translated(one, source.names) for one in self._query.criteria)
        ids = self._query.ids
        if ids is None:
            yield Asked(source, (Criterion(source.names.marker, (ANYTHING,)), *criteria))
            return
        persons = {one for one in ids if is_member_id(one)}
        if persons:
            yield Asked(source, (stating(persons, source), *criteria))
        owners = {one: self._tenant.part_id(one, source.part) for one in ids - persons}
        yield Asked(source, (stating(owners, source), *criteria), frozenset(owners.values()))


def _translated(criterion: Condition, names: StatementNames) -> Condition:
    """Return a condition on patients as one on the versions that state something about them."""
    if isinstance(criterion, Either):
        return Either(
            tuple(tuple(_translate(one, names) for one in group) for group in criterion.groups)
        )
    return _translate(criterion, names)


def _translate(criterion: Criterion, names: StatementNames) -> Criterion:
    stored = {IDENTIFIERS: names.identifier, "name": names.name, "birthDate": names.birth_date}
    if criterion.name != ID:
        element, colon, form = criterion.name.partition(":")
        return replace(criterion, name=f"{stored.get(element, element)}{colon}{form}")
    asked = [one for one in criterion.any_of if isinstance(one, TokenMatch)]
    ids = (marked(one.value) if one.value else ("", "") for one in asked)
    matches = tuple(TokenMatch(system, code) for code, system in ids)
    return Criterion(
        names.marker, (ANYTHING,) if ANYTHING in asked else matches, criterion.negated
    )
