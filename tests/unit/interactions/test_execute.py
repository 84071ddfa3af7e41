"""A search from its parameters to its Bundle: what is asked, counted, linked and remarked."""

from __future__ import annotations

import pytest

from fhirpub.errors import InvalidSearch
from fhirpub.interactions.cursors import CURSOR
from fhirpub.interactions.execute import outcome_entry, search
from tests.panels import result
from tests.unit.interactions.patients.people import (
    NATIONAL,
    OTHER,
    Ward,
    called,
    person,
)
from tests.unit.interactions.searching import (
    BASE,
    REPORT,
    Given,
    bundle,
    entries,
    links,
    may,
    numbers,
    query_of,
    read,
    remarks,
    reports,
    type_of,
)

# Pages


async def test_matches_come_newest_first(ward: Ward) -> None:
    await reports(ward, 3)

    found = await bundle(ward)

    assert (found["type"], found["total"]) == ("searchset", 3)
    assert numbers(found) == ["R-2", "R-1", "R-0"]
    assert links(found) == {"self": BASE}
    resource = entries(found)[0]["resource"]
    assert entries(found)[0]["fullUrl"] == f"{BASE}/{resource['id']}"


async def test_nothing_found_is_a_bundle_without_entries(ward: Ward) -> None:
    found = await bundle(ward)

    assert found["total"] == 0
    assert "entry" not in found


async def test_resources_of_another_tenant_are_not_found(ward: Ward) -> None:
    await reports(ward, 1)

    assert numbers(await bundle(Ward(ward.store, *ward.systems, tenant=OTHER))) == []


async def test_without_a_total_there_is_none(ward: Ward) -> None:
    await reports(ward, 1)

    assert "total" not in await bundle(ward, ("_total", "none"))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
async def test_links_lead_through_all_matches(ward: Ward, count: int) -> None:
    await reports(ward, 3)
    given: list[Given] = [("_sort", "_lastUpdated"), ("_count", str(count)), ("status", "final")]
    every: list[str] = []
    for _ in range(4):
        found = await bundle(ward, *given)
        every += numbers(found)
        if "next" not in links(found):
            break
        given = query_of(links(found)["next"])

    assert every == ["R-0", "R-1", "R-2"]


async def test_a_link_to_a_page_leads_to_that_page(ward: Ward) -> None:
    await reports(ward, 2)
    first = await bundle(ward, ("_count", "1"))
    following = query_of(links(first)["next"])

    second = await bundle(ward, *following)

    assert query_of(links(second)["self"]) == following
    assert [name for name, _value in following] == ["_count", CURSOR]


async def test_a_link_to_a_further_page_has_its_own_place_alone(ward: Ward) -> None:
    await reports(ward, 3)
    first = await bundle(ward, ("_count", "1"))
    second = await bundle(ward, *query_of(links(first)["next"]))

    further = query_of(links(second)["next"])

    assert [name for name, _value in further] == ["_count", CURSOR]


async def test_a_link_leads_nowhere_in_another_search(ward: Ward) -> None:
    await reports(ward, 2)
    cursor = dict(query_of(links(await bundle(ward, ("_count", "1")))["next"]))[CURSOR]

    for given in ((("status", "final"), (CURSOR, cursor)), ((CURSOR, f"{cursor}x"),)):
        with pytest.raises(InvalidSearch) as refused:
            read(ward, *given)
        (issue,) = refused.value.issues
        assert (issue.expression, issue.diagnostics) == (CURSOR, "is not a link of this search")
        assert issue.details == "page-link-invalid"
    with pytest.raises(InvalidSearch):
        read(Ward(ward.store, *ward.systems, tenant=OTHER), ("_count", "1"), (CURSOR, cursor))
    with pytest.raises(InvalidSearch):
        read(ward, ("_count", "1"), (CURSOR, cursor), type_name="Observation")


# Remarks


async def test_what_was_not_used_is_remarked_at_the_end(ward: Ward) -> None:
    await reports(ward, 1)

    found = await bundle(ward, ("statu", "x"), ("code", ""), ("status", "final"))

    assert remarks(found) == [
        "the search parameter statu is not supported and was not used; did you mean status?",
        "the search parameter code has no value and was not used",
    ]
    assert found["entry"][-1]["search"] == {"mode": "outcome"}
    assert query_of(links(found)["self"]) == [("status", "final")]


async def test_the_entry_of_remarks_has_an_address_that_follows_from_them(ward: Ward) -> None:
    first, second = [await bundle(ward, (name, "x")) for name in ("a", "b")]
    again = outcome_entry([], ward.context)

    assert first["entry"][0]["fullUrl"].startswith("urn:uuid:")
    assert first["entry"][0]["fullUrl"] != second["entry"][0]["fullUrl"] != again["fullUrl"]
    assert again == outcome_entry([], ward.context)


# What is included


async def test_what_is_included_follows_the_matches(ward: Ward) -> None:
    report = await ward.report("R-1", person((NATIONAL, "1"), name=called("Ash")), result("a"))
    given = [("_include", "DiagnosticReport:*")]

    found = await bundle(ward, *given)

    included = [one["resource"]["resourceType"] for one in entries(found, "include")]
    assert included == ["Organization", "Observation", "Patient"]
    assert found["entry"][0]["search"]["mode"] == "match"
    (member,) = report.members
    addresses = [one["fullUrl"] for one in entries(found, "include")]
    assert f"http://127.0.0.1:8080/fhir/r4/Observation/{member.id}" in addresses


async def test_what_must_not_be_read_is_not_included(ward: Ward) -> None:
    await ward.report("R-1", person((NATIONAL, "1")), result("a"))

    found = await bundle(ward, ("_include", "DiagnosticReport:result"), allowed=may("Observation"))

    assert entries(found, "include") == []
    assert remarks(found) == ["no Observation is included: the access token has no scope for it"]


async def test_what_is_included_counts_among_what_is_stored(ward: Ward) -> None:
    await ward.report("R-1", person((NATIONAL, "1")), result("a"))
    given = [("_include", "DiagnosticReport:result")]

    alone, both = [
        await search(
            one, resource_type=type_of(ward, REPORT), strict=True, may=may(), **ward.named
        )
        for one in ((), given)
    ]

    assert len(both.bodies) == len(alone.bodies) + 1


# Patients


async def test_patients_are_found_by_what_is_stated(ward: Ward) -> None:
    await ward.report("R-1", person((NATIONAL, "1"), name=called("Ash")))
    await ward.report("R-2", person((NATIONAL, "1"), name=called("Birch")))

    found = await bundle(ward, ("family", "birch"), type_name="Patient")
    none = await bundle(ward, ("family", "ash"), type_name="Patient")

    assert [one["resource"]["name"][0]["family"] for one in entries(found)] == ["Birch"]
    assert entries(none) == []


async def test_links_lead_through_all_patients(ward: Ward) -> None:
    await reports(ward, 3)
    first = await bundle(ward, ("_count", "2"), type_name="Patient")
    second = await bundle(ward, *query_of(links(first)["next"]), type_name="Patient")

    ids = [one["resource"]["id"] for page in (first, second) for one in entries(page)]
    assert len({*ids}) == len(ids) == 3
    assert "next" not in links(second)


async def test_what_is_not_included_is_remarked_behind_what_was_not_used(ward: Ward) -> None:
    await ward.report("R-1", person((NATIONAL, "1")), result("a"))
    given = [("statu", "x"), ("_include", "DiagnosticReport:result")]

    found = await bundle(ward, *given, allowed=may("Observation"))

    assert [words.partition(":")[0].partition(" is ")[0] for words in remarks(found)] == [
        "the search parameter statu",
        "no Observation",
    ]
