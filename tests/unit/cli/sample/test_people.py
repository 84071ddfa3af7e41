"""Invented people are the same for a seed and a number, and of plausible ages."""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from typing import Any

from fhirpub.cli.sample.people import _NAMES, patient

FIRST_DAY = date(2025, 1, 1)


@cache
def people() -> list[dict[str, Any]]:
    return [patient("a", number, first_day=FIRST_DAY) for number in range(600)]


def country_of(person: dict[str, Any]) -> str:
    return str(person["identifier"][0]["system"].rpartition("/")[2])


def test_a_person_is_that_of_the_seed_and_the_number() -> None:
    assert patient("a", 5, first_day=FIRST_DAY) == people()[5]
    assert patient("b", 5, first_day=FIRST_DAY) != people()[5]


def test_ages_are_between_2_and_93_years() -> None:
    days = [(FIRST_DAY - date.fromisoformat(one["birthDate"])).days for one in people()]

    assert min(days) >= 2 * 365
    assert max(days) < 93 * 365
    assert min(days) < 6 * 365
    assert max(days) > 85 * 365


def test_a_passport_has_the_number_of_its_person() -> None:
    person = people()[42]
    (identifier,) = person["identifier"]

    assert re.fullmatch("[A-HJ-NPR-Z]{2}0000042", identifier["value"])
    assert identifier["system"].startswith("http://hl7.org/fhir/sid/")
    assert identifier["type"]["coding"] == [
        {"system": "http://terminology.hl7.org/CodeSystem/v2-0203", "code": "PPN"}
    ]
    assert person["telecom"] == [
        {"system": "email", "value": "person-42@mail.example", "use": "home"}
    ]


def test_people_of_each_country_have_its_names() -> None:
    names = {one.country: one for one in _NAMES}

    assert {country_of(one) for one in people()} == set(names)
    for one in people():
        own, (name,) = names[country_of(one)], one["name"]
        is_woman = one["gender"] == "female"
        families = (own.family_female if is_woman else "") or own.family
        assert set(name["given"]) <= set((own.female if is_woman else own.male).split())
        assert name["family"] in families.split()


def test_people_have_one_given_name_or_two_that_differ() -> None:
    numbers = {len(one["name"][0]["given"]) for one in people()}

    assert numbers == {1, 2}
    assert all(len({*one["name"][0]["given"]}) == len(one["name"][0]["given"]) for one in people())


def test_there_are_women_and_men() -> None:
    women = sum(one["gender"] == "female" for one in people())

    assert 240 < women < 360
    assert {one["gender"] for one in people()} == {"female", "male"}
