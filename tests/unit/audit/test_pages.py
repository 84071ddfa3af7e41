from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fhirpub.app.stores import open_store
from fhirpub.audit.chain import MAX_BLOCK_BYTES
from fhirpub.audit.event import AUDIT_EVENT, Origin, event_of
from fhirpub.audit.pages import MAX_BYTES, Found, Scan, find_page, read_record
from fhirpub.audit.record import Agent
from fhirpub.audit.search import MAX_BLOCKS, Terms, read_parameters
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.storage.audit_contract import AuditBlock, AuditQuery
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from tests.audit_trail import NOON, a_record, seal
from tests.unit.audit.test_search import TERMS

PATIENTS = ("Patient/1", "Patient/2")
REPORTS = ("DiagnosticReport/a", "DiagnosticReport/b")
ORIGIN = Origin(TERMS.prefix, "https://fhir.example.org", TERMS.issuer)
Event = dict[str, Any]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    config = Config(storage=StorageConfig(url=f"sqlite:///{tmp_path}/trail.db"))
    async with open_store(config) as opened:
        yield opened


async def at_once(scan: Scan, _size: int) -> Sequence[Found]:
    return scan()


async def every_match(
    store: Store, terms: Terms, parameters: Sequence[tuple[str, str]]
) -> list[Event]:
    """Return what all pages of a search have."""
    search = read_parameters(parameters, terms)
    after, found = None, []
    while True:
        page = await find_page(store, terms.tenant, search, after=after, run=at_once)
        assert len(page.found) <= search.count
        found += [
            event_of(one.record, ORIGIN, block=one.block, place=one.place) for one in page.found
        ]
        if page.next is None:
            return found
        after = page.next


async def trail(store: Store, tenant: str) -> list[Event]:
    """Return every event of a tenant, by its chain."""
    return [
        event_of(orjson.loads(line), ORIGIN, block=block.number, place=place)
        for block in await store.audit_chain(tenant, limit=1_000)
        for place, line in enumerate(block.records.splitlines())
    ]


def references(event: Event) -> set[str]:
    named = [entity.get("what", {}).get("reference", "") for entity in event.get("entity", [])]
    return {*named, *(name.partition("/_history/")[0] for name in named)}


def agents(event: Event) -> set[str]:
    return {agent["who"].get("identifier", {}).get("value", "") for agent in event["agent"]}


CHECKS: dict[str, Callable[[Event, str], bool]] = {
    "patient": lambda event, value: value in references(event),
    "entity": lambda event, value: value in references(event),
    "agent": lambda event, value: value in agents(event),
    "action": lambda event, value: event["action"] == value,
    "outcome": lambda event, value: event["outcome"] == value,
    "subtype": lambda event, value: value in [one["code"] for one in event["subtype"]],
    "date": lambda event, value: event["recorded"] >= value.removeprefix("ge"),
    "_id": lambda event, value: event["id"] == value,
}
"""What each parameter means, by what is to be seen in an event."""
VALUES = st.one_of(
    st.tuples(st.just("patient"), st.lists(st.sampled_from(PATIENTS), min_size=1, max_size=2)),
    st.tuples(
        st.just("entity"),
        st.lists(
            st.sampled_from([*REPORTS, *PATIENTS, f"{REPORTS[0]}/_history/2"]),
            min_size=1,
            max_size=3,
        ),
    ),
    st.tuples(
        st.just("agent"), st.lists(st.sampled_from(["c1", "c2", "u"]), min_size=1, max_size=3)
    ),
    st.tuples(st.just("action"), st.lists(st.sampled_from("CRUDE"), min_size=1, max_size=2)),
    st.tuples(st.just("outcome"), st.lists(st.sampled_from("048"), min_size=1, max_size=2)),
    st.tuples(st.just("subtype"), st.lists(st.sampled_from(["read", "patch", "client.add"]),
                                           min_size=1, max_size=2)),
    st.tuples(st.just("date"), st.just(["ge2027-01-15T09:00:00.000Z"])),
    st.tuples(st.just("_id"), st.lists(
        st.sampled_from([f"{TERMS.prefix}-{block}-{place}"
                         for block in (1, 2, 3) for place in (0, 1)]), min_size=1, max_size=4)),
)  # fmt: skip
RECORDS = st.lists(
    st.builds(
        a_record,
        st.sampled_from(["read", "update", "client.add", "other"]),
        at=st.integers(0, 12).map(lambda step: NOON + step * 600_000),
        agent=st.sampled_from([Agent(client="c1"), Agent(client="c2"), Agent(user="u")]),
        status=st.sampled_from([200, 404, 503]),
        what=st.lists(
            st.sampled_from([*REPORTS, PATIENTS[0], f"{REPORTS[0]}/_history/2"]), max_size=2
        ).map(tuple),
        patients=st.lists(st.sampled_from(PATIENTS), max_size=2, unique=True).map(tuple),
    ),
    max_size=12,
)


@settings(
    deadline=None,
    max_examples=80,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    sealings=st.lists(RECORDS, max_size=4),
    parameters=st.lists(VALUES, max_size=3),
    count=st.integers(1, 4),
)
async def test_the_pages_of_a_search_have_what_a_comparison_with_every_event_finds(
    store: Store,
    sealings: list[list[bytes]],
    parameters: list[tuple[str, list[str]]],
    count: int,
) -> None:
    terms = replace(TERMS, tenant=str(uuid4()), page_size=count)
    for records in sealings:
        await seal(store, terms.tenant, records)
    expected = [
        event
        for event in await trail(store, terms.tenant)
        if all(any(CHECKS[name](event, value) for value in values) for name, values in parameters)
    ]

    asked = [(name, ",".join(values)) for name, values in parameters]
    found = await every_match(store, terms, asked)

    assert len(found) == len(expected)
    assert {event["id"] for event in found} == {event["id"] for event in expected}


async def test_records_of_one_sealing_come_in_the_order_of_time(store: Store) -> None:
    times = [NOON + step for step in (5, 1, 4, 2, 3)]
    await seal(store, "t", [a_record(at=time) for time in times])

    found = await every_match(store, TERMS, [("_count", "2")])

    recorded = [event["recorded"] for event in found]
    assert recorded == sorted(recorded, reverse=True)


async def test_a_page_ends_after_so_many_blocks(store: Store) -> None:
    hours = MAX_BLOCKS + 10
    await seal(store, "t", [a_record(at=NOON + 3_600_000 * hour) for hour in range(hours)])
    search = read_parameters([("subtype", "never")], TERMS)

    first = await find_page(store, "t", search, after=None, run=at_once)
    second = await find_page(store, "t", search, after=first.next, run=at_once)

    assert first.found == second.found == []
    assert first.next is not None
    assert second.next is None


async def test_a_page_ends_after_so_many_bytes(store: Store) -> None:
    names = tuple(f"DiagnosticReport/{number:036}" for number in range(1_000))
    for hour in range(20):
        some = [a_record(at=NOON + 3_600_000 * hour, what=names) for _ in range(10)]
        await seal(store, "t", some)
    search = read_parameters([("subtype", "never")], TERMS)
    sizes: list[int] = []

    async def measure(scan: Scan, size: int) -> Sequence[Found]:
        sizes.append(size)
        return scan()

    first = await find_page(store, "t", search, after=None, run=measure)

    assert first.next is not None
    assert 4_000_000 < sum(sizes) < 9_000_000


class Measured(SqliteStore):
    """A store that adds up what searches have read of it."""

    sizes: list[int]

    async def find_audit_blocks(self, tenant: str, query: AuditQuery) -> Sequence[AuditBlock]:
        found = await super().find_audit_blocks(tenant, query)
        self.sizes.append(sum(len(block.records) for block in found))
        return found


async def test_alternatives_share_the_size_of_a_page(tmp_path: Path) -> None:
    reports = [f"DiagnosticReport/{number:036}" for number in range(1_000)]
    store = Measured(tmp_path / "trail.db", deadline_seconds=10)
    store.sizes = []
    await store.start()
    for hour in range(10):
        at = NOON + 3_600_000 * hour
        await seal(store, "t", [a_record(at=at, what=tuple(reports)) for _ in range(20)])
    asked = [("subtype", "never"), ("entity", ",".join(reports[:8]))]
    search = read_parameters(asked, TERMS)
    at_a_time: list[int] = []

    async def scan_measured(scan: Scan, size: int) -> Sequence[Found]:
        at_a_time.append(sum(store.sizes))
        store.sizes.clear()
        return scan()

    await find_page(store, "t", search, after=None, run=scan_measured)

    assert len(search.keys) == 8
    assert 0 < max(at_a_time) < MAX_BYTES + 8 * MAX_BLOCK_BYTES
    await store.stop()


async def test_a_record_is_read_by_its_place_alone(store: Store) -> None:
    await seal(store, "t", [a_record("read", at=NOON), a_record("update", at=NOON + 3_600_000)])

    found = await read_record(store, "t", (2, 0))

    assert found is not None
    assert found["action"] == "update"
    for place in ((2, 1), (3, 0), (99, 0)):
        assert await read_record(store, "t", place) is None
    assert await read_record(store, "other", (2, 0)) is None
    assert event_of(found, ORIGIN, block=2, place=0)["resourceType"] == AUDIT_EVENT


async def places(store: Store, *parameters: tuple[str, str], after: Any = None) -> Any:
    """Return the places of one page, and where the next one begins."""
    search = read_parameters(parameters, TERMS)
    page = await find_page(store, "t", search, after=after, run=at_once)
    return [(one.block, one.place) for one in page.found], page.next


@pytest.mark.parametrize(("count", "more"), [("2", True), ("3", False)])
async def test_a_page_that_is_exactly_full_has_no_next_one(
    store: Store, count: str, *, more: bool
) -> None:
    await seal(store, "t", [a_record(at=NOON + step) for step in range(3)])

    found, following = await places(store, ("_count", count))

    assert len(found) == int(count)
    assert (following is not None) is more


async def test_a_page_of_named_records_goes_on_behind_the_last_one(store: Store) -> None:
    await seal(store, "t", [a_record(at=NOON + 3_600_000 * hour) for hour in range(4)])
    ids = ",".join(f"{TERMS.prefix}-{block}-0" for block in (1, 2, 4))

    first, after = await places(store, ("_id", ids), ("_count", "2"))
    second, end = await places(store, ("_id", ids), ("_count", "2"), after=after)

    assert (first, second, end) == ([(4, 0), (2, 0)], [(1, 0)], None)


async def test_a_named_record_that_meets_no_other_condition_is_not_found(store: Store) -> None:
    await seal(store, "t", [a_record("read", at=NOON), a_record("update", at=NOON + 1)])
    ids = f"{TERMS.prefix}-1-0,{TERMS.prefix}-1-1"

    found, _end = await places(store, ("_id", ids), ("subtype", "patch"))

    assert found == [(1, 1)]


async def test_a_record_that_is_named_and_missing_ends_no_search(store: Store) -> None:
    await seal(store, "t", [a_record(at=NOON)])
    ids = ",".join(f"{TERMS.prefix}-{place}" for place in ("1-0", "1-7", "9-0"))

    assert await places(store, ("_id", ids)) == ([(1, 0)], None)


async def test_a_search_reads_the_chain_of_its_tenant(store: Store) -> None:
    await seal(store, "t", [a_record(at=NOON)])
    await seal(store, "u", [a_record(at=NOON + 3_600_000)])

    assert await places(store) == ([(1, 0)], None)
    assert await places(store, ("_id", f"{TERMS.prefix}-1-0")) == ([(1, 0)], None)


async def test_what_was_found_has_the_size_of_its_line(store: Store) -> None:
    record = a_record(at=NOON)
    await seal(store, "t", [record])

    page = await find_page(store, "t", read_parameters([], TERMS), after=None, run=at_once)

    assert [one.size for one in page.found] == [len(record)]


async def test_records_of_one_millisecond_come_in_the_reverse_order_of_the_chain(
    store: Store,
) -> None:
    await seal(store, "t", [a_record(action, at=NOON) for action in ("read", "update", "vread")])

    assert await places(store) == ([(1, 2), (1, 1), (1, 0)], None)
