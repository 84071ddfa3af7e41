"""What resources are found by through their parts, and what the rules of an index depend on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.plugin_api import (
    IdentifierRule,
    Part,
    ResourceType,
    SearchParameter,
    ValueForm,
    organization,
    patient,
    r4_composite,
    r4_parameter,
)
from fhirpub.plugin_api.identifier import EXACTLY_ONE
from fhirpub.storage.criteria import TokenMatch, decode
from fhirpub.tenant import Tenant
from tests.indexers import indexer

TENANT = Tenant.new("Lab", created=1)
ID = "34926f96-0f76-4bf8-8d32-a6b9ec2f8936"
PERSON = "00000000-0000-8000-8000-000000000001"
SUBJECT, PERFORMER = patient(referred_by="subject"), organization(referred_by="performer")
SECOND = replace(PERFORMER, name="interpreter", referred_by="resultsInterpreter")
MEMBER = Part(
    name="member", type="Observation", referred_by="result", repeats=True, patient="subject"
)
CODE = r4_parameter("clinical-code", "token", "code")
QUANTITY = r4_parameter("Observation-value-quantity", "quantity", "valueQuantity")
CONCEPT = r4_parameter("Observation-value-concept", "token", "valueCodeableConcept")
OF_QUANTITY = r4_composite("Observation-code-value-quantity", "code", "value-quantity")
OF_CONCEPT = r4_composite("Observation-code-value-concept", "code", "value-concept")
UPPER = IdentifierRule(most=3, forms=(ValueForm(case="upper"),))
TYPED = {"coding": [{"system": "urn:t", "code": "PLAC"}]}


def searched(
    *parts: Part,
    search: tuple[SearchParameter, ...] = (),
    identifier: IdentifierRule = EXACTLY_ONE,
    member: Part | None = None,
    type_name: str = "",
) -> SearchIndexer:
    declared = ResourceType(
        name=type_name or ("DiagnosticReport" if SECOND in parts else "Observation"),
        parts=parts,
        create_statuses=frozenset({"final"}),
        update_statuses=frozenset({"final"}),
        search=search,
        identifier=identifier,
    )
    return indexer(declared, member=member)


def resource(version: int = 1, **elements: Any) -> dict[str, Any]:
    meta = {"versionId": f"{version}"}
    return {"resourceType": "Observation", "id": ID, "meta": meta, **elements}


def person(version_id: str, *identifiers: str) -> dict[str, Any]:
    return {
        "resourceType": "Patient",
        "id": "p1",
        "meta": {"versionId": version_id},
        "identifier": [{"system": "urn:p", "value": value} for value in identifiers],
        "birthDate": "1970-01-01",
    }


# Parts that belong to one resource


def test_the_part_of_a_type_has_the_id_that_follows_from_its_resource() -> None:
    it = searched(SUBJECT, PERFORMER)

    assert it.own_part("Patient", ID, TENANT) == TENANT.part_id(ID, "patient")
    assert it.own_part("Organization", ID, TENANT) == TENANT.part_id(ID, "organization")


def test_a_type_without_a_part_has_no_part_of_its_own() -> None:
    assert searched(SUBJECT).own_part("Practitioner", ID, TENANT) == ""


def test_of_two_parts_of_one_type_none_is_meant_by_the_type_alone() -> None:
    it = searched(SUBJECT, PERFORMER, SECOND)

    assert it.own_part("Organization", ID, TENANT) == ""
    assert it.own_part("Patient", ID, TENANT) == TENANT.part_id(ID, "patient")


def test_the_id_of_a_part_of_any_type_leads_to_its_owner_by_each_part() -> None:
    it = searched(SUBJECT, PERFORMER)
    part = TENANT.part_id(ID, "patient")

    assert [*it.owners(None, part, TENANT)] == [
        TokenMatch("Patient", "", ID),
        TokenMatch("Organization", "", TENANT.part_id(part, "organization")),
    ]


def test_the_id_of_a_part_of_one_type_leads_to_its_owner_by_this_part_alone() -> None:
    it = searched(SUBJECT, PERFORMER)
    part = TENANT.part_id(ID, "organization")

    assert [*it.owners("Organization", part, TENANT)] == [TokenMatch("Organization", "", ID)]
    assert [*it.owners("Practitioner", part, TENANT)] == []


def test_what_is_no_id_leads_to_no_owner() -> None:
    assert [*searched(SUBJECT).owners("Patient", "p1", TENANT)] == []


# Persons


def test_a_resource_of_a_person_is_found_by_the_person_too() -> None:
    it, own = searched(SUBJECT), TENANT.part_id(ID, "patient")
    whose = {**person("1"), "id": own}

    values = decode(
        it.values(
            resource(subject={"reference": f"Patient/{own}"}),
            {"patient": whose},
            persons={"patient": PERSON},
        )
    )

    assert ("subject", PERSON, "Patient") in values
    assert ("subject", "", "Patient") in values


def test_what_a_first_version_states_of_a_patient_is_not_marked_as_later() -> None:
    names = {name for name, *_ in decode(searched(SUBJECT).values(resource(), {}))}
    stated = searched(SUBJECT).values(resource(), {"patient": person("1")})

    assert names == set()
    assert {name for name, *_ in decode(stated)} == {
        "subject:Patient",
        "subject:Patient.birthDate",
    }


def test_what_a_second_version_states_of_a_patient_is_marked_as_later() -> None:
    stated = searched(SUBJECT).values(resource(2), {"patient": person(f"{ID}.2")})

    assert ("subject:Patient:later", "", "") in decode(stated)


@pytest.mark.parametrize("version_id", [f"{ID}.1", "other.2"])
def test_what_another_version_stated_of_a_patient_is_not_stated_again(version_id: str) -> None:
    stated = searched(SUBJECT).values(resource(2), {"patient": person(version_id, "7")})

    assert decode(stated) == [("subject:Patient.identifier", "7", "urn:p")]


def test_a_later_version_is_found_by_the_identifiers_of_the_patient_of_the_first() -> None:
    it = searched(SUBJECT)
    before = it.values(resource(), {"patient": person("1", "7")})

    assert decode(it.next_values(resource(2), before, TENANT)) == [
        ("subject:Patient.identifier", "7", "urn:p")
    ]


# Rules


@pytest.mark.parametrize("comes_with", [False, True])
def test_other_systems_of_persons_are_a_reason_to_reindex_what_refers_to_patients(
    *, comes_with: bool
) -> None:
    one, other = (
        searched(member=MEMBER) if comes_with else searched(SUBJECT) for _number in range(2)
    )

    other.person_systems = ("urn:p",)

    assert one.rules != other.rules


def test_systems_of_persons_are_no_reason_to_reindex_what_has_no_patients() -> None:
    one, other = searched(PERFORMER), searched(PERFORMER)

    other.person_systems = ("urn:p",)

    assert one.rules == other.rules


def test_another_composite_is_a_reason_to_reindex() -> None:
    with_quantity = searched(search=(CODE, QUANTITY, CONCEPT, OF_QUANTITY))
    with_concept = searched(search=(CODE, QUANTITY, CONCEPT, OF_CONCEPT))

    assert with_quantity.rules != with_concept.rules


@pytest.mark.parametrize("zone", ["Europe/Madrid", "America/La_Paz"])
def test_another_time_zone_is_a_reason_to_reindex(zone: str) -> None:
    one, other = searched(SUBJECT), searched(SUBJECT)

    other.zone = ZoneInfo(zone)

    assert one.rules != other.rules


def test_another_form_of_identifiers_is_a_reason_to_reindex() -> None:
    lower = replace(UPPER, forms=(ValueForm(case="lower"),))

    assert searched(identifier=UPPER).rules != searched(identifier=lower).rules


# Forms of identifiers


def test_identifiers_are_found_in_the_form_in_which_they_are_compared() -> None:
    it = searched(identifier=UPPER)

    values = it.values(resource(identifier=[{"system": "urn:s", "value": "a1"}]), {})

    assert ("identifiers", "A1", "urn:s") in decode(values)


def test_identifiers_of_another_system_than_that_of_a_form_keep_theirs() -> None:
    form = ValueForm(system="urn:s", case="upper")
    it = searched(identifier=IdentifierRule(most=3, forms=(form,)))
    sent = [{"system": system, "value": "a1"} for system in ("urn:s", "urn:t")] + [{"value": "a1"}]

    found = {one[1:] for one in decode(it.values(resource(identifier=sent), {}))}

    assert found == {("A1", "urn:s"), ("a1", "urn:t"), ("a1", "")}


def test_identifiers_are_found_by_their_types_in_the_same_form() -> None:
    it = searched(identifier=UPPER)

    values = it.values(resource(identifier=[{"value": "a1", "type": TYPED}]), {})

    assert ("identifiers:of-type", "PLAC|A1", "urn:t") in decode(values)


def test_what_is_no_key_keeps_its_form() -> None:
    it = searched(identifier=UPPER, search=(CODE,))

    values = decode(it.values(resource(code={"coding": [{"code": "a1"}]}), {}))

    assert ("code", "a1", "") in values


def test_another_identifier_than_the_key_keeps_its_form() -> None:
    path = "hospitalization.preAdmissionIdentifier"
    special = SearchParameter(name="special", type="token", paths=(path,))
    it = searched(identifier=UPPER, search=(special,), type_name="Encounter")

    held = {"preAdmissionIdentifier": {"value": "a1", "type": TYPED}}
    values = decode(it.values(resource(hospitalization=held), {}))

    assert (f"{path}:of-type", "PLAC|a1", "urn:t") in values


def test_the_one_identifier_that_is_the_key_is_found_by_its_type_alone() -> None:
    it = searched()

    values = it.values(resource(identifier=[{"value": "a1", "type": TYPED}]), {})

    assert it.identifiers == ()
    assert decode(values) == [("identifier:of-type", "PLAC|a1", "urn:t")]


def test_a_key_in_another_element_is_an_identifier_beside_the_usual_ones() -> None:
    rule = IdentifierRule(most=2, elements=("accessionIdentifier",))

    it = searched(identifier=rule, type_name="Specimen")

    assert it.identifiers == ("identifier", "accessionIdentifier")


# Chains


@pytest.mark.parametrize("comes_with", [False, True])
@pytest.mark.parametrize(
    ("name", "target", "chains"),
    [
        ("patient", "", ["subject:Patient.identifier"]),
        ("patient", "Patient", ["subject:Patient.identifier"]),
        ("patient", "Group", []),
        ("encounter", "", []),
    ],
)
def test_identifiers_of_patients_are_found_behind_what_refers_to_patients(
    name: str, target: str, chains: list[str], *, comes_with: bool
) -> None:
    search = (SearchParameter(name="encounter", type="reference", paths=("encounter",)),)
    member = MEMBER if comes_with else None
    it = searched(*(() if comes_with else (SUBJECT,)), search=search, member=member)

    assert it.chains_of(it.parameters[name], target) == chains


def test_a_member_without_a_patient_has_no_chain() -> None:
    alone = replace(MEMBER, patient="")
    search = (SearchParameter(name="subject", type="reference", paths=("subject",)),)

    it = searched(search=search, member=alone)

    assert it.chains_of(it.parameters["subject"], "") == []


def test_only_references_can_be_included() -> None:
    encounter = SearchParameter(name="encounter", type="reference", paths=("encounter",))

    assert searched(search=(CODE, encounter)).includable() == ["encounter"]
