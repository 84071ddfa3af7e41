"""Where a match is found, and where the next page begins."""

from __future__ import annotations

from fhirpub.interactions.patients.search import place_of
from fhirpub.storage.criteria import (
    ID,
    NEWEST_FIRST,
    Order,
)
from fhirpub.testing.samples import a_version
from tests.unit.interactions.patients.people import (
    NATIONAL,
    Ward,
    called,
    person,
)
from tests.unit.interactions.patients.test_search import a_few, by, found, search

# Reports that were moved


async def test_a_report_that_was_moved_is_found_at_its_patient(ward: Ward) -> None:
    await a_few(ward)
    report = await ward.report("R-9", person((NATIONAL, "1"), name=called("Elm")))
    await ward.moved_to(report, NATIONAL, "9")

    assert await found(ward) == ["Elm", "Oak", "Cedar", "Birch"]
    assert await found(ward, by(NATIONAL, "1")) == ["Oak"]
    assert await found(ward, by(NATIONAL, "9")) == ["Elm"]


# The place of a match


async def test_the_place_of_a_patient_is_that_of_its_statement(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1")))

    (one,) = (await search(ward)).versions

    assert place_of(one, (Order("name"),)) == (report.updated, report.id)


def test_the_place_of_another_match_follows_the_order() -> None:
    version = a_version(updated=7)

    assert place_of(version, NEWEST_FIRST) == (7, version.id)
    assert place_of(version, (Order(ID),)) == (version.id, version.id)
