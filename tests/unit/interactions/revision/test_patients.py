"""A revision keeps the patient that a resource has, unless another one is meant."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.interactions.revision.patients import is_held, keep_patients, patient_parts
from fhirpub.plugin_api import Part, patient
from fhirpub.storage.contract import Version
from fhirpub.testing.samples import new_id, new_member_id
from tests.unit.interactions.patients.people import NATIONAL, Ward, called, id_of, person
from tests.unit.interactions.revision.revising import (
    REPORT,
    body_of,
    candidate_of,
    numbered,
)

KEPT = new_member_id()


@pytest.fixture(scope="module")
def candidate(storeless_ward: Ward) -> Version:
    """A revision with two results, of which one is about the patient."""
    return candidate_of(storeless_ward, body_of(numbered(1), numbered(2, subject=None))).version


def stored(candidate: Version, kept: str | None, **changes: Any) -> Version:
    """Return the newest version of the resource, which refers to a patient."""
    body = loads_stored(candidate.body)
    subject = {"reference": f"Patient/{kept}", "display": "Birch"} if kept else None
    return replace(candidate, body=dumps({**body, "subject": subject, **changes}))


def kept(storeless_ward: Ward, candidate: Version, latest: Version) -> Version:
    return keep_patients(candidate, latest, loads_stored(candidate.parts), storeless_ward.context)


def subject_of(version: Version) -> Any:
    return json.loads(version.body).get("subject")


def test_the_patient_of_the_stored_resource_stays(
    storeless_ward: Ward, candidate: Version
) -> None:
    found = kept(storeless_ward, candidate, stored(candidate, KEPT))

    assert subject_of(found) == {"reference": f"Patient/{KEPT}", "display": "Birch"}
    assert json.loads(found.body)["code"] == json.loads(candidate.body)["code"]


def test_members_follow_and_those_of_no_patient_stay(
    storeless_ward: Ward, candidate: Version
) -> None:
    about, other = kept(storeless_ward, candidate, stored(candidate, KEPT)).members

    assert id_of(about) == KEPT
    assert id_of(candidate.members[0]) != KEPT
    assert other is candidate.members[1]


def test_members_are_found_by_the_patient_that_is_kept(
    storeless_ward: Ward, candidate: Version
) -> None:
    about, _other = kept(storeless_ward, candidate, stored(candidate, KEPT)).members

    subjects = [one for one in json.loads(about.search) if one[0] == "subject"]
    assert ["subject", KEPT, "Patient"] in subjects
    assert ["subject", id_of(candidate), "Patient"] not in subjects


def test_members_of_a_patient_of_its_own_are_still_found_by_the_person(
    storeless_ward: Ward, candidate: Version
) -> None:
    own, parts = new_id(), loads_stored(candidate.parts)
    parts["patient"] |= {"id": own, "meta": {"versionId": "1"}}

    found = keep_patients(candidate, stored(candidate, own), parts, storeless_ward.context)
    about, _other = found.members

    assert id_of(about) == own
    assert ["subject", id_of(candidate), "Patient"] in json.loads(about.search)


@pytest.mark.parametrize("same", ["the same patient", "no patient", "no local reference"])
def test_a_candidate_with_nothing_to_keep_is_as_it_was(
    storeless_ward: Ward, candidate: Version, same: str
) -> None:
    latest = {
        "the same patient": stored(candidate, id_of(candidate)),
        "no patient": stored(candidate, None),
        "no local reference": stored(candidate, None, subject={"reference": "Group/1"}),
    }[same]

    assert kept(storeless_ward, candidate, latest) is candidate


def test_a_candidate_without_the_part_is_as_it_was(
    storeless_ward: Ward, candidate: Version
) -> None:
    parts = loads_stored(candidate.parts)
    del parts["patient"]
    alone = replace(candidate, parts=dumps(parts))

    assert keep_patients(alone, stored(candidate, KEPT), parts, storeless_ward.context) is alone


def test_another_patient_that_is_meant_is_not_replaced(
    storeless_ward: Ward, candidate: Version
) -> None:
    parts = loads_stored(candidate.parts)
    parts["patient"]["meta"]["versionId"] = f"{new_id()}.1"
    meant = replace(candidate, parts=dumps(parts))

    assert keep_patients(meant, stored(candidate, KEPT), parts, storeless_ward.context) is meant


def test_a_patient_that_the_resource_states_is_its_own(storeless_ward: Ward) -> None:
    one = person((NATIONAL, "1"), name=called("Ash"))
    version = candidate_of(storeless_ward, body_of(numbered(1), one=one)).version
    came = {"id": KEPT, "meta": {"versionId": f"{version.id}.2"}}

    assert not is_held(came, version)
    assert is_held({**came, "meta": {"versionId": f"{new_id()}.1"}}, version)
    assert not is_held({"id": new_id(), "meta": {"versionId": "1"}}, version)


def test_only_patients_that_come_once_and_are_referred_to_are_kept(storeless_ward: Ward) -> None:
    declared = replace(
        storeless_ward.context.types[REPORT],
        parts=(
            patient(referred_by="subject"),
            Part(name="guests", type="Patient", referred_by="guest", repeats=True),
            Part(name="other", type="Patient", referred_by="", required=False),
            Part(name="author", type="Practitioner", referred_by="author"),
        ),
    )

    assert [part.name for part in patient_parts(declared)] == ["patient"]
