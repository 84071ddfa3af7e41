"""Invented people are the same for a seed and a number, and of plausible ages."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from fhirpub.cli.sample.people import _NAMES, patient

FIRST_DAY = date(2025, 1, 1)
PEOPLE = [patient("a", number, first_day=FIRST_DAY) for number in range(600)]


def country_of(person: dict[str, Any]) -> str:
    return str(person["identifier"][0]["system"].rpartition("/")[2])


def test_a_person_is_that_of_the_seed_and_the_number() -> None:
    assert patient("a", 5, first_day=FIRST_DAY) == PEOPLE[5]
    assert patient("b", 5, first_day=FIRST_DAY) != PEOPLE[5]


def test_everybody_has_between_two_and_ninety_three_years() -> None:
    days = [(FIRST_DAY - date.fromisoformat(one["birthDate"])).days for one in PEOPLE]

    assert min(days) >= 2 * 365
    assert max(days) < 93 * 365
    assert (min(days), max(days)) < (6 * 365, 93 * 365)
    assert max(days) > 85 * 365


def test_a_passport_has_the_number_of_its_person() -> None:
    (identifier,) = PEOPLE[42]["identifier"]

    assert re.fullmatch("[A-HJ-NPR-Z]{2}0000042", identifier["value"])
    assert identifier["system"].startswith("http://hl7.org/fhir/sid/")
    assert identifier["type"]["coding"] == [
        {"system": "http://terminology.hl7.org/CodeSystem/v2-0203", "code": "PPN"}
    ]
    assert PEOPLE[42]["telecom"] == [
        {"system": "email", "value": "person-42@mail.example", "use": "home"}
    ]


def test_people_of_each_country_have_its_names() -> None:
    names = {one.country: one for one in _NAMES}

    assert {country_of(one) for one in PEOPLE} == set(names)
    for one in PEOPLE:
        own, (name,) = names[country_of(one)], one["name"]
        is_woman = one["gender"] == "female"
        families = (own.family_female if is_woman else "") or own.family
        assert set(name["given"]) <= set((own.female if is_woman else own.male).split())
        assert name["family"] in families.split()


def test_people_have_one_given_name_or_two_that_differ() -> None:
    numbers = {len(one["name"][0]["given"]) for one in PEOPLE}

    assert numbers == {1, 2}
    assert all(len({*one["name"][0]["given"]}) == len(one["name"][0]["given"]) for one in PEOPLE)


def test_there_are_women_and_men() -> None:
    women = sum(one["gender"] == "female" for one in PEOPLE)

    assert 240 < women < 360
    assert {one["gender"] for one in PEOPLE} == {"female", "male"}
