"""The resources that a search returns beside its matches, because references lead to them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from fhirpub.errors import Issue
from fhirpub.interactions.context import Context, May
from fhirpub.interactions.erased import first_version, is_tombstone
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.interactions.patients.statements import (
    PatientVersion,
    newest_statement,
    sources_of,
)
from fhirpub.interactions.read import parts_of
from fhirpub.interactions.search.followed_references import FollowedReferences, Key
from fhirpub.interactions.search.includes import Include, Included
from fhirpub.interactions.versions import Shown
from fhirpub.problems import OperationProblem
from fhirpub.runtime.stages import Stages
from fhirpub.storage.contract import MAX_PAGE_BYTES, Page, SearchQuery, Version
from fhirpub.storage.criteria import Criterion, TokenMatch, decode
from fhirpub.tenant import Tenant, is_member_id

MAX_INCLUDED = 1_000
"""So many resources are included in a page, at most."""
_MAX_STEPS = 10
"""So far from a match references are followed."""
_FIRST_BATCH, _LARGEST_BATCH = 4, 64
_SMALL_BYTES = MAX_PAGE_BYTES // 64
_AT_ONCE = 4
"""Resources that are read together where each may be large."""
_COMPARED_AT_ONCE = 200


async def include(
    page: Page,
    includes: Iterable[Include],
    *,
    tenant: Tenant,
    context: Context,
    may: May,
) -> tuple[Page, Included]:
    """Return a page with what is included in it, shorter if that would be too much for it.

    Raises SearchTooCostly.
    """
    inclusion = _Inclusion([*includes], tenant, context, may)
    shown, batch = 0, _FIRST_BATCH
    while shown < len(page.versions) and (inclusion.has_room or not shown):
        few = page.versions[shown : shown + batch]
        fitting = await inclusion.follow(few, at_least=0 if shown else 1)
        shown += fitting
        if fitting < len(few):
            break
        small = inclusion.size < _SMALL_BYTES
        batch = min(batch * 4, _LARGEST_BATCH) if small else _FIRST_BATCH
    matches = page.versions[:shown]
    more = page.more or shown < len(page.versions)
    return Page(matches, page.total, more=more), inclusion.without(matches)


class _Inclusion:
    """What has been included so far."""

    def __init__(
        self, includes: Sequence[Include], tenant: Tenant, context: Context, may: May
    ) -> None:
        self.size = 0
        self._includes = includes
        self._tenant = tenant
        self._context = context
        self._may = may
        self._seconds = context.config.limits.search_seconds
        self._deadline = context.clock() + int(self._seconds * 1000)
        self._known: set[Key] = set()
        self._versions: dict[Key, Version] = {}
        self._parts: list[tuple[bytes, frozenset[str]]] = []
        self._incomplete = False
        self._denied: set[str] = set()

    @property
    def has_room(self) -> bool:
        """Whether more may be included, and there is time to look for it."""
        is_in_time = self._context.clock() < self._deadline
        return is_in_time and len(self._known) < MAX_INCLUDED and self.size < MAX_PAGE_BYTES

    async def follow(self, matches: Sequence[Version], *, at_least: int) -> int:
        """Include what the references of some matches lead to, and those of what is included.

        Returns for how many of the matches there is room.
        """
        led_to = await self._led_to(matches, self._includes, at_least=at_least)
        matches = matches[: len(led_to)]
        keys = dict.fromkeys(chain.from_iterable(led_to))
        beginning, includes = matches, self._includes
        for _step in range(_MAX_STEPS):
            back = [one for one in includes if one.reverse]
            further = [one for one in includes if one.iterate]
            found = await self._resolve(keys, matches, further) if keys else []
            for one in back:
                found += await self._referring_to(beginning, one, further)
            includes = further
            if not found or not includes:
                return len(matches)
            keys = dict.fromkeys(chain.from_iterable(await self._led_to(found, includes)))
            beginning = found
        self._incomplete |= bool(keys)
        return len(matches)

    def without(self, matches: Iterable[Version]) -> Included:
        """Return what is included, without what is a match."""
        shown = {(version.type, version.id) for version in matches}
        versions = [
            Shown.of(version) for key, version in self._versions.items() if key not in shown
        ]
        return Included(versions, self._parts, tuple(self._issues()))

    def _issues(self) -> Iterator[Issue]:
        problem = OperationProblem.INCLUDE_INCOMPLETE
        if self._incomplete:
            rule = (
                "some resources that were to be included are missing, since a page includes at "
                f"most {MAX_INCLUDED}, of 16 MiB, {_MAX_STEPS} references from a match: ask for "
                "smaller pages, or search for the resources themselves"
            )
            yield Issue.warning(problem, rule)
        for name in sorted(self._denied):
            rule = f"no {name} is included: the access token has no scope for it"
            yield Issue.warning(problem, rule)

    # What references lead to.

    async def _led_to(
        self,
        versions: Sequence[Version],
        includes: Sequence[Include],
        *,
        at_least: int | None = None,
    ) -> list[list[Key]]:
        """Return for each version what its references lead to that is not included yet.

        With ``at_least`` only of the first ones for which there is room, and of so many.
        """
        stages = self._follow(versions, includes, at_least)
        return await self._context.stages.run(stages, owner=self._tenant.id)

    def _follow(
        self, versions: Sequence[Version], includes: Sequence[Include], at_least: int | None
    ) -> Stages[list[list[Key]]]:
        followed = {name: self._followed(name, includes) for name in {v.type for v in versions}}
        led_to: list[list[Key]] = []
        keys = {*self._known}
        compared = 0
        for version in versions:
            follows = followed[version.type]
            values = decode(version.search) if follows.names else []
            found = [*follows.keys_in(values, version.id, self._tenant)]
            keys.update(found)
            if at_least is not None and len(keys) > MAX_INCLUDED and len(led_to) >= at_least:
                break
            led_to.append([key for key in found if key not in self._known])
            compared += len(values)
            if compared > _COMPARED_AT_ONCE:
                yield
                compared = 0
        return led_to

    def _followed(self, type_name: str, includes: Iterable[Include]) -> FollowedReferences:
        return FollowedReferences(self._context.searched[type_name], includes)

    async def _resolve(
        self, keys: Iterable[Key], matches: Sequence[Version], further: Sequence[Include]
    ) -> list[Version]:
        """Include resources by their types and ids; return those that refer further."""
        stored: defaultdict[str, list[str]] = defaultdict(list)
        parts: list[Key] = []
        persons: list[str] = []
        for type_name, resource_id in keys:
            if type_name == PATIENT and self._context.has_patients and is_member_id(resource_id):
                persons.append(resource_id)
                continue
            alone = type_name in self._context.types
            if type_name in self._context.searched and (alone or is_member_id(resource_id)):
                stored[type_name].append(resource_id)
            elif not is_member_id(resource_id):
                parts.append((type_name, resource_id))
        found: list[Version] = []
        for type_name, ids in stored.items():
            found += await self._find(type_name, further, ids=frozenset(ids))
        await self._include_parts(parts, matches)
        await self._include_persons(persons)
        return found

    async def _referring_to(
        self, versions: Sequence[Version], asked: Include, further: Sequence[Include]
    ) -> list[Version]:
        """Include what refers to some versions."""
        searched = self._context.searched[asked.source]
        found: list[Version] = []
        for name, target in asked.references_of(searched):
            matches = tuple(
                match
                for version in versions
                if target in ("", version.type)
                for match in (
                    TokenMatch(version.type, version.id),
                    *self._owners_of(version, searched),
                )
            )
            if matches:
                criterion = Criterion(name, matches)
                found += await self._find(asked.source, further, criteria=(criterion,))
        return found

    def _owners_of(self, version: Version, searched: SearchIndexer) -> Iterator[TokenMatch]:
        """Yield how the resource matches that a patient belongs to alone."""
        if isinstance(version, PatientVersion) and not version.statement:
            yield from searched.owners(version.type, version.id, self._tenant)

    async def _find(
        self,
        type_name: str,
        further: Sequence[Include],
        *,
        ids: frozenset[str] | None = None,
        criteria: tuple[Criterion, ...] = (),
    ) -> list[Version]:
        """Include the resources of a type that match; return those that are new.

        ``further`` is what is followed from them.
        """
        needed = "rs" if criteria else "r"
        if not all(self._may(letter, (type_name,)) for letter in needed):
            self._denied.add(type_name)
            return []
        if not self.has_room:
            self._incomplete = True
            return []
        query = SearchQuery(
            type=type_name,
            ids=ids,
            criteria=criteria,
            limit=MAX_INCLUDED - len(self._known),
            count_up_to=0,
            has_members=type_name in self._context.members,
            needed_values=self._followed(type_name, further).names,
            max_seconds=self._seconds,
        )
        page = await self._context.resources.search(self._tenant.id, query)
        self._incomplete |= page.more
        new = [one for one in page.versions if (type_name, one.id) not in self._known]
        for version in new:
            self._known.add((type_name, version.id))
            self._versions[type_name, version.id] = version
            self.size += len(version.body)
        return new

    async def _include_persons(self, persons: Sequence[str]) -> None:
        """Include patients that several resources share, as they are now (ADR 26)."""
        for start in range(0, len(persons), _AT_ONCE):
            if not self.has_room:
                self._incomplete = True
                return
            few = persons[start : start + _AT_ONCE]
            for patient in await asyncio.gather(*map(self._newest, few)):
                if patient is None:
                    continue
                if self._may("r", (PATIENT, patient.owner_type)):
                    self._known.add((PATIENT, patient.id))
                    self._versions[PATIENT, patient.id] = patient
                    self.size += len(patient.body)
                else:
                    self._denied.add(PATIENT)

    async def _newest(self, person: str) -> PatientVersion | None:
        sources = sources_of(self._context)
        newest = await newest_statement(
            person, tenant=self._tenant, context=self._context, sources=sources
        )
        return newest.patient() if newest else None

    # Parts, which are read from version 1 of what they came with (ADR 15).

    async def _include_parts(self, keys: Iterable[Key], matches: Sequence[Version]) -> None:
        names = self._names_by_owner(keys)
        at_hand = {version.id: version for version in matches if version.is_first}
        owners = [*names]
        for start in range(0, len(owners), _AT_ONCE):
            if not self.has_room:
                self._incomplete = True
                return
            few = owners[start : start + _AT_ONCE]
            firsts = await asyncio.gather(*(self._first(one, at_hand) for one in few))
            for first in firsts:
                if first is not None:
                    self._include_parts_of(first, names[first.id])

    def _names_by_owner(self, keys: Iterable[Key]) -> dict[str, dict[str, Key]]:
        """Return which parts of which resources are meant: an id leads to where it came from."""
        names: defaultdict[str, dict[str, Key]] = defaultdict(dict)
        for type_name, part_id in keys:
            for part in parts_of(type_name, self._context):
                owner_id = self._tenant.part_id(part_id, part.name)
                names[owner_id][part.name] = (type_name, part_id)
        return names

    async def _first(self, owner_id: str, at_hand: Mapping[str, Version]) -> Version | None:
        first = at_hand.get(owner_id)
        if first is None:
            first = await first_version(self._context.resources, self._tenant.id, owner_id)
        return None if is_tombstone(first) else first

    def _include_parts_of(self, owner: Version, names: Mapping[str, Key]) -> None:
        wanted = set()
        for name, (type_name, part_id) in names.items():
            if self._may("r", (type_name, owner.type)):
                wanted.add(name)
                self._known.add((type_name, part_id))
            else:
                self._denied.add(type_name)
        if wanted:
            self._parts.append((owner.parts, frozenset(wanted)))
            self.size += len(owner.parts)
