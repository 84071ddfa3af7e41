"""All that was stated about a patient, with the reports that state it and their relocations."""

from __future__ import annotations

import pytest

from fhirpub.errors import NoSuchResource
from fhirpub.interactions.patients import overview
from fhirpub.interactions.patients.overview import Stated, statements_about
from fhirpub.interactions.reindex import reindex_if_needed
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.contracts.erasure.content import erase
from fhirpub.testing.samples import successor
from tests.unit.interactions.patients.people import (
    DAY,
    NATIONAL,
    NOTE,
    OTHER,
    START,
    SYSTEMS,
    TENANT,
    Ward,
    called,
    id_of,
    person,
)


async def about(ward: Ward, patient_id: str) -> list[Stated]:
    return [one async for one in statements_about(patient_id, **ward.named)]


async def test_nothing_was_stated_about_an_unknown_person(ward: Ward) -> None:
    await ward.report("R-1", person((NATIONAL, "1")))

    assert await about(ward, ward.tenant.person_id(NATIONAL, "2")) == []


async def test_statements_come_newest_first_with_their_reports(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1"), name=called("Ash")))
    vaccination = await ward.vaccination("V-1", person((NATIONAL, "1"), name=called("Birch")))

    second, first = await about(ward, id_of(report))

    assert first.patient["name"][0]["family"] == "Ash"
    assert second.patient["name"][0]["family"] == "Birch"
    assert (first.resource_type, first.resource_id) == ("DiagnosticReport", report.id)
    assert (second.resource_type, second.resource_id) == ("Immunization", vaccination.id)
    assert (first.statement, first.stated) == (f"{report.id}.1", START + DAY)
    assert (second.statement, second.stated) == (f"{vaccination.id}.1", START + 2 * DAY)
    assert first.belongs_to == second.belongs_to == id_of(report)
    assert first.provenance == second.provenance == {}


@pytest.mark.parametrize("count", [1, 2, 3, 5])
async def test_more_statements_than_a_batch_has_come_once_each(
    ward: Ward, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(overview, "_BATCH", 2)
    reports = [await ward.report(f"R-{n}", person((NATIONAL, "1"))) for n in range(count)]

    found = [one.resource_id for one in await about(ward, id_of(reports[0]))]

    assert found == [one.id for one in reports[::-1]]


async def test_statements_of_another_tenant_are_left_out(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))

    assert await about(Ward(ward.store, *ward.systems, tenant=OTHER), id_of(report)) == []


async def test_a_patient_of_one_report_was_stated_by_it(plain: Ward) -> None:
    report = await plain.report("R-1", person(name=called("Ash")))

    (one,) = await about(plain, id_of(report))

    assert (one.statement, one.stated) == ("1", report.updated)
    assert (one.resource_type, one.resource_id) == ("DiagnosticReport", report.id)
    assert one.patient["id"] == one.belongs_to == id_of(report)
    assert one.provenance == {}


async def test_a_patient_of_one_vaccination_was_stated_by_it(plain: Ward) -> None:
    vaccination = await plain.vaccination("V-1", person())

    (one,) = await about(plain, id_of(vaccination))

    assert (one.resource_type, one.resource_id) == ("Immunization", vaccination.id)


async def test_an_unknown_patient_of_one_report_is_refused(plain: Ward) -> None:
    report = await plain.report("R-1", person())

    with pytest.raises(NoSuchResource):
        await about(Ward(plain.store, tenant=OTHER), id_of(report))


async def test_a_report_that_was_moved_belongs_to_another_patient(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    await ward.moved_to(report, NATIONAL, "2")
    after = ward.tenant.person_id(NATIONAL, "2")

    (before,) = await about(ward, id_of(report))
    (now,) = await about(ward, after)

    assert (before.statement, before.belongs_to, before.provenance) == (
        f"{report.id}.1",
        after,
        {},
    )
    assert (now.statement, now.belongs_to) == (f"{report.id}.2", after)
    assert now.provenance["agent"] == [{"who": {"display": NOTE.operator}}]
    assert now.provenance["reason"] == [{"text": NOTE.reason}]


async def test_a_report_that_was_moved_and_back_belongs_to_its_patient(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    await ward.moved_to(report, NATIONAL, "2")
    await ward.moved_to(report, NATIONAL, "1")
    between = ward.tenant.person_id(NATIONAL, "2")

    found = await about(ward, id_of(report))
    (other,) = await about(ward, between)

    assert [one.statement for one in found] == [f"{report.id}.3", f"{report.id}.1"]
    assert [one.belongs_to for one in found] == [id_of(report), id_of(report)]
    assert [bool(one.provenance) for one in found] == [True, False]
    assert other.belongs_to == id_of(report)


async def test_a_report_with_a_new_version_belongs_to_its_patient(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    await ward.store.add(ward.tenant.id, successor(report, search=b"[]"))

    (one,) = await about(ward, id_of(report))

    assert (one.statement, one.belongs_to) == (f"{report.id}.1", id_of(report))


async def test_what_was_erased_states_nothing(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    other = await ward.report("R-2", person((NATIONAL, "1")))
    await erase(ward.store, report)

    assert [one.resource_id for one in await about(ward, id_of(report))] == [other.id]


async def test_what_is_erased_while_it_is_listed_states_what_was_read(ward: Ward) -> None:
    first = await ward.report("R-1", person((NATIONAL, "1"), name=called("Ash")))
    second = await ward.report("R-2", person((NATIONAL, "1")))
    found = statements_about(id_of(first), **ward.named)
    assert (await anext(found)).resource_id == second.id

    await erase(ward.store, first)
    (one,) = [one async for one in found]

    assert (one.statement, one.belongs_to) == (f"{first.id}.1", id_of(first))
    assert one.patient["name"][0]["family"] == "Ash"
    assert one.provenance == {}


async def test_a_report_from_before_its_system_was_declared_was_not_moved(
    store: SqliteStore,
) -> None:
    before = Ward(store)
    report = await before.report("R-1", person((NATIONAL, "1")))
    ward = Ward(store, *SYSTEMS)
    await store.put_tenant(TENANT)
    await reindex_if_needed(store, ward.context.searched)
    await store.add(TENANT.id, successor(report, search=b"[]"))
    person_id = TENANT.person_id(NATIONAL, "1")

    (one,) = await about(ward, person_id)

    assert (one.statement, one.belongs_to) == (f"{report.id}.1", person_id)
