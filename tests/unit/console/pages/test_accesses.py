"""The page of accesses: what it looks for, and each record as a row."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.console.pages import accesses
from fhirpub.console.pages.accesses import _row
from fhirpub.console.visit import PageRefused
from tests.unit.console.pages.visiting import a_visit, as_page, asked, in_words

PATH = "/fhir/r4/AuditEvent"
ID = "0123abcd-0123-4567-89ab-0123456789ab"
KEPT = SimpleNamespace(audit=object())


def reference(text: str) -> dict[str, Any]:
    return {"what": {"reference": text}}


async def test_without_an_audit_trail_there_is_no_page() -> None:
    visit = a_visit({PATH: {}}, services=SimpleNamespace(audit=None))

    with pytest.raises(PageRefused, match="keeps no audit trail"):
        await accesses.show_list(visit)

    assert asked(visit) == []


async def test_each_field_of_the_form_is_a_parameter() -> None:
    query = {
        "act": "read",
        "client": "c",
        "patient": "p",
        "resource": " Observation/o ",
        "request": "r",
        "since": "2024-05-01",
        "cursor": "k",
    }
    visit = a_visit({PATH: {}}, services=KEPT, **query)

    await accesses.show_list(visit)

    assert asked(visit) == [
        (
            PATH,
            [
                ("_count", "50"),
                ("entity:identifier", "r"),
                ("entity", "Observation/o"),
                ("patient", "p"),
                ("agent", "c"),
                ("subtype", "read"),
                ("date", "ge2024-05-01"),
                ("_cursor", "k"),
            ],
        )
    ]


async def test_a_page_has_a_row_for_each_access_and_leads_to_the_next() -> None:
    events = [{"resource": {"recorded": at}} for at in ("2024-05-02", "2024-05-01")]
    link = [{"relation": "next", "url": "https://fhir.example.org/AuditEvent?_cursor=k"}]
    visit = a_visit({PATH: {"entry": events, "link": link}}, services=KEPT, act="read")

    page = as_page(await accesses.show_list(visit))

    assert [row["at"] for row in page.values["rows"]] == ["2024-05-02", "2024-05-01"]
    assert page.values["following"] == "/console/accesses?act=read&cursor=k"


@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        ({"outcome": "0"}, ("done", "good")),
        ({"outcome": "4"}, ("refused", "bad")),
        ({"outcome": "8"}, ("failed", "bad")),
        ({"outcome": "12"}, ("", "")),
        ({}, ("", "")),
        ({"outcome": "0", "outcomeDesc": "begun, not ended"}, ("begun", "")),
    ],
)
def test_each_outcome_has_its_word_and_its_level(
    event: dict[str, Any], outcome: tuple[str, str]
) -> None:
    assert _row(event)["outcome"] == outcome


@pytest.mark.parametrize(
    ("who", "shown"),
    [
        ({"display": "Ana", "identifier": {"value": "c"}}, "Ana"),
        ({"identifier": {"value": "c"}}, "c"),
        ({}, ""),
    ],
)
def test_an_agent_is_shown_by_name_or_by_identifier(who: dict[str, Any], shown: str) -> None:
    assert _row({"agent": [{"who": who}]})["who"].full == shown


def test_a_row_has_the_address_the_action_and_the_request() -> None:
    request = {
        "type": {"code": "XrequestId"},
        "what": {"identifier": {"value": "r-1"}},
    }
    event = {
        "agent": [{"network": {"address": "192.0.2.7"}}],
        "subtype": [{"code": "restful"}, {"code": "read"}],
        "entity": [reference("Patient/p"), request],
    }

    row = _row(event)

    assert (row["address"], row["what"], row["request"]) == ("192.0.2.7", "read", "r-1")


def test_an_access_to_versions_of_a_resource_is_one_name() -> None:
    event = {"entity": [reference("Patient/p/_history/2"), reference("Patient/p")]}

    (name,) = _row(event)["names"]

    assert (name.full, name.path) == ("Patient/p", "/console/resources/Patient/p")


@pytest.mark.parametrize(
    ("entity", "path"),
    [
        (reference("Endpoint/e"), "/console/endpoints/e"),
        (reference("Binary/b"), ""),
        ({"what": {}, "name": "Patient/p"}, ""),
    ],
)
def test_a_name_leads_to_a_page_that_there_is(entity: dict[str, Any], path: str) -> None:
    (name,) = _row({"entity": [entity]})["names"]

    assert name.path == path


def test_what_names_no_resource_is_no_name() -> None:
    assert _row({"entity": [{"name": "Patient"}, {}]})["names"] == []


@pytest.mark.parametrize(("count", "shown", "more"), [(5, 5, 0), (6, 5, 1), (9, 5, 4)])
def test_the_first_names_are_shown_and_the_others_counted(
    count: int, shown: int, more: int
) -> None:
    row = _row({"entity": [reference(f"Patient/p{each}") for each in range(count)]})

    assert (len(row["names"]), row["more"]) == (shown, more)


def test_a_long_id_is_shown_by_its_beginning() -> None:
    (name,) = _row({"entity": [reference(f"Patient/{ID}")]})["names"]

    assert name.short == "Patient/0123abcd…"


def test_each_page_of_accesses_has_its_address_and_audience() -> None:
    assert in_words(accesses.PAGES) == [
        "GET /accesses show_list integrator",
    ]
