"""How patients are searched: as R4 declares it, and nothing else."""

from __future__ import annotations

from fhirpub.interactions.patients.declaration import PATIENTS


def test_patients_are_searched_by_their_names_and_birth_date() -> None:
    assert [one.definition.rpartition("/")[2] for one in PATIENTS.search] == [
        "Patient-name",
        "individual-family",
        "individual-given",
        "individual-birthdate",
    ]
    assert [(one.name, one.type, *one.paths) for one in PATIENTS.search] == [
        ("name", "string", "name"),
        ("family", "string", "name.family"),
        ("given", "string", "name.given"),
        ("birthdate", "date", "birthDate"),
    ]


def test_no_registration_takes_patients_by_the_declaration() -> None:
    assert (PATIENTS.name, PATIENTS.type, PATIENTS.referred_by) == ("patient", "Patient", "")
    assert (PATIENTS.required, PATIENTS.repeats, PATIENTS.statuses) == (False, True, frozenset())
