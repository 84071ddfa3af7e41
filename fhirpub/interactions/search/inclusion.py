"""The resources that a search returns beside its matches, because references lead to them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain

from fhirpub.errors import Issue
from fhirpub.interactions.context import Context
from fhirpub.interactions.indexing.persons import PATIENT, names_of_own_patients
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.interactions.patients.statements import (
    PatientVersion,
    newest_statement,
    sources_of,
)
from fhirpub.interactions.read import parts_of
from fhirpub.interactions.search.includes import Include, Included
from fhirpub.interactions.versions import Shown
from fhirpub.problems import OperationProblem
from fhirpub.runtime.stages import yield_to_loop
from fhirpub.storage.contract import MAX_PAGE_BYTES, Page, SearchQuery, Version
from fhirpub.storage.criteria import Criterion, SearchValue, TokenMatch, decode
from fhirpub.tenant import Tenant, is_member_id, is_resource_id

MAX_INCLUDED = 1_000
"""So many resources are included in a page, at most."""
_MAX_STEPS = 10
"""So far from a match references are followed."""
_FIRST_BATCH, _LARGEST_BATCH = 4, 64
_SMALL_BYTES = MAX_PAGE_BYTES // 64
_AT_ONCE = 4
"""Resources that are read together where each may be large."""
_COMPARED_AT_ONCE = 1_000

May = Callable[[str, Collection[str]], bool]
"""Whether the caller may read (``r``) or search (``s``) what is of one of these types."""
Key = tuple[str, str]
"""The type and the id of a resource."""


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
        self._references_of = cache(
            lambda type_name, asked: dict(asked.references_of(context.searched[type_name]))
        )
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
        led_to = await self._led_to(matches, self._includes)
        matches = matches[: max(at_least, self._number_fitting(led_to))]
        keys = dict.fromkeys(chain.from_iterable(led_to[: len(matches)]))
        beginning, includes = matches, self._includes
        for _step in range(_MAX_STEPS):
            back = [one for one in includes if one.reverse]
            found = await self._resolve(keys, matches) if keys else []
            for one in back:
                found += await self._referring_to(beginning, one)
            includes = [one for one in includes if one.iterate]
            if not found or not includes:
                return len(matches)
            keys = dict.fromkeys(chain.from_iterable(await self._led_to(found, includes)))
            beginning = found
        self._incomplete |= bool(keys)
        return len(matches)

    def _number_fitting(self, led_to: Sequence[Sequence[Key]]) -> int:
        """Return of how many matches, with what each leads to, there is room for all."""
        seen = {*self._known}
        for number, keys in enumerate(led_to):
            seen.update(keys)
            if len(seen) > MAX_INCLUDED:
                return number
        return len(led_to)

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
        self, versions: Sequence[Version], includes: Sequence[Include]
    ) -> list[list[Key]]:
        """Return for each version what its references lead to that is not included yet."""
        forward = [one for one in includes if not one.reverse]
        led_to: list[list[Key]] = []
        compared = 0
        for version in versions:
            values = decode(version.search) if forward else []
            compared += len(values) * len(forward)
            keys = chain.from_iterable(self._keys_in(values, version, one) for one in forward)
            led_to.append([key for key in keys if key not in self._known])
            if compared > _COMPARED_AT_ONCE:
                await yield_to_loop()
                compared = 0
        return led_to

    def _keys_in(
        self, values: Collection[SearchValue], version: Version, asked: Include
    ) -> Iterator[Key]:
        searched = self._context.searched[version.type]
        names = self._references_of(version.type, asked)
        own_patients = names_of_own_patients(values) if names else ()
        for name, code, system in values if names else ():
            if system == PATIENT and code and name in own_patients:
                continue  # that is the person that it is found by as well
            target = names.get(name)
            if target is None or not system or target not in ("", system):
                continue
            type_name = str(system)
            own = code == ""  # a part, whose id follows from that of the version
            found = searched.own_part(type_name, version.id, self._tenant) if own else str(code)
            key = (type_name, found)
            if key not in self._known and is_resource_id(found):  # others are not held
                yield key
        if names and not asked.parameter:
            for part in searched.type.parts:
                if not part.repeats and (part.type != PATIENT or own_patients):
                    yield part.type, self._tenant.part_id(version.id, part.name)

    async def _resolve(self, keys: Iterable[Key], matches: Sequence[Version]) -> list[Version]:
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
            found += await self._find(type_name, ids=frozenset(ids))
        await self._include_parts(parts, matches)
        await self._include_persons(persons)
        return found

    async def _referring_to(self, versions: Sequence[Version], asked: Include) -> list[Version]:
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
                found += await self._find(asked.source, criteria=(Criterion(name, matches),))
        return found

    def _owners_of(self, version: Version, searched: SearchIndexer) -> Iterator[TokenMatch]:
        """Yield how the resource matches that a patient belongs to alone."""
        if isinstance(version, PatientVersion) and not version.statement:
            yield from searched.owners(version.type, version.id, self._tenant)

    async def _find(
        self,
        type_name: str,
        *,
        ids: frozenset[str] | None = None,
        criteria: tuple[Criterion, ...] = (),
    ) -> list[Version]:
        """Include the resources of a type that match; return those that are new."""
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
        at_hand = {version.id: version for version in matches if version.version == 1}
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
            first = await self._context.resources.version(self._tenant.id, owner_id, 1)
        return first

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
