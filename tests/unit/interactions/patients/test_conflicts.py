"""Identifiers that lead to several Patients, as the response to a registration names them."""

from __future__ import annotations

import json

import pytest

from fhirpub.interactions.patients.conflicts import patients_with, with_conflicts
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import TokenMatch
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import successor
from tests.unit.interactions.patients.people import (
    HOSPITAL,
    NATIONAL,
    OTHER,
    Ward,
    id_of,
    issues_of,
    person,
)

THIRD = "https://ward.example/numbers"
CODE = "person-conflict"


def codes(version: Version) -> list[str]:
    return [
        coding["code"]
        for issue in issues_of(version)
        for coding in issue.get("details", {}).get("coding", ())
    ]


def found_in(version: Version) -> list[str]:
    """Return the words of the conflicts that a response names."""
    return [
        issue["diagnostics"]
        for issue in issues_of(version)
        if CODE in [one["code"] for one in issue.get("details", {}).get("coding", ())]
    ]


async def test_an_identifier_of_another_patient_is_named(ward: Ward) -> None:
    other = await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))

    version = await ward.report("R-2", person((NATIONAL, "2"), (HOSPITAL, "x")))

    (issue,) = [one for one in issues_of(version) if one["severity"] == "warning"]
    assert issue["details"]["coding"][0]["code"] == CODE
    assert issue["expression"] == ["Patient.identifier"]
    assert (
        f"its identifier in {HOSPITAL} is also that of Patient/{id_of(other)}"
        in (issue["diagnostics"])
    )


async def test_the_conflict_is_stored_with_the_response_alone(ward: Ward) -> None:
    await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))

    version = await ward.report("R-2", person((NATIONAL, "2"), (HOSPITAL, "x")))

    stored = await ward.store.version(ward.tenant.id, version.id, 1)
    assert stored is not None
    assert found_in(stored) == found_in(version) != []
    assert b"also that of" not in stored.body + stored.parts + stored.events


async def test_the_issues_that_were_there_come_first(ward: Ward) -> None:
    await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))

    alone = await ward.report("R-2", person((NATIONAL, "3")))
    version = await ward.report("R-3", person((NATIONAL, "2"), (HOSPITAL, "x")))

    assert codes(version) == [*codes(alone), CODE]


async def test_without_a_conflict_a_version_is_as_it_was(ward: Ward) -> None:
    version = await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))

    assert await with_conflicts(version, **ward.named) is version


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([(NATIONAL, "1")], [(NATIONAL, "1")]),
        ([(NATIONAL, "1"), (HOSPITAL, "x")], [(NATIONAL, "1"), (HOSPITAL, "x")]),
        ([(HOSPITAL, "x")], [(HOSPITAL, "x")]),
        ([(NATIONAL, "1"), (HOSPITAL, "x")], [(NATIONAL, "2"), (HOSPITAL, "y")]),
        ([(NATIONAL, "1"), ("urn:other", "x")], [(NATIONAL, "2"), ("urn:other", "x")]),
        ([(NATIONAL, "1"), (HOSPITAL, "2")], [(NATIONAL, "2")]),
    ],
    ids=["same", "same in both", "same in the second", "no", "of no system", "other system"],
)
async def test_what_is_no_conflict_is_not_named(
    ward: Ward, first: list[tuple[str, str]], second: list[tuple[str, str]]
) -> None:
    await ward.report("R-1", person(*first))

    assert found_in(await ward.report("R-2", person(*second))) == []


async def test_the_preferred_identifier_of_another_patient_is_named(ward: Ward) -> None:
    one = await ward.report("R-1", person((NATIONAL, "1")))

    both = await ward.report("R-2", person((NATIONAL, "1"), (NATIONAL, "2"), (HOSPITAL, "x")))

    (said,) = found_in(both)
    assert f"in {NATIONAL} is also that of Patient/{id_of(one)}" in said


async def test_a_value_that_is_also_the_preferred_one_is_looked_up(ward: Ward) -> None:
    other = await ward.report("R-1", person((NATIONAL, "2"), (HOSPITAL, "1")))

    version = await ward.report("R-2", person((NATIONAL, "1"), (HOSPITAL, "1")))

    (said,) = found_in(version)
    assert f"in {HOSPITAL} is also that of Patient/{id_of(other)}" in said


async def test_conflicts_are_named_in_the_order_of_the_systems(ward: Ward) -> None:
    one = await ward.report("R-1", person((NATIONAL, "1")))
    other = await ward.report("R-2", person((HOSPITAL, "x")))

    version = await ward.report("R-3", person((HOSPITAL, "x"), (NATIONAL, "1"), (NATIONAL, "2")))

    # Two numbers of the first system decide nothing: the second one leads to the Patient.
    assert id_of(version) == id_of(other)
    assert len(found_in(version)) == 1
    assert f"in {NATIONAL} is also that of Patient/{id_of(one)}" in found_in(version)[0]


async def test_a_former_identifier_is_no_conflict(ward: Ward) -> None:
    await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))
    former = person((NATIONAL, "2"), (HOSPITAL, "x"))
    former["identifier"][1]["use"] = "old"

    assert found_in(await ward.report("R-2", former)) == []


async def test_patients_of_another_tenant_are_no_conflict(ward: Ward) -> None:
    theirs = Ward(ward.store, *ward.systems, tenant=OTHER)
    await theirs.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))

    assert found_in(await ward.report("R-2", person((NATIONAL, "2"), (HOSPITAL, "x")))) == []


async def test_a_vaccination_shows_conflicts_with_reports(ward: Ward) -> None:
    one = await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))

    version = await ward.vaccination("V-1", person((NATIONAL, "2"), (HOSPITAL, "x")))

    (said,) = found_in(version)
    assert f"Patient/{id_of(one)}" in said


@pytest.mark.parametrize(("systems", "count"), [((HOSPITAL,), 0), ((NATIONAL, HOSPITAL), 1)])
async def test_one_system_alone_has_no_conflicts(
    store: SqliteStore, systems: tuple[str, ...], count: int
) -> None:
    ward = Ward(store, *systems)
    await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))

    version = await ward.report("R-2", person((NATIONAL, "2"), (HOSPITAL, "x")))

    assert len(found_in(version)) == count


@pytest.mark.parametrize(("before", "is_named"), [(18, True), (19, True), (20, False)])
async def test_so_many_identifiers_are_compared(
    ward: Ward, before: int, *, is_named: bool
) -> None:
    await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "z")))
    others = [(HOSPITAL, f"a{number:02}") for number in range(before)]

    version = await ward.report("R-2", person(*others, (HOSPITAL, "z")))

    assert bool(found_in(version)) is is_named


async def test_at_most_five_patients_are_named(ward: Ward) -> None:
    for number in range(6):
        await ward.report(f"R-{number}", person((NATIONAL, f"{number}"), (HOSPITAL, "x")))

    version = await ward.report("R-7", person((NATIONAL, "7"), (HOSPITAL, "x")))

    (said,) = found_in(version)
    assert said.count("Patient/") == 5


async def test_a_patient_with_several_reports_is_named_once(ward: Ward) -> None:
    for number in range(3):
        await ward.report(f"R-{number}", person((NATIONAL, "1"), (HOSPITAL, "x")))

    version = await ward.report("R-7", person((NATIONAL, "7"), (HOSPITAL, "x")))

    (said,) = found_in(version)
    assert said.count("Patient/") == 1


# Patients with an identifier


async def found(ward: Ward, system: str, value: str) -> list[str]:
    return await patients_with(TokenMatch(system, value), **ward.named)


def address(*versions: Version) -> list[str]:
    return [f"Patient/{id_of(one)}" for one in versions]


async def test_patients_with_an_identifier_come_newest_first(ward: Ward) -> None:
    first = await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))
    second = await ward.vaccination("V-1", person((NATIONAL, "2"), (HOSPITAL, "x")))
    await ward.report("R-2", person((NATIONAL, "3"), (HOSPITAL, "y")))

    assert await found(ward, HOSPITAL, "x") == address(second, first)
    assert await found(ward, HOSPITAL, "z") == []
    assert await found(ward, NATIONAL, "x") == []


async def test_patients_of_another_tenant_are_not_found(ward: Ward) -> None:
    await ward.report("R-1", person((NATIONAL, "1")))

    assert await found(Ward(ward.store, *ward.systems, tenant=OTHER), NATIONAL, "1") == []


async def test_a_former_identifier_leads_to_nobody(ward: Ward) -> None:
    former = person((NATIONAL, "2"), (HOSPITAL, "x"))
    former["identifier"][1]["use"] = "old"
    await ward.report("R-1", former)

    assert await found(ward, HOSPITAL, "x") == []


@pytest.mark.parametrize("count", [5, 6])
async def test_behind_patients_with_a_former_identifier_others_are_found(
    ward: Ward, count: int
) -> None:
    one = await ward.report("R-0", person((NATIONAL, "0"), (HOSPITAL, "x")))
    for number in range(1, count):
        former = person((NATIONAL, f"{number}"), (HOSPITAL, "x"))
        former["identifier"][1]["use"] = "old"
        await ward.report(f"R-{number}", former)

    assert await found(ward, HOSPITAL, "x") == address(one)


async def test_behind_many_statements_about_one_patient_others_are_found(ward: Ward) -> None:
    one = await ward.report("R-0", person((NATIONAL, "0"), (HOSPITAL, "x")))
    others = [
        await ward.report(f"R-{number}", person((NATIONAL, "1"), (HOSPITAL, "x")))
        for number in range(1, 7)
    ]

    assert await found(ward, HOSPITAL, "x") == address(others[0], one)


async def test_a_statement_that_was_replaced_does_not_count(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))
    await ward.moved_to(report, HOSPITAL, "y")

    assert await found(ward, HOSPITAL, "x") == []
    assert await found(ward, HOSPITAL, "y") == [f"Patient/{ward.tenant.person_id(HOSPITAL, 'y')}"]


async def test_an_update_of_the_report_does_not_name_its_patient_twice(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))
    following = json.loads(report.search)
    values = [item for item in following if not item[0].endswith(":Patient")]
    await ward.store.add(ward.tenant.id, successor(report, search=json.dumps(values).encode()))

    assert await found(ward, NATIONAL, "1") == address(report)


async def test_no_more_than_five_patients_are_named(ward: Ward) -> None:
    for number in range(7):
        await ward.report(f"R-{number}", person((NATIONAL, f"{number}"), (HOSPITAL, "x")))

    assert len(await found(ward, HOSPITAL, "x")) == 5


async def test_what_the_person_had_before_its_system_was_declared_is_no_conflict(
    plain: Ward, ward: Ward
) -> None:
    await plain.report("R-1", person((NATIONAL, "1")), day=1)

    version = await ward.report("R-2", person((NATIONAL, "1")), day=2)

    assert found_in(version) == []


async def test_each_identifier_of_others_is_named(ward: Ward) -> None:
    first = await ward.report("R-1", person((NATIONAL, "1"), (HOSPITAL, "x")))
    second = await ward.report("R-2", person((NATIONAL, "2"), (HOSPITAL, "y")))

    version = await ward.report("R-3", person((NATIONAL, "3"), (HOSPITAL, "x"), (HOSPITAL, "y")))

    said = found_in(version)
    assert len(said) == 2
    assert f"Patient/{id_of(first)}" in said[0]
    assert f"Patient/{id_of(second)}" in said[1]
