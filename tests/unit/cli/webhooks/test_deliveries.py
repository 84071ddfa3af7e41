"""``fhirpub deliveries``: what it asks for, and what it prints."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import deliveries as operations
from fhirpub.cli.webhooks.deliveries import deliveries
from tests.unit.cli.bureau import Bureau


def an_attempt(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "number": number,
        "begun": "2026-01-01T00:00:00.000Z",
        "milliseconds": 12,
        "status": 500,
        "why": f"status 50{number}",
        "answer": "a\n b",
        **changes,
    }


def a_delivery(*attempts: dict[str, Any]) -> dict[str, Any]:
    return {
        "event_id": "evt_1",
        "event_type": "x.created",
        "tenant": "t-1",
        "endpoint": "e-1",
        "sequence": 7,
        "status": "pending",
        "created": "c",
        "next_attempt": "n",
        "attempts": list(attempts),
    }


def test_the_first_twenty_of_each_endpoint_are_listed(bureau: Bureau) -> None:
    bureau.answer(operations.LIST, [a_delivery()])

    assert bureau.json(deliveries, "list") == [a_delivery()]
    assert bureau.only() == ("deliveries list", {"limit": 20})


def test_deliveries_are_listed_as_they_are_asked_for(bureau: Bureau) -> None:
    bureau.answer(operations.LIST, [])

    result = bureau.run(
        deliveries,
        *("list", "--state", "dead", "--endpoint", "e-1", "--tenant", "t-1", "--limit", "1000"),
    )

    assert result.stdout == "No deliveries.\n"
    assert bureau.only()[1] == {
        "state": "dead",
        "endpoint": "e-1",
        "tenant": "t-1",
        "limit": 1_000,
    }


@pytest.mark.parametrize("limit", ["0", "1001"])
def test_a_limit_that_is_too_small_or_large_is_refused(bureau: Bureau, limit: str) -> None:
    assert bureau.run(deliveries, "list", "--limit", limit).exit_code == 2
    assert bureau.asked == []


@pytest.mark.parametrize(
    ("attempts", "end"),
    [
        ((), ["0", "-"]),
        ((an_attempt(1), an_attempt(2)), ["2", "status 502"]),
        ((an_attempt(6), an_attempt(7)), ["7", "status 507"]),
    ],
)
def test_a_row_has_the_number_and_the_reason_of_the_last_attempt(
    bureau: Bureau, attempts: tuple[dict[str, Any], ...], end: list[str]
) -> None:
    bureau.answer(operations.LIST, [a_delivery(*attempts)])

    heading, row = bureau.run(deliveries, "list").stdout.splitlines()

    assert [title for title in heading.split("  ") if title][-2:] == ["attempts", "why"]
    assert [cell.strip() for cell in row.split("  ") if cell] == [
        *("evt_1", "x.created", "e-1", "7", "pending", "c", "n", *end)
    ]


def test_an_event_is_shown_for_all_endpoints_or_for_one(bureau: Bureau) -> None:
    bureau.answer(operations.SHOW, [a_delivery()])

    assert bureau.json(deliveries, "show", "evt_1") == [a_delivery()]
    bureau.json(deliveries, "show", "evt_1", "--endpoint", "e-1")

    assert [one.arguments for one in bureau.asked] == [
        {"event": "evt_1"},
        {"event": "evt_1", "endpoint": "e-1"},
    ]


def test_the_attempts_of_a_delivery_are_a_table_below_it(bureau: Bureau) -> None:
    long = an_attempt(2, answer="x" * 61, milliseconds=None)
    del long["status"]
    bureau.answer(operations.SHOW, [a_delivery(an_attempt(1), long)])

    lines = bureau.run(deliveries, "show", "evt_1").stdout.splitlines()

    assert lines[0] == "Delivery."
    assert not any(line.strip().startswith("attempts") for line in lines[:9])
    assert lines[-3].split() == ["attempt", "begun", "milliseconds", "status", "why", "answer"]
    assert lines[-2].endswith("12            500     status 501  a b")
    assert lines[-1].endswith(f"-             -       status 502  {'x' * 60}")


def test_a_delivery_without_attempts_ends_with_a_sentence(bureau: Bureau) -> None:
    bureau.answer(operations.SHOW, [a_delivery()])

    assert bureau.run(deliveries, "show", "evt_1").stdout.endswith("\nNo attempts yet.\n")


def replayed(number: int, following: str | None = None, **held: str) -> dict[str, Any]:
    states = [{"endpoint": name, "state": state} for name, state in held.items()]
    return {"reopened": number, "following": following, "held": states}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (("evt_1", "evt_2"), {"events": ["evt_1", "evt_2"]}),
        (("--dead",), {"dead": True}),
        (
            ("--since", "2026-01-01T00:00:00Z", "--endpoint", "e-1"),
            {"since": "2026-01-01T00:00:00.000Z", "endpoint": "e-1"},
        ),
        (("--since", "1970-01-01T00:00:00Z"), {"since": "1970-01-01T00:00:00.000Z"}),
        (
            ("--until", "2026-01-02T00:00:00Z", "--tenant", "t-1"),
            {"until": "2026-01-02T00:00:00.000Z", "tenant": "t-1"},
        ),
    ],
)
def test_deliveries_are_replayed_as_they_are_named(
    bureau: Bureau, words: tuple[str, ...], arguments: dict[str, Any]
) -> None:
    bureau.answer(operations.REPLAY, replayed(2))

    assert bureau.json(deliveries, "replay", *words) == {"reopened": 2}
    assert bureau.only() == ("deliveries replay", arguments)


@pytest.mark.parametrize("words", [(), ("--endpoint", "e-1"), ("--tenant", "t-1")])
def test_not_everything_is_replayed_by_mistake(bureau: Bureau, words: tuple[str, ...]) -> None:
    result = bureau.run(deliveries, "replay", *words)

    assert (result.exit_code, bureau.asked) == (2, [])
    assert "name events, or --since, --until or --dead" in result.stderr


def test_a_replay_goes_on_until_nothing_is_left(bureau: Bureau) -> None:
    bureau.answer(
        operations.REPLAY,
        replayed(2, "x", e1="paused"),
        replayed(0, "y"),
        replayed(3, e2="failing"),
    )

    result = bureau.run(deliveries, "replay", "--dead", "--tenant", "t-1")

    assert result.stdout == (
        "Queued for replay.\n  reopened  5\n"
        "Held until the endpoint is active: e1, paused\n"
        "Held until the endpoint is active: e2, failing\n"
    )
    common = {"dead": True, "tenant": "t-1"}
    assert [one.arguments for one in bureau.asked] == [
        common,
        {**common, "from": "x"},
        {**common, "from": "y"},
    ]
    assert result.stderr == ""


def test_a_replay_that_finds_nothing_prints_so(bureau: Bureau) -> None:
    bureau.answer(operations.REPLAY, replayed(0))

    result = bureau.run(deliveries, "replay", "evt_1")

    assert result.stdout.startswith("Nothing to replay: no delivery matches.\n")


@pytest.mark.usefixtures("terminal")
def test_on_a_terminal_the_number_grows_on_one_line(bureau: Bureau) -> None:
    bureau.answer(operations.REPLAY, replayed(1_200, "x"), replayed(3))

    result = bureau.run(deliveries, "replay", "--dead")

    assert result.stderr == "\r1,200 deliveries\r1,203 deliveries\n"


def test_an_attempt_in_progress_has_neither_a_time_nor_a_status_yet(bureau: Bureau) -> None:
    begun = an_attempt(1, why="", answer="")
    del begun["status"], begun["milliseconds"]
    bureau.answer(operations.SHOW, [a_delivery(begun)])

    row = bureau.run(deliveries, "show", "evt_1").stdout.splitlines()[-1]

    assert row.split() == ["1", "2026-01-01T00:00:00.000Z", "-", "-", "-", "-"]


def test_each_delivery_of_an_event_is_shown(bureau: Bureau) -> None:
    other = a_delivery(an_attempt(1)) | {"endpoint": "e-2"}
    bureau.answer(operations.SHOW, [a_delivery(), other])

    shown = bureau.run(deliveries, "show", "evt_1").stdout

    assert shown.count("Delivery.\n") == 2
    assert shown.index("e-1") < shown.index("No attempts yet.") < shown.index("e-2")
    assert "status 501" in shown
