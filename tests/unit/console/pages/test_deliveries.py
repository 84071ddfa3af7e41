"""Pages of deliveries: what they look for, show, and send again."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.console.pages import deliveries
from tests.unit.console.pages.visiting import (
    a_visit,
    as_page,
    asked,
    in_words,
    place_of,
    written,
)

ONE = "/webhooks/v1/endpoints/e1"
ALL = f"{ONE}/deliveries"
ENDPOINT = {"id": "e1", "url": "https://lis.example/hooks"}
TYPES = {"event_types": [{"name": "patient.created"}]}
FOUND = {"deliveries": [{"sequence": 7}], "next": None}
READ: dict[str, Any] = {ONE: ENDPOINT, "/webhooks/v1/event-types": TYPES, ALL: FOUND}


async def query_for(**query: str) -> list[tuple[str, str]]:
    visit = a_visit(READ, "e1", **query)
    await deliveries.show_list(visit)
    given: list[tuple[str, str]] = asked(visit)[-1][1]
    return given


async def test_a_page_has_fifty_deliveries() -> None:
    assert await query_for() == [("limit", "50")]


async def test_each_field_of_the_form_is_a_parameter() -> None:
    query = {
        "status": " dead ",
        "event_type": "patient.created",
        "resource": "Patient/p",
        "since": "2024-05-01T10:00",
        "until": "2024-05-02",
        "before": "9",
        "other": "x",
    }

    assert await query_for(**query) == [
        ("limit", "50"),
        ("status", "dead"),
        ("event_type", "patient.created"),
        ("resource", "Patient/p"),
        ("since", "2024-05-01T10:00:00Z"),
        ("until", "2024-05-02T00:00:00Z"),
        ("before", "9"),
    ]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("", ""),
        ("2024-05-01", "2024-05-01T00:00:00Z"),
        ("2024-05-01T10:00", "2024-05-01T10:00:00Z"),
        ("2024-05-01T10:00:30Z", "2024-05-01T10:00:30Z"),
        ("2024-05-01T10:00:30", "2024-05-01T10:00:30Z"),
        ("2024-05-01T10:00:30.5", "2024-05-01T10:00:30.5Z"),
        ("2024-05-01T10:00:30+02:00", "2024-05-01T10:00:30+02:00"),
        ("2024-05-01T10:00:30-05:00", "2024-05-01T10:00:30-05:00"),
    ],
)
async def test_a_field_for_a_time_is_a_moment_in_utc(text: str, moment: str) -> None:
    assert await query_for(since=text) == [
        ("limit", "50"),
        *([("since", moment)] if moment else []),
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("9" * 15, int("9" * 15)),
        ("9" * 16, "9" * 16),
        ("-1", "-1"),
        ("1.5", "1.5"),
        ("٣", "٣"),
        ("x", "x"),
    ],
)
def test_what_is_no_number_is_left_to_the_service(text: str, number: int | str) -> None:
    assert deliveries._number(text) == number


async def test_the_list_has_the_deliveries_and_what_they_can_be_found_by() -> None:
    page = as_page(await deliveries.show_list(a_visit(READ, "e1", status="dead")))

    assert page.values["deliveries"] == [{"sequence": 7}]
    assert page.values["names"] == ["patient.created"]
    assert page.values["query"] == {
        "status": "dead",
        "event_type": "",
        "resource": "",
        "since": "",
        "until": "",
    }
    assert page.values["following"] == ""


async def test_the_page_that_follows_keeps_the_filters() -> None:
    found = {**FOUND, "next": f"https://fhir.example.org{ALL}?limit=50&before=41"}

    page = as_page(await deliveries.show_list(a_visit({**READ, ALL: found}, "e1", status="dead")))

    assert page.values["following"] == "/console/endpoints/e1/deliveries?status=dead&before=41"


async def test_a_delivery_is_shown_with_its_body_in_lines() -> None:
    delivery = {"sequence": 7, "body": {"type": "patient.created"}}
    visit = a_visit({ONE: ENDPOINT, f"{ALL}/e%2Fv": delivery}, "e1", "e/v", replayed="1")

    page = as_page(await deliveries.show_delivery(visit))

    assert page.title == "Delivery 7"
    assert page.values["body"].splitlines()[1].strip() == '"type": "patient.created"'
    assert page.values["replayed"] == "1"


@pytest.mark.parametrize(("length", "is_cut"), [(65_536, False), (65_537, True)])
def test_a_body_is_shown_up_to_its_limit(length: int, *, is_cut: bool) -> None:
    text = deliveries._in_lines("x" * (length - 2))  # in quotation marks

    assert text.endswith("\n…") is is_cut
    assert len(text) == 65_536 + 2 * is_cut


async def test_a_replay_leads_to_the_delivery_with_how_many_were_reopened() -> None:
    visit = a_visit({ONE: ENDPOINT, f"POST {ONE}/replay": {"reopened": 1}}, "e1", "ev")

    path = place_of(await deliveries.replay_one(visit))

    assert path == "/console/endpoints/e1/deliveries/ev?replayed=1"
    assert asked(visit)[-1] == (f"POST {ONE}/replay", {"event_ids": ["ev"]})


async def test_a_replay_is_asked_for_first() -> None:
    visit = a_visit({ONE: ENDPOINT}, "e1")

    page = as_page(await deliveries.ask_replay(visit))

    assert (page.template, page.values["came"]) == ("replay.html", None)
    assert asked(visit) == [(ONE, [])]


async def test_a_range_is_replayed_with_the_fields_that_are_filled() -> None:
    form = {"since": "2024-05-01", "until": "", "from_seq": "3", "to_seq": "x", "status": "dead"}
    came = {"reopened": 2}
    visit = a_visit({ONE: ENDPOINT, f"POST {ONE}/replay": came}, "e1", form=form)

    page = as_page(await deliveries.replay_range(visit))

    body = {"since": "2024-05-01T00:00:00Z", "from_seq": 3, "to_seq": "x", "status": "dead"}
    assert asked(visit)[-1] == (f"POST {ONE}/replay", body)
    assert page.values["came"] == came


async def test_an_empty_form_replays_by_no_criteria() -> None:
    visit = a_visit({ONE: ENDPOINT, f"POST {ONE}/replay": {"reopened": 0}}, "e1")

    await deliveries.replay_range(visit)

    assert asked(visit)[-1] == (f"POST {ONE}/replay", {})


# As they are written.

DELIVERY: dict[str, Any] = {
    "event_id": "ev/1",
    "event_type": "patient.created",
    "resource": "Patient/p",
    "sequence": 7,
    "status": "dead",
    "created": "2024-05-01T10:00:00Z",
    "next_attempt": None,
    "ended": "2024-05-02T10:00:00Z",
    "attempts": [
        {"number": 1, "begun": "2024-05-01T10:00:01Z", "status": 200, "why": ""},
        {"number": 2, "begun": "2024-05-01T10:00:02Z", "status": 503, "why": "it was away"},
    ],
}
DESCRIBED = {**ENDPOINT, "description": "LIS", "state": "active"}


async def test_a_list_is_written_with_each_delivery_and_the_states_to_choose_from() -> None:
    found = {"deliveries": [DELIVERY], "next": None}
    visit = a_visit({**READ, ONE: DESCRIBED, ALL: found}, "e1", status="dead")

    page = written(await deliveries.show_list(visit))

    assert '<a href="/console/endpoints/e1/deliveries/ev%2F1" aria-label="Delivery 7">7' in page
    assert '<span class="badge bad">dead</span>' in page
    assert '<span class="sentence">it was away</span>' in page
    states = ("pending", "delivering", "retrying", "delivered", "held", "cancelled")
    assert all(f"<option>{name}</option>" in page for name in states)
    assert "<option selected>dead</option>" in page


async def test_a_delivery_is_written_with_each_attempt_the_last_one_first() -> None:
    delivery = {**DELIVERY, "body": {"type": "patient.created"}}
    visit = a_visit({ONE: DESCRIBED, f"{ALL}/ev%2F1": delivery}, "e1", "ev/1", replayed="1")

    page = written(await deliveries.show_delivery(visit))

    assert '<a href="/console/endpoints/e1">LIS</a>' in page
    assert '<span class="badge bad">dead</span> <code>patient.created</code>' in page
    assert page.index("Attempt 2") < page.index("Attempt 1")
    assert "It is being sent again" in page
    assert "&quot;type&quot;: &quot;patient.created&quot;" in page
    assert 'action="/console/endpoints/e1/deliveries/ev%2F1/replay"' in page


@pytest.mark.parametrize(
    ("state", "text"), [("paused", "The endpoint is paused: nothing is sent"), ("active", "")]
)
async def test_a_replay_is_written_with_how_many_are_sent_and_whether_now(
    state: str, text: str
) -> None:
    came = {"reopened": 2, "state": state, "next": {"from_seq": 12, "to_seq": 90}}
    visit = a_visit({ONE: DESCRIBED, f"POST {ONE}/replay": came}, "e1")

    page = written(await deliveries.replay_range(visit))

    assert "2 deliveries are being sent again." in page
    assert text in page
    assert ("The endpoint is" in page) is bool(text)
    assert "There are more after number 11." in page
    assert '<input type="hidden" name="from_seq" value="12">' in page


async def test_the_form_of_a_replay_is_written_for_its_endpoint() -> None:
    page = written(await deliveries.ask_replay(a_visit({ONE: DESCRIBED}, "e1")))

    assert '<a href="/console/endpoints/e1">LIS</a>' in page
    assert 'name="proof" value="p"' in page


def test_each_page_of_deliveries_has_its_address_and_is_for_integrators() -> None:
    assert in_words(deliveries.PAGES) == [
        "GET /endpoints/{}/deliveries show_list integrator",
        "GET /endpoints/{}/deliveries/{} show_delivery integrator",
        "POST /endpoints/{}/deliveries/{}/replay replay_one integrator",
        "GET /endpoints/{}/replay ask_replay integrator",
        "POST /endpoints/{}/replay replay_range integrator",
    ]
