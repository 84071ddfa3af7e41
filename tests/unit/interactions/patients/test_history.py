"""The history of a patient: what was stated about it, newest first."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from fhirpub.errors import InvalidSearch, NoSuchResource, NotPermitted
from fhirpub.fhir.times import instant
from fhirpub.interactions.patients import history as history_module
from fhirpub.interactions.patients.history import history_of_patient
from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.interactions.patients.people import (
    DAY,
    EVERYTHING,
    NATIONAL,
    OTHER,
    START,
    Ward,
    called,
    id_of,
    may,
    person,
)


async def history(
    ward: Ward, patient_id: str, *, allowed: Any = None, **given: str
) -> dict[str, Any]:
    listing = await history_of_patient(
        patient_id, given, may=allowed or may(*EVERYTHING), **ward.named
    )
    return listing.bundle(ward.context)


def shown(bundle: dict[str, Any]) -> list[str]:
    return [entry["resource"]["name"][0]["family"] for entry in bundle.get("entry", ())]


def links(bundle: dict[str, Any]) -> dict[str, str]:
    return {link["relation"]: link["url"] for link in bundle["link"]}


def query_of(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


async def stated(ward: Ward, *families: str) -> str:
    """Register a report a day of one person under these names; return the id of the Patient."""
    reports = [
        await ward.report(f"R-{number}", person((NATIONAL, "1"), name=called(family)))
        for number, family in enumerate(families, 1)
    ]
    return id_of(reports[0])


async def test_statements_come_newest_first(ward: Ward) -> None:
    patient_id = await stated(ward, "Ash", "Birch", "Cedar")

    bundle = await history(ward, patient_id)

    assert (bundle["type"], shown(bundle)) == ("history", ["Cedar", "Birch", "Ash"])
    assert links(bundle).keys() == {"self"}
    assert urlsplit(links(bundle)["self"]).path == f"/fhir/r4/Patient/{patient_id}/_history"


async def test_statements_of_other_types_come_between(ward: Ward) -> None:
    patient_id = await stated(ward, "Ash")
    await ward.vaccination("V-1", person((NATIONAL, "1"), name=called("Birch")))
    await ward.report("R-9", person((NATIONAL, "1"), name=called("Cedar")))
    await ward.report("R-8", person((NATIONAL, "2"), name=called("Oak")))

    assert shown(await history(ward, patient_id)) == ["Cedar", "Birch", "Ash"]


async def test_what_must_not_be_read_is_left_out(ward: Ward) -> None:
    patient_id = await stated(ward, "Ash")
    await ward.vaccination("V-1", person((NATIONAL, "1"), name=called("Birch")))
    await ward.report("R-9", person((NATIONAL, "1"), name=called("Cedar")))

    bundle = await history(ward, patient_id, allowed=may("DiagnosticReport"))

    assert shown(bundle) == ["Cedar", "Ash"]
    assert shown(await history(ward, patient_id, allowed=may("Patient"))) == [
        "Cedar",
        "Birch",
        "Ash",
    ]


async def test_who_must_not_read_the_newest_statement_must_not_read_the_history(
    ward: Ward,
) -> None:
    patient_id = await stated(ward, "Ash")
    await ward.vaccination("V-1", person((NATIONAL, "1"), name=called("Birch")))

    with pytest.raises(NotPermitted):
        await history(ward, patient_id, allowed=may("DiagnosticReport"))


async def test_the_right_is_that_to_read(ward: Ward) -> None:
    patient_id = await stated(ward, "Ash")
    asked: list[str] = []

    def allowed(right: str, _types: Any) -> bool:
        asked.append(right)
        return True

    await history(ward, patient_id, allowed=allowed)

    assert {*asked} == {"r"}


async def test_the_history_of_another_tenant_is_not_known(ward: Ward) -> None:
    patient_id = await stated(ward, "Ash")

    with pytest.raises(NoSuchResource):
        await history(Ward(ward.store, *ward.systems, tenant=OTHER), patient_id)


@pytest.mark.parametrize(
    ("since", "found"),
    [
        (START + DAY, ["Cedar", "Birch", "Ash"]),
        (START + 2 * DAY, ["Cedar", "Birch"]),
        (START + 2 * DAY + 1, ["Cedar"]),
        (START + 4 * DAY, []),
    ],
)
async def test_a_history_begins_at_the_very_moment(
    ward: Ward, since: int, found: list[str]
) -> None:
    patient_id = await stated(ward, "Ash", "Birch", "Cedar")

    bundle = await history(ward, patient_id, _since=instant(since))

    assert shown(bundle) == found
    assert query_of(links(bundle)["self"]) == {"_since": instant(since)}


@pytest.mark.parametrize(("late", "is_shown"), [(-1, True), (0, True), (1, False)])
async def test_a_patient_of_one_report_was_stated_at_its_moment(
    plain: Ward, late: int, *, is_shown: bool
) -> None:
    report = await plain.report("R-1", person(name=called("Ash")))

    bundle = await history(plain, id_of(report), _since=instant(report.updated + late))

    assert shown(bundle) == (["Ash"] if is_shown else [])


async def test_a_patient_of_one_report_has_one_entry(plain: Ward) -> None:
    report = await plain.report("R-1", person(name=called("Ash")))
    await plain.report("R-2", person(name=called("Birch")))

    bundle = await history(plain, id_of(report))

    (entry,) = bundle["entry"]
    assert entry["resource"]["meta"]["versionId"] == "1"
    assert entry["resource"]["name"][0]["family"] == "Ash"
    assert links(bundle).keys() == {"self"}
    with pytest.raises(NotPermitted):
        await history(plain, id_of(report), allowed=may("Immunization"))


# Pages


@pytest.mark.parametrize("count", [1, 2, 3, 4])
async def test_pages_lead_to_all_statements(ward: Ward, count: int) -> None:
    names = ["Ash", "Birch", "Cedar"]
    patient_id = await stated(ward, *names)
    given, found = {"_count": str(count)}, []
    for _ in range(4):
        bundle = await history(ward, patient_id, **given)
        found.append(shown(bundle))
        if "next" not in links(bundle):
            break
        given = query_of(links(bundle)["next"])

    lengths = [len(names[at : at + count]) for at in range(0, 3, count)]
    assert [len(page) for page in found] == lengths
    assert [name for page in found for name in page] == names[::-1]


async def test_statements_of_one_moment_are_all_on_some_page(ward: Ward) -> None:
    reports = [
        await ward.report(f"R-{number}", person((NATIONAL, "1")), day=1) for number in range(3)
    ]
    given, ids = {"_count": "1"}, []
    for _ in range(3):
        bundle = await history(ward, id_of(reports[0]), **given)
        ids += [entry["resource"]["meta"]["versionId"] for entry in bundle["entry"]]
        given = query_of(links(bundle).get("next", ""))

    assert (len({*ids}), given) == (3, {})


async def test_a_link_keeps_what_was_asked_for(ward: Ward) -> None:
    patient_id = await stated(ward, "Ash", "Birch", "Cedar")
    since = instant(START + 2 * DAY)

    first = await history(ward, patient_id, _since=since, _count="1")
    following = query_of(links(first)["next"])
    second = await history(ward, patient_id, **following)

    assert urlsplit(links(first)["next"]).path == f"/fhir/r4/Patient/{patient_id}/_history"
    assert (following["_since"], following["_count"]) == (since, "1")
    assert (shown(first), shown(second)) == (["Cedar"], ["Birch"])
    assert "next" not in links(second)


async def test_a_link_does_not_lead_into_another_history(ward: Ward) -> None:
    patient_id = await stated(ward, "Ash", "Birch")
    other = await ward.report("R-9", person((NATIONAL, "2")))
    following = query_of(links(await history(ward, patient_id, _count="1"))["next"])

    for asked, given in (
        (id_of(other), following),
        (patient_id, {**following, "_since": "2020"}),
    ):
        with pytest.raises(InvalidSearch):
            await history(ward, asked, **given)


async def test_a_page_of_none_has_no_link(ward: Ward) -> None:
    patient_id = await stated(ward, "Ash", "Birch")

    bundle = await history(ward, patient_id, _count="0")

    assert shown(bundle) == []
    assert links(bundle).keys() == {"self"}


async def test_a_page_longer_than_a_batch_is_read_to_its_end(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "_BATCH", 2)
    patient_id = await stated(ward, "Ash", "Birch", "Cedar", "Oak", "Pine")

    bundle = await history(ward, patient_id, _count="4")

    assert shown(bundle) == ["Pine", "Oak", "Cedar", "Birch"]
    assert "next" in links(bundle)


# Reports that were moved


async def test_a_statement_that_no_longer_counts_is_left_out(ward: Ward) -> None:
    ash = await ward.report("R-1", person((NATIONAL, "1"), name=called("Ash")))
    birch = await ward.report("R-2", person((NATIONAL, "1"), name=called("Birch")))
    await ward.moved_to(birch, NATIONAL, "2")

    assert shown(await history(ward, id_of(ash))) == ["Ash"]
    other = await history(ward, ward.tenant.person_id(NATIONAL, "2"))
    assert [entry["resource"]["meta"]["versionId"] for entry in other["entry"]] == [
        f"{birch.id}.2"
    ]


async def test_each_entry_names_its_statement(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))

    (entry,) = (await history(ward, id_of(report)))["entry"]

    assert entry["fullUrl"].endswith(f"/fhir/r4/Patient/{id_of(report)}")
    assert entry["response"]["etag"] == f'W/"{report.id}.1"'


async def test_an_unknown_patient_has_no_history(store: SqliteStore) -> None:
    with pytest.raises(NoSuchResource):
        await history(Ward(store), "8f2b6c1e-1111-4222-8333-444455556666")
