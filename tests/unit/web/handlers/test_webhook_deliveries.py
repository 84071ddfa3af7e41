"""What the lists of deliveries and the selection of a replay accept, and the words of refusals."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tornado.httputil import HTTPHeaders, RequestStartLine

from fhirpub.errors import InvalidSearch
from fhirpub.fhir.times import instant
from fhirpub.testing.contracts.webhooks.records import NOW, a_delivery
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.web.handlers.webhook_deliveries import (
    HIGHEST_SEQUENCE,
    MAX_IDS,
    MAX_PAGE_BYTES,
    Parameters,
)
from fhirpub.web.message.request import Request
from fhirpub.webhooks.management.arrivals import MAX_WAIT_SECONDS

BASE = "/webhooks/v1/endpoints"
KNOWN = ("since", "limit", "status")


def parameters(query: str) -> Parameters:
    line = RequestStartLine("GET", f"/?{query}", "HTTP/1.1")
    return Parameters(Request(line, HTTPHeaders(), SimpleNamespace()), KNOWN)


def refused(given: Parameters) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSearch) as problem:
        given.check()
    return [(issue.expression, str(issue.details)) for issue in problem.value.issues]


# The query of a list.


def test_a_parameter_that_is_not_known_is_refused_with_those_that_are() -> None:
    given = parameters("limit=1&offset=2")

    with pytest.raises(InvalidSearch, match="known are since, limit, status"):
        given.check()


def test_parameters_of_the_format_are_not_refused() -> None:
    parameters("_format=json&_pretty=true").check()


@pytest.mark.parametrize(
    ("text", "number"), [("", 7), ("0", 0), ("5", 5), ("100", 100), ("0100", 100)]
)
def test_a_number_is_read(text: str, number: int) -> None:
    given = parameters(f"limit={text}")

    assert given.whole_number("limit", usual=7, most=100) == number
    given.check()


@pytest.mark.parametrize("text", ["101", "-1", "1.0", "1e1", "%D9%A3", "00000000000000001", "a"])
def test_what_is_no_number_in_bounds_is_refused(text: str) -> None:
    given = parameters(f"limit={text}")

    assert given.whole_number("limit", usual=7, most=100) == 7
    assert [place for place, _details in refused(given)] == ["limit"]


def test_the_highest_number_of_an_event_can_be_named() -> None:
    given = parameters(f"limit={HIGHEST_SEQUENCE}")

    assert given.whole_number("limit", usual=0) == 10**15


def test_a_moment_is_read_in_milliseconds() -> None:
    assert parameters("since=1970-01-01T01:00:01.5%2B01:00").moment("since") == 1_500


def test_no_moment_is_none_and_no_problem() -> None:
    given = parameters("since=")

    assert given.moment("since") is None
    given.check()


def test_a_moment_without_an_offset_is_refused() -> None:
    given = parameters("since=2026-11-21T10:00:00")

    given.moment("since")
    assert [place for place, _details in refused(given)] == ["since"]


def test_a_state_is_one_of_those_that_are_shown() -> None:
    given = parameters("status=dead")

    assert given.state("status") == "dead"
    given.check()


def test_another_state_is_refused() -> None:
    given = parameters("status=Dead")

    assert given.state("status") is None
    assert [place for place, _details in refused(given)] == ["status"]


def test_all_that_is_wrong_is_named_at_once() -> None:
    given = parameters("limit=a&since=b&status=c&d=1")
    given.whole_number("limit", usual=1)
    given.moment("since")
    given.state("status")

    assert [place for place, _details in refused(given)] == ["d", "limit", "since", "status"]


# The handlers.


@pytest.fixture
def endpoint(lab: Integrator) -> str:
    kind = {"Content-Type": "application/json"}
    made = lab.request("POST", BASE, {"url": "https://93.184.215.14/hook"}, kind)
    assert made.status == 201, made.body
    path = made.headers["location"]
    return path[path.index(BASE) :]


def replay(lab: Integrator, endpoint: str, body: Any) -> Answer:
    kind = {"Content-Type": "application/json"}
    return lab.request("POST", f"{endpoint}/replay", body, kind)


@pytest.mark.parametrize(
    "body",
    [
        {"from_seq": 1},
        {"to_seq": HIGHEST_SEQUENCE},
        {"event_ids": ["e"]},
        {"event_ids": ["e"] * MAX_IDS},
        {"status": "dead"},
        {"status": "delivered"},
        {"since": "2026-11-21T10:00:00Z", "until": "2026-11-21T10:00:00Z"},
    ],
)
def test_what_selects_deliveries_is_accepted(
    lab: Integrator, endpoint: str, body: dict[str, Any]
) -> None:
    answer = replay(lab, endpoint, body)

    assert (answer.status, answer.json["reopened"], answer.json["next"]) == (200, 0, None)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"from_seq": 0}, "from_seq"),
        ({"from_seq": True}, "from_seq"),
        ({"from_seq": 1.0}, "from_seq"),
        ({"from_seq": "1"}, "from_seq"),
        ({"to_seq": HIGHEST_SEQUENCE + 1}, "to_seq"),
        ({"event_ids": []}, "event_ids"),
        ({"event_ids": ["e"] * (MAX_IDS + 1)}, "event_ids"),
        ({"event_ids": ["e", 1]}, "event_ids"),
        ({"event_ids": "e"}, "event_ids"),
        ({"status": "pending"}, "status"),
        ({"status": None}, "status"),
        ({"since": "2026-11-21"}, "since"),
        ({"until": 1}, "until"),
        ({"states": "dead"}, "states"),
    ],
)
def test_what_selects_nothing_is_refused_at_its_place(
    lab: Integrator, endpoint: str, body: dict[str, Any], place: str
) -> None:
    answer = replay(lab, endpoint, body)

    assert (answer.status, answer.issue_expressions) == (400, {place})


def test_a_replay_of_nothing_named_is_refused(lab: Integrator, endpoint: str) -> None:
    answer = replay(lab, endpoint, {})

    assert (answer.status, answer.problems) == (400, ["field-required"])


@pytest.mark.parametrize(
    ("query", "status"),
    [
        (f"events?limit={MAX_PAGE_BYTES}", 200),
        (f"events?limit={MAX_PAGE_BYTES + 1}", 400),
        ("events?limit=0", 200),
        (f"events?wait={MAX_WAIT_SECONDS + 1}", 400),
        ("events?before=1", 400),
        (f"deliveries?limit={MAX_PAGE_BYTES + 1}", 400),
        ("deliveries?after_seq=1", 400),
        ("deliveries?before=0", 200),
        ("deliveries/e", 404),
    ],
)
def test_a_list_keeps_to_its_parameters(
    lab: Integrator, endpoint: str, query: str, status: int
) -> None:
    assert lab.get(f"{endpoint}/{query}").status == status


@pytest.mark.parametrize("name", ["deliveries", "deliveries/e", "events", "stats"])
def test_what_was_sent_to_others_is_not_shown(
    service: RunningService, endpoint: str, name: str
) -> None:
    answer = service.integrator("Other").get(f"{endpoint}/{name}")

    assert answer.status == 404


def test_others_replay_nothing(service: RunningService, endpoint: str) -> None:
    assert replay(service.integrator("Other"), endpoint, {"from_seq": 1}).status == 404


@pytest.fixture
def sent(service: RunningService, lab: Integrator, endpoint: str) -> str:
    """The address of three deliveries: 1 and 2 of a minute, 3 of another type an hour later."""
    name = endpoint.rpartition("/")[2]
    made = [
        a_delivery(
            name,
            number,
            tenant=lab.tenant.id,
            state="delivered",
            event_type=kind,
            resource=f"Patient/{number}",
            created=created,
            body=b"{}",
        )
        for number, kind, created in (
            (1, "patient.created", NOW),
            (2, "patient.created", NOW + 1_000),
            (3, "patient.updated", NOW + 3_600_000),
        )
    ]
    service.call(service.services.store.append(made))
    return f"{endpoint}/deliveries"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [3, 2, 1]),
        ("event_type=patient.created", [2, 1]),
        ("event_type=", [3, 2, 1]),
        (f"since={instant(NOW + 1_000)}", [3, 2]),
        (f"until={instant(NOW + 1_000)}", [1]),
        (f"since={instant(NOW + 1)}&until={instant(NOW + 3_600_000)}", [2]),
        ("resource=Patient/2", [2]),
        ("status=delivered", [3, 2, 1]),
        ("status=dead", []),
        ("before=3", [2, 1]),
        ("limit=2", [3, 2]),
    ],
)
def test_each_parameter_selects_deliveries_newest_first(
    lab: Integrator, sent: str, query: str, found: list[int]
) -> None:
    answer = lab.get(f"{sent}?{query}")

    assert answer.status == 200
    assert [one["sequence"] for one in answer.json["deliveries"]] == found


def test_a_page_of_deliveries_names_the_next_one_with_the_same_query(
    lab: Integrator, sent: str
) -> None:
    first = lab.get(f"{sent}?limit=2&status=delivered").json["next"]
    following = lab.get(first.removeprefix(lab.service.base_url)).json

    assert "status=delivered" in first
    assert [one["sequence"] for one in following["deliveries"]] == [1]
    assert following["next"] is None


def test_a_page_of_events_names_the_last_of_all(lab: Integrator, sent: str) -> None:
    found = lab.get(f"{sent.removesuffix('/deliveries')}/events?limit=1").json

    assert [event["sequence"] for event in found["events"]] == [1]
    assert found["last_sequence"] == 3
