"""Practitioners that are found by how their names begin (R4 search, string)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fhirpub.testing.service import Integrator
from tests.panels import addresses, panel

SEARCH = "/fhir/r4/Practitioner"
NAMES: Mapping[str, list[dict[str, Any]]] = {
    "a": [{"family": "Ashdown", "given": ["Juniper", "Faye"], "prefix": ["Dr."]}],
    "b": [{"text": "Dr. Birch  Ashdown"}],
    "c": [{"family": "Müller", "given": ["Łucja"]}, {"use": "maiden", "family": "Cedar"}],
    "d": [{"family": "O\u2019Brien-Ash", "given": ["Juni, the 2nd"]}],
    "e": [{"prefix": ["Prof."]}],
    "f": [],
    "g": [{"family": "Zander", "given": ["Juniper"]}],
}


@pytest.fixture
def names(lab: Integrator) -> dict[str, str]:
    """The ids of practitioners with these names, each with its letter."""
    entries = [
        {"resourceType": "Practitioner", "id": letter, "name": name}
        if name
        else {"resourceType": "Practitioner", "id": letter, "gender": "other"}
        for letter, name in NAMES.items()
    ]
    led_to = [{"reference": f"Practitioner/{letter}"} for letter in NAMES]
    answer = lab.register(panel("R-1", *entries, resultsInterpreter=led_to))
    members = [address.partition("/") for address in addresses(answer)]
    ids = [id_ for type_name, _, id_ in members if type_name == "Practitioner"]
    return dict(zip(ids, NAMES, strict=True))


def found(lab: Integrator, names: dict[str, str], query: str) -> str:
    answer = lab.get(f"{SEARCH}?{query}", Prefer="handling=strict")
    assert answer.status == 200, answer.body
    return "".join(names[entry["resource"]["id"]] for entry in answer.json.get("entry", ()))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("name=ash", "ab"),
        ("name=ASHDOWN", "ab"),
        ("name=%20ash%20", "ab"),
        ("name=Birch%20Ash", "b"),
        ("name=Ashdown%20Birch", ""),
        ("name=down", ""),
        ("name=Dr.", "b"),
        ("name=mu", "c"),
        ("name=mu%CC%88ll", "c"),
        ("name=%C5%82uc", "c"),
        ("name=LUC", "c"),
        ("name=o'brien", "d"),
        ("name=o%E2%80%99brien-a", "d"),
        ("name=obrien", ""),
        ("name=juni%5C,%20the", "d"),
        ("name=faye,cedar,prof", "ac"),
        ("name=juni&name=ash", "a"),
        ("name=%25", ""),
        ("name=_sh", ""),
        ("name=.*", ""),
        ("name=%22", ""),
        ("name=%5C%5C", ""),
        ("family=ash", "a"),
        ("family=juni", ""),
        ("family=cedar,ash", "ac"),
        ("given=juni", "adg"),
        ("given=ash", ""),
        ("family=ash&given=faye", "a"),
        ("name:contains=down", "ab"),
        ("name:contains=uniper", "ag"),
        ("family:contains=uniper", ""),
        ("family:contains=ell,brien", "d"),
        ("name:exact=Juniper", "ag"),
        ("name:exact=juniper", ""),
        ("family:exact=Juniper", ""),
        ("given:exact=%C5%81ucja,Faye", "ac"),
        ("name:exact=Dr.%20Birch%20%20Ashdown", "b"),
        ("name:missing=true", "f"),
        ("name:missing=false", "abcdeg"),
        ("family:missing=false", "acdg"),
        ("given:missing=true", "bef"),
    ],
)
def test_practitioners_are_found_by_how_their_names_begin(
    lab: Integrator, names: dict[str, str], query: str, expected: str
) -> None:
    assert "".join(sorted(found(lab, names, query))) == expected


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("family", "acdgbef"),
        ("-family", "gdcabef"),
        ("-name", "gdcabef"),
        ("given", "adgcbef"),
        ("-given,family", "cagdbef"),
        ("-given,-family", "cgadbef"),
    ],
)
def test_practitioners_are_sorted_by_their_names_through_all_pages(
    lab: Integrator, names: dict[str, str], order: str, expected: str
) -> None:
    seen, url = "", f"{SEARCH}?_sort={order}&_count=2"
    while url:
        bundle = lab.get(url, Prefer="handling=strict").json
        seen += "".join(names[entry["resource"]["id"]] for entry in bundle["entry"])
        links = {link["relation"]: link["url"] for link in bundle["link"]}
        url = links.get("next", "")

    # Those without a name stand behind the others, in the order of their ids.
    known = len(expected.rstrip("bef"))
    assert seen[:known] == expected[:known]
    assert sorted(seen) == list("abcdefg")


@pytest.mark.parametrize("modifier", ["not", "text", "in"])
def test_other_modifiers_are_refused(lab: Integrator, modifier: str) -> None:
    answer = lab.get(f"{SEARCH}?name:{modifier}=ash")

    assert answer.status == 400
    assert "does not support this modifier; it has :missing" in answer.issues[0]["diagnostics"]


@pytest.mark.parametrize("value", ["%C2%B4", "%20", "ash,%20", "a%5Cb", ",", "%E2%80%8B"])
def test_what_is_no_beginning_is_refused(lab: Integrator, value: str) -> None:
    answer = lab.get(f"{SEARCH}?name={value}")

    assert answer.status == 400
    assert answer.issues[0]["expression"] == ["name"]


def test_what_follows_a_text_is_unknown(lab: Integrator) -> None:
    answer = lab.get(f"{SEARCH}?name.family=ash", Prefer="handling=strict")

    assert answer.status == 400
    assert "name is known, but not with what follows it" in answer.issues[0]["diagnostics"]


def test_each_name_of_a_list_is_a_condition(lab: Integrator, names: dict[str, str]) -> None:
    few, many = (",".join(["ash"] * number) for number in (50, 51))

    assert found(lab, names, f"name={few}")
    assert lab.get(f"{SEARCH}?name={many}").status == 422


def test_the_type_of_the_parameter_is_declared(service: Any, lab: Integrator) -> None:
    statement = lab.get("/metadata").json
    (declared,) = [
        entry for entry in statement["rest"][0]["resource"] if entry["type"] == "Practitioner"
    ]

    by_name = {one["name"]: one for one in declared["searchParam"]}

    for name, definition in (
        ("name", "Practitioner-name"),
        ("family", "individual-family"),
        ("given", "individual-given"),
    ):
        assert by_name[name]["type"] == "string"
        assert by_name[name]["definition"] == f"http://hl7.org/fhir/SearchParameter/{definition}"
        assert by_name[name]["documentation"].startswith("The beginning of a text")
    described = lab.get("/openapi.json").json["paths"]["/fhir/r4/Practitioner"]["get"]
    parameters = {one.get("name"): one for one in described["parameters"]}
    assert parameters["family"]["description"] == by_name["family"]["documentation"]
