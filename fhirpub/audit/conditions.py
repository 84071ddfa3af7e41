"""What a search demands of a record, exactly; and the keys of the blocks that may hold one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from fhirpub.audit.event import PATIENT, agent_of, patients_of
from fhirpub.audit.record import Members, key_of, unversioned
from fhirpub.fhir.search_value import Token

Coding = tuple[str, str]
"""A system and a code."""
Interval = tuple[int, int]
"""The first millisecond, and the first that comes after."""
END_OF_TIME = 2**62
_MAX_ALTERNATIVES = 8
_MAX_KEYS = 3
"""So many keys narrow the search for blocks; records are compared with all conditions."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A demand on a record.

    Attributes:
        matches: Whether a record meets it.
        keys: Blocks with a record that meets it have at least one of these keys; None: any block
            may hold one.
    """

    matches: Callable[[Members], bool]
    keys: Collection[int] | None = None


def by_time(intervals: Sequence[Interval]) -> Condition:
    """Demand that a record is of one of these intervals."""
    return Condition(
        lambda record: any(start <= record["at"] < end for start, end in intervals),
    )


def by_agent(tenant: str, agents: Iterable[str]) -> Condition:
    """Demand that one of these clients or users acted."""
    wanted = frozenset(agents)
    return Condition(
        lambda record: agent_of(record) in wanted,
        frozenset(key_of(tenant, "agent", name) for name in wanted if name),
    )


def by_patient(tenant: str, names: Iterable[str]) -> Condition:
    """Demand that a record concerns one of these patients, each named as ``Patient/id``."""
    wanted = frozenset(names)
    return Condition(
        lambda record: not wanted.isdisjoint(patients_of(record)),
        frozenset(key for name in wanted for key in _keys_of_name(tenant, name)),
    )


def by_entity(tenant: str, names: Iterable[str]) -> Condition:
    """Demand that a record names one of these resources.

    Each is ``Type/id`` or ``Type/id/_history/version``, or an id of a resource of any type.
    """
    wanted = frozenset(names)
    alone = frozenset(name for name in wanted if "/" not in name)

    def matches(record: Members) -> bool:
        what = record.get("what", ())
        named = {*what, *map(unversioned, what), *patients_of(record)}
        if not wanted.isdisjoint(named):
            return True
        return bool(alone) and any(unversioned(name).split("/")[-1] in alone for name in named)

    if alone:
        return Condition(matches)
    keys = (key for name in wanted for key in _keys_of_name(tenant, unversioned(name)))
    return Condition(matches, frozenset(keys))


def by_request(ids: Iterable[str]) -> Condition:
    """Demand that a record is of one of these requests, or of a numbered part of one."""
    wanted = frozenset(ids)

    def matches(record: Members) -> bool:
        request = str(record.get("request", ""))
        whole, _, number = request.rpartition("-")
        return request in wanted or (number.isdecimal() and whole in wanted)

    return Condition(matches)


def by_code(codings: Callable[[Members], Iterable[Coding]], tokens: Sequence[Token]) -> Condition:
    """Demand that a record has one of these codes."""
    return Condition(
        lambda record: any(_fits(token, coding) for coding in codings(record) for token in tokens)
    )


def alternatives(conditions: Iterable[Condition]) -> tuple[tuple[int, ...], ...]:
    """Return sets of keys: a block with records that meet all conditions has all keys of one.

    None at all: no record can meet them.
    """
    keyed = [sorted(one.keys) for one in conditions if one.keys is not None]
    chosen: list[Sequence[int]] = []
    count = 1
    for keys in sorted(keyed, key=len):
        count *= len(keys)
        if count > _MAX_ALTERNATIVES or len(chosen) == _MAX_KEYS:
            break
        chosen.append(keys)
    return tuple(product(*chosen))


def intervals_of(prefix: str, stretch: Interval, *, now: int) -> list[Interval]:
    """Return the times that a prefix means, for moments (R4 search, 3.1.1.5.4)."""
    start, end = stretch
    if prefix == "ap":  # a tenth of the distance to now, as R4 suggests
        slack = max(abs(now - start), abs(now - end)) // 10
        return [(start - slack, end + slack)]
    return {
        "eq": [(start, end)],
        "ne": [(0, start), (end, END_OF_TIME)],
        "gt": [(end, END_OF_TIME)],
        "sa": [(end, END_OF_TIME)],
        "ge": [(start, END_OF_TIME)],
        "lt": [(0, start)],
        "eb": [(0, start)],
        "le": [(0, end)],
    }[prefix]


def _keys_of_name(tenant: str, name: str) -> list[int]:
    """Return the keys of a resource; a patient is also among those that a record concerns."""
    entity = key_of(tenant, "entity", name)
    is_patient = name.startswith(f"{PATIENT}/")
    return [entity, key_of(tenant, "patient", name)] if is_patient else [entity]


def _fits(token: Token, coding: Coding) -> bool:
    system, code = coding
    return token.system in (None, system) and token.value in (None, code)
