"""What versions of resources state about patients, newest first (ADR 26)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fhirpub.errors import SearchTooCostly
from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored
from fhirpub.interactions.context import Context
from fhirpub.interactions.indexing.persons import (
    PATIENT,
    StatementNames,
    is_own,
    marked,
    statement_id,
)
from fhirpub.runtime.stages import yield_to_loop
from fhirpub.storage.contract import SearchQuery, Version
from fhirpub.storage.criteria import (
    ANYTHING,
    NEWEST_FIRST,
    Condition,
    Criterion,
    SortKey,
    TokenMatch,
    decode,
)
from fhirpub.tenant import Tenant, is_member_id

_READ_AT_ONCE = 262_144
"""Parts of so many bytes are read without a break."""
_MOST_LATER = 1_000
"""How many later statements of the reports of a batch are looked at: an operator makes each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatientVersion(Version):
    """What a version of a resource states about a patient, as a version of the patient.

    ``owner_type`` is the type of that resource, ``place`` its place in the order of statements,
    and ``statement`` the version id; empty for a patient that belongs to one resource alone.
    """

    owner_type: str
    place: SortKey
    statement: str = ""

    @property
    def tag(self) -> str:
        """The version id."""
        return self.statement or "1"


@dataclass(frozen=True, slots=True)
class Source:
    """A type whose resources come with patients: the part, and the names of what is stored."""

    type_name: str
    part: str
    element: str
    names: StatementNames


def sources_of(context: Context) -> Iterator[Source]:
    """Yield every part by which patients come with a resource."""
    for resource_type in context.types.values():
        statements = context.searched[resource_type.name].statements
        for part in resource_type.parts:
            if part.name in statements:
                names = statements[part.name]
                yield Source(resource_type.name, part.name, part.referred_by, names)


def stating(patients: Iterable[str], source: Source, *, negated: bool = False) -> Criterion:
    """Return the criterion of the statements about some patients, or about all others."""
    markers = (marked(one) for one in sorted(patients))
    matches = tuple(TokenMatch(system, code) for code, system in markers)
    return Criterion(source.names.marker, matches, negated)


@dataclass(frozen=True, slots=True)
class Statement:
    """A version that states something about a patient, which may be large: not read yet."""

    patient_id: str
    source: Source
    owner: Version

    @property
    def version_id(self) -> str:
        """The version of the patient that it is; empty if the patient belongs to one alone."""
        owner = self.owner
        return statement_id(owner.id, owner.version) if is_member_id(self.patient_id) else ""

    def patient(self) -> PatientVersion:
        """Return what it states, as a version of the patient."""
        owner, version_id = self.owner, self.version_id
        stored = loads_stored(owner.parts)[self.source.part]
        return PatientVersion(
            id=self.patient_id,
            version=1,
            type=PATIENT,
            system="",
            value="",
            status="",
            created=owner.updated,
            updated=owner.updated,
            body=dumps(_as_of_person(stored, self.patient_id, version_id)),
            owner_type=owner.type,
            place=(owner.updated, owner.id),
            statement=version_id,
        )


def statement_in(owner: Version, source: Source) -> Statement | None:
    """Return what a version states about a patient, if it does."""
    marker = source.names.marker
    for name, first, second in decode(owner.search):
        if name == marker:
            return Statement(str(first or second), source, owner)
    return None


async def patients_of(statements: Iterable[Statement]) -> list[PatientVersion]:
    """Return the content of statements; other requests go on between large ones."""
    found, size = [], 0
    for statement in statements:
        found.append(statement.patient())
        size += len(statement.owner.parts)
        if size > _READ_AT_ONCE:
            await yield_to_loop()
            size = 0
    return found


def _as_of_person(patient: JsonObject, patient_id: str, statement: str) -> JsonObject:
    """Return a patient under the id of the person, which it may have been stored without."""
    if not (statement and is_own(patient)):
        return patient
    return {**patient, "id": patient_id, "meta": {**patient["meta"], "versionId": statement}}


@dataclass(frozen=True, slots=True)
class Asked:
    """Which statements of a source are asked for, of the resources with some ids or of all."""

    source: Source
    criteria: tuple[Condition, ...]
    ids: frozenset[str] | None = None


@dataclass(slots=True)
class _Pile:
    """The statements that were read and not taken yet, and how to read on."""

    asked: Asked
    after: SortKey | None
    waiting: list[Version] = field(default_factory=list)
    is_read: bool = False


class StatementWalk:
    """Reads the statements of several sources together, newest first, in batches.

    Statements that a later one of the same resource replaced are left out, unless ``every`` one is
    wanted.
    """

    def __init__(
        self,
        asked: Iterable[Asked],
        *,
        tenant: Tenant,
        context: Context,
        after: SortKey | None = None,
        every: bool = False,
    ) -> None:
        self._every = every
        self._tenant = tenant
        self._context = context
        self._seconds = context.config.limits.search_seconds
        self._deadline = context.clock() + int(self._seconds * 1_000)
        self._piles = [_Pile(one, after) for one in asked]
        self.excluded: list[str] = []
        """Patients whose further statements need not be read."""

    async def take(self, number: int) -> list[Statement]:
        """Return the next statements, at least one unless there are no more.

        Raises SearchTooCostly if the time of a search is over.
        """
        while True:
            taken = await self._take(number)
            found = await self._standing(taken)
            if found or not taken:
                return found

    async def _take(self, number: int) -> list[tuple[Source, Version]]:
        taken: list[tuple[Source, Version]] = []
        while len(taken) < number:
            empty = [pile for pile in self._piles if not pile.waiting and not pile.is_read]
            if empty and taken:
                break  # what is to be left out may have been found by then
            await asyncio.gather(*(self._fill(pile, number) for pile in empty))
            full = [pile for pile in self._piles if pile.waiting]
            if not full:
                break
            newest = min(full, key=lambda pile: (-pile.waiting[0].updated, pile.waiting[0].id))
            taken.append((newest.asked.source, newest.waiting.pop(0)))
        return taken

    async def _fill(self, pile: _Pile, number: int) -> None:
        if self._context.clock() > self._deadline:
            raise SearchTooCostly.beyond_budget()
        source = pile.asked.source
        excluded = (stating(self.excluded, source, negated=True),) if self.excluded else ()
        page = await self._context.resources.search(
            self._tenant.id,
            SearchQuery(
                type=source.type_name,
                ids=pile.asked.ids,
                criteria=(*pile.asked.criteria, *excluded),
                order=NEWEST_FIRST,
                after=pile.after,
                limit=number,
                count_up_to=0,
                every_version=True,
                max_seconds=self._seconds,
            ),
        )
        pile.waiting += page.versions
        pile.is_read = not page.more
        if page.versions:
            last = page.versions[-1]
            pile.after = (last.updated, last.id)

    async def _standing(self, taken: Sequence[tuple[Source, Version]]) -> list[Statement]:
        """Return those that no later statement of the same resource replaced."""
        if self._every:
            every = (statement_in(owner, source) for source, owner in taken)
            return [statement for statement in every if statement is not None]
        last: dict[tuple[str, str], int] = {}
        for source in dict.fromkeys(source for source, _ in taken):
            ids = frozenset(owner.id for one, owner in taken if one == source)
            query = SearchQuery(
                type=source.type_name,
                ids=ids,
                criteria=(Criterion(source.names.later, (ANYTHING,)),),
                limit=_MOST_LATER,
                count_up_to=0,
                every_version=True,
                max_seconds=self._seconds,
            )
            for later in (await self._context.resources.search(self._tenant.id, query)).versions:
                key = (later.type, later.id)
                last[key] = max(later.version, last.get(key, 0))
        found = [
            statement_in(owner, source)
            for source, owner in taken
            if last.get((owner.type, owner.id), owner.version if owner.is_first else 0)
            == owner.version
        ]
        return [statement for statement in found if statement is not None]


async def newest_statement(
    patient_id: str, *, tenant: Tenant, context: Context, sources: Iterable[Source]
) -> Statement | None:
    """Return the newest statement about a person; None if there is none."""
    asked = [Asked(source, (stating([patient_id], source),)) for source in sources]
    walk = StatementWalk(asked, tenant=tenant, context=context)
    return next(iter(await walk.take(1)), None)
