"""Which references of a type a search follows, and what they lead to."""

from __future__ import annotations

import pytest

from fhirpub.interactions.search.followed_references import FollowedReferences, Key
from fhirpub.interactions.search.includes import Include
from fhirpub.storage.criteria import SearchValue
from fhirpub.testing.samples import new_id, new_member_id
from tests.unit.interactions.reading import INDEXER, TENANT
from tests.unit.interactions.updating import CONTEXT

OWNER, PERSON, VISIT = new_id(), new_member_id(), new_id()
OWN: SearchValue = ("subject", "", "Patient")
OF_PERSON: SearchValue = ("subject", PERSON, "Patient")
OF_VISIT: SearchValue = ("encounter", VISIT, "Encounter")
EVERYTHING = Include()
SUBJECTS = Include(parameter="subject")
VISITS = Include(parameter="encounter")
PATIENT = ("Patient", TENANT.part_id(OWNER, "patient"))
ORGANIZATION = ("Organization", TENANT.part_id(OWNER, "organization"))


def keys(*values: SearchValue, of: tuple[Include, ...] = (SUBJECTS,)) -> set[Key]:
    return {*FollowedReferences(INDEXER, of).keys_in(values, OWNER, TENANT)}


def test_the_names_are_those_of_the_references_that_are_followed() -> None:
    assert FollowedReferences(INDEXER, [SUBJECTS, VISITS]).names == {"subject", "encounter"}
    assert FollowedReferences(INDEXER, []).names == set()
    assert FollowedReferences(INDEXER, [Include(parameter="subject", reverse=True)]).names == set()


def test_a_reference_leads_to_its_type_and_id() -> None:
    assert keys(OF_PERSON, OF_VISIT) == {("Patient", PERSON)}
    assert keys(OF_PERSON, OF_VISIT, of=(VISITS,)) == {("Encounter", VISIT)}


def test_a_reference_to_a_part_leads_to_the_id_that_follows() -> None:
    assert keys(OWN) == {PATIENT}


def test_a_part_is_not_taken_for_the_person_that_it_is_found_by() -> None:
    assert keys(OWN, OF_PERSON) == {PATIENT}


def test_references_behind_the_person_that_a_part_is_found_by_are_followed() -> None:
    assert keys(OWN, OF_PERSON, OF_VISIT, of=(SUBJECTS, VISITS)) == {
        PATIENT,
        ("Encounter", VISIT),
    }


@pytest.mark.parametrize(
    ("target", "found"), [("Patient", {("Patient", PERSON)}), ("Group", set()), ("", None)]
)
def test_a_target_leaves_out_other_types(target: str, found: set[Key] | None) -> None:
    expected = {("Patient", PERSON)} if found is None else found

    assert keys(OF_PERSON, of=(Include(parameter="subject", target=target),)) == expected


@pytest.mark.parametrize(
    "value",
    [
        ("subject", "p1", "Patient"),
        ("subject", PERSON, ""),
        ("subject", "https://other.example/Patient/1", ""),
        ("subject", None, None),
        ("subject", "", "Location"),
    ],
)
def test_what_is_not_held_is_not_followed(value: SearchValue) -> None:
    assert keys(value) == set()


def test_all_that_came_with_a_resource_is_followed_where_everything_is() -> None:
    assert keys(OWN, of=(EVERYTHING,)) == {PATIENT, ORGANIZATION}
    assert keys(OF_PERSON, of=(EVERYTHING,)) == {("Patient", PERSON), ORGANIZATION}


def test_one_parameter_does_not_bring_all_that_came_along() -> None:
    assert ORGANIZATION not in keys(OWN, of=(SUBJECTS,))


@pytest.mark.parametrize("of", [(EVERYTHING, VISITS), (VISITS, EVERYTHING)])
def test_everything_is_followed_beside_one_parameter(of: tuple[Include, ...]) -> None:
    assert keys(OF_PERSON, of=of) == {("Patient", PERSON), ORGANIZATION}


def test_beside_a_part_other_resources_are_followed_by_the_same_reference() -> None:
    of_group: SearchValue = ("subject", VISIT, "Encounter")

    assert keys(OWN, of_group) == {PATIENT, ("Encounter", VISIT)}


def test_what_repeats_among_the_parts_is_no_part_by_its_name() -> None:
    follows = FollowedReferences(CONTEXT.searched["DiagnosticReport"], [EVERYTHING])

    found = {type_name for type_name, _id in follows.keys_in([OWN], OWNER, TENANT)}

    assert found == {"Patient", "Organization"}
