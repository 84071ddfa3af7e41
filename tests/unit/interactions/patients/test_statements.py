"""Statements about patients: newest first, without those that a later one replaced."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fhirpub.errors import SearchTooCostly
from fhirpub.interactions.context import Context
from fhirpub.interactions.patients import statements
from fhirpub.interactions.patients.statements import (
    Asked,
    Statement,
    StatementWalk,
    newest_statement,
    patients_of,
    sources_of,
    statement_in,
    stating,
)
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import ANYTHING, Criterion, SortKey
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import successor
from tests.unit.interactions.patients.people import (
    DAY,
    HOSPITAL,
    NATIONAL,
    OTHER,
    START,
    SYSTEMS,
    TENANT,
    Ward,
    called,
    context_of,
    families,
    id_of,
    person,
)


def walk_of(
    context: Context,
    *,
    tenant: Tenant = TENANT,
    after: SortKey | None = None,
    every: bool = False,
) -> StatementWalk:
    """Return a walk along the statements about all patients."""
    asked = [
        Asked(source, (Criterion(source.names.marker, (ANYTHING,)),))
        for source in sources_of(context)
    ]
    return StatementWalk(asked, tenant=tenant, context=context, after=after, every=every)


async def all_of(walk: StatementWalk, number: int = 50) -> list[str]:
    """Return the version ids of statements, read so many at once."""
    found: list[str] = []
    while batch := await walk.take(number):
        assert len(batch) <= number
        found += [one.version_id for one in batch]
    return found


def ids(*versions: Version) -> list[str]:
    return [f"{one.id}.{one.version}" for one in versions]


async def alternating(ward: Ward) -> Sequence[Version]:
    """Register reports and vaccinations by turns, the newest first."""
    found = []
    for number in range(3):
        one = person((NATIONAL, f"{number}"))
        found += [
            await ward.report(f"R-{number}", one),
            await ward.vaccination(f"V-{number}", one),
        ]
    return found[::-1]


@pytest.mark.parametrize("number", [1, 2, 5, 6, 50])
async def test_statements_of_all_types_come_newest_first(ward: Ward, number: int) -> None:
    every = await alternating(ward)

    assert await all_of(walk_of(ward.context), number) == ids(*every)


@pytest.mark.parametrize("number", [1, 2, 50])
async def test_statements_of_one_moment_come_by_the_ids_of_their_resources(
    ward: Ward, number: int
) -> None:
    found = [await ward.report(f"R-{n}", person((NATIONAL, f"{n}")), day=1) for n in range(3)]
    found += [await ward.vaccination(f"V-{n}", person((NATIONAL, "1")), day=1) for n in range(3)]

    everything = await all_of(walk_of(ward.context), number)

    assert everything == ids(*sorted(found, key=lambda one: one.id))


async def test_a_walk_goes_on_behind_a_place(ward: Ward) -> None:
    every = await alternating(ward)
    place = every[2].updated, every[2].id

    assert await all_of(walk_of(ward.context, after=place)) == ids(*every[3:])


async def test_a_walk_stays_in_its_tenant(ward: Ward) -> None:
    await alternating(ward)

    assert await all_of(walk_of(ward.context, tenant=OTHER)) == []


async def test_patients_who_are_excluded_are_not_read_again(ward: Ward) -> None:
    reports = [await ward.report(f"R-{n}", person((NATIONAL, f"{n % 2}"))) for n in range(6)]
    walk = walk_of(ward.context)

    (first,) = await walk.take(1)
    walk.excluded = [first.patient_id]

    assert await all_of(walk, 1) == ids(reports[4], reports[2], reports[0])


async def test_a_statement_that_was_replaced_is_left_out(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    other = await ward.report("R-2", person((NATIONAL, "1")))
    await ward.moved_to(report, NATIONAL, "2")

    assert await all_of(walk_of(ward.context), 1) == [f"{report.id}.2", f"{other.id}.1"]


async def test_of_several_later_statements_the_last_one_counts(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    for number in ("2", "3", "2"):
        await ward.moved_to(report, NATIONAL, number)

    assert await all_of(walk_of(ward.context)) == [f"{report.id}.4"]


async def test_resources_that_were_moved_do_not_hide_others(ward: Ward) -> None:
    moved, other = [
        await ward.report(f"R-{number}", person((NATIONAL, "1"))) for number in range(2)
    ]
    vaccination = await ward.vaccination("V-1", person((NATIONAL, "1")))
    await ward.moved_to(moved, NATIONAL, "2")
    await ward.moved_to(vaccination, NATIONAL, "2")

    assert await all_of(walk_of(ward.context)) == [
        f"{vaccination.id}.2",
        f"{moved.id}.2",
        f"{other.id}.1",
    ]


async def test_every_statement_can_be_asked_for(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    await ward.moved_to(report, NATIONAL, "2")

    walk = walk_of(ward.context, every=True)

    assert await all_of(walk, 1) == [f"{report.id}.2", f"{report.id}.1"]


async def test_a_batch_of_replaced_statements_is_not_the_end(ward: Ward) -> None:
    last = await ward.report("R-0", person((NATIONAL, "1")))
    reports = [await ward.report(f"R-{n}", person((NATIONAL, "1"))) for n in (1, 2)]
    for one in reports:
        await ward.moved_to(one, NATIONAL, "2")
    asked = [
        Asked(source, (stating([id_of(last)], source),)) for source in sources_of(ward.context)
    ]
    walk = StatementWalk(asked, **ward.named)

    assert await all_of(walk, 1) == ids(last)


async def test_a_new_version_without_a_statement_leaves_the_first_one(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    await ward.store.add(TENANT.id, successor(report, search=b"[]"))

    assert await all_of(walk_of(ward.context)) == ids(report)


async def test_only_statements_that_fulfil_the_criteria_are_read(ward: Ward) -> None:
    first = await ward.report("R-1", person((NATIONAL, "1")))
    await ward.report("R-2", person((NATIONAL, "2")))
    asked = [Asked(one, (stating([id_of(first)], one),)) for one in sources_of(ward.context)]

    assert await all_of(StatementWalk(asked, **ward.named)) == ids(first)


async def test_only_statements_of_the_resources_with_the_ids_are_read(ward: Ward) -> None:
    first, second = [await ward.report(f"R-{n}", person((NATIONAL, "1"))) for n in range(2)]
    source = next(one for one in sources_of(ward.context) if one.type_name == first.type)
    marker = Criterion(source.names.marker, (ANYTHING,))

    one = Asked(source, (marker,), frozenset({first.id}))
    both = Asked(source, (marker,), frozenset({first.id, second.id}))

    assert await all_of(StatementWalk([one], **ward.named)) == ids(first)
    assert await all_of(StatementWalk([both], **ward.named)) == ids(second, first)


async def test_the_time_of_a_walk_ends_after_that_of_a_search(store: SqliteStore) -> None:
    ward = Ward(store, *SYSTEMS)
    reports = [await ward.report(f"R-{number}", person((NATIONAL, "1"))) for number in range(3)]
    now = [START]
    context = replace(ward.context, clock=lambda: now[0])
    walk = walk_of(context)
    budget = int(context.config.limits.search_seconds * 1_000)

    now[0] = START + budget
    assert [one.version_id for one in await walk.take(1)] == ids(reports[2])
    now[0] = START + budget + 1
    with pytest.raises(SearchTooCostly):
        await walk.take(1)


# One statement


async def test_the_newest_statement_is_that_of_the_sources_asked_for(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    vaccination = await ward.vaccination("V-1", person((NATIONAL, "1")))
    every = [*sources_of(ward.context)]
    reports = [one for one in every if one.type_name == "DiagnosticReport"]

    newest = await newest_statement(id_of(report), sources=every, **ward.named)
    of_reports = await newest_statement(id_of(report), sources=reports, **ward.named)

    assert newest is not None
    assert of_reports is not None
    assert [newest.version_id, of_reports.version_id] == ids(vaccination, report)


async def test_there_is_no_statement_about_others(ward: Ward) -> None:
    await ward.report("R-1", person((NATIONAL, "1")))
    unknown = TENANT.person_id(NATIONAL, "2")

    sources = [*sources_of(ward.context)]

    assert await newest_statement(unknown, sources=sources, **ward.named) is None


async def test_a_statement_is_a_version_of_its_patient(ward: Ward) -> None:
    report = await ward.report("R-1", person((HOSPITAL, "x"), name=called("Ash")))
    source = next(one for one in sources_of(ward.context) if one.type_name == report.type)

    statement = statement_in(report, source)

    assert statement is not None
    assert statement.patient_id == id_of(report) == TENANT.person_id(HOSPITAL, "x")
    found = statement.patient()
    assert (found.id, found.type, found.version) == (id_of(report), "Patient", 1)
    assert (found.created, found.updated) == (START + DAY, START + DAY)
    assert (found.owner_type, found.place) == ("DiagnosticReport", (START + DAY, report.id))
    assert (found.statement, found.tag) == (f"{report.id}.1", f"{report.id}.1")
    assert (found.system, found.value, found.status) == ("", "", "")


async def test_a_patient_of_one_report_has_no_id_of_a_statement(plain: Ward) -> None:
    report = await plain.report("R-1", person(name=called("Ash")))
    (source,) = (one for one in sources_of(plain.context) if one.type_name == report.type)

    statement = statement_in(report, source)

    assert statement is not None
    assert (statement.patient_id, statement.version_id) == (id_of(report), "")
    assert statement.patient().tag == "1"
    assert json.loads(statement.patient().body)["meta"]["versionId"] == "1"


async def test_a_version_without_a_marker_states_nothing(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    source = next(one for one in sources_of(ward.context) if one.type_name == report.type)

    assert statement_in(successor(report, search=b"[]"), source) is None


async def test_what_was_stored_before_its_system_was_declared_has_the_id_of_the_person(
    store: SqliteStore,
) -> None:
    report = await Ward(store).report("R-1", person((NATIONAL, "1"), name=called("Ash")))
    context = context_of(store, *SYSTEMS)
    source = next(one for one in sources_of(context) if one.type_name == report.type)
    person_id = TENANT.person_id(NATIONAL, "1")

    found = Statement(person_id, source, report).patient()

    body = json.loads(found.body)
    before = json.loads(report.parts)["patient"]
    statement = f"{report.id}.1"
    assert body == {**before, "id": person_id, "meta": {**before["meta"], "versionId": statement}}
    assert found.statement == statement


async def test_statements_become_patients_in_their_order(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "_READ_AT_ONCE", 1)
    for number, family in enumerate(["Ash", "Birch", "Cedar"]):
        await ward.report(f"R-{number}", person((NATIONAL, f"{number}"), name=called(family)))

    found = await patients_of(await walk_of(ward.context).take(3))

    assert families(found) == ["Cedar", "Birch", "Ash"]


# What is asked of a store


async def test_the_parts_by_which_patients_come_are_sources(ward: Ward) -> None:
    assert [(one.type_name, one.part, one.element) for one in sources_of(ward.context)] == [
        ("DiagnosticReport", "patient", "subject"),
        ("Immunization", "patient", "patient"),
    ]


async def test_patients_are_asked_for_in_one_order(ward: Ward) -> None:
    source = next(iter(sources_of(ward.context)))
    persons = [TENANT.person_id(NATIONAL, f"{number}") for number in range(5)]

    asked = stating(persons, source)

    assert asked.name == source.names.marker
    assert asked.negated is False
    assert [(one.system, one.value) for one in asked.any_of] == [  # type: ignore[union-attr]
        ("", one) for one in sorted(persons)
    ]
    assert stating(persons, source, negated=True) == replace(asked, negated=True)
