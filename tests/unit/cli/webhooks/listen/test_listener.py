"""A listener handles each event in its order, and forwards one until the receiver has it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import click
import pytest
from tornado.httpclient import HTTPResponse

from fhirpub.cli.webhooks.forwarding import Forwarder
from fhirpub.cli.webhooks.listen.listener import Listener, Start
from fhirpub.cli.webhooks.listen.position import Position
from fhirpub.cli.webhooks.listen.queue import EventQueue
from fhirpub.cli.webhooks.service_calls import WebhookCalls
from fhirpub.webhooks.policy.outcome import Outcome
from tests.canned import Canned, response
from tests.unit.webhooks.dispatch.jumping_loop import run
from tests.waiting import until

DELIVERED = Outcome(status=204, duration=12)
REFUSED = Outcome(status=500, duration=3)
UNREACHED = Outcome(reason="E_CONNECT")
FROM_START: Start = (1, None)
USUAL: Start = (None, None)
END = RuntimeError("there are no more pages")


def an_event(sequence: int, event_type: str = "report.created") -> dict[str, Any]:
    data = {"resource_type": "DiagnosticReport", "id": f"r-{sequence}"}
    return {
        "sequence": sequence,
        "event_id": f"evt_{sequence}",
        "event_type": event_type,
        "body": {"timestamp": "2026-01-01T00:00:00Z", "data": data},
    }


def page(*events: dict[str, Any], last: int = 9) -> HTTPResponse:
    return response(200, {"events": [*events], "last_sequence": last})


def opened(name: str = "e-1", *patterns: str) -> HTTPResponse:
    found = {"id": name, "url": "pull:laptop", "event_types": [*(patterns or ("*",))]}
    return response(200, {"endpoints": [found]})


class Forwarding:
    """Notes what it is to send, and gives the next outcome."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes = list(outcomes)
        self.sent: list[tuple[str, int, int]] = []
        self.bodies: list[bytes] = []

    async def send(
        self, event_id: str, event_type: str, body: bytes, *, sequence: int, number: int = 1
    ) -> Outcome:
        assert event_type == "report.created"
        self.sent.append((event_id, sequence, number))
        self.bodies.append(body)
        return self.outcomes.pop(0)


class Followed:
    """A listener over responses at hand, which ends when there are none left."""

    def __init__(
        self, folder: Path, *responses: HTTPResponse, forwarding: Forwarding | None = None
    ) -> None:
        self.service = Canned(*responses, END)
        self.position = Position(folder / "position.json")
        queue = EventQueue(
            calls=WebhookCalls(self.service.publisher), name="laptop", patterns=["*"]
        )
        self.listener = Listener(
            queue=queue,
            position=self.position,
            forwarder=cast("Forwarder | None", forwarding),
            skips_refused=False,
            as_json=False,
        )
        self.begun = 0

    def follow(self, start: Start = FROM_START) -> Followed:
        def begun() -> None:
            self.begun += 1

        with pytest.raises(RuntimeError, match="no more pages"):
            run(self.listener.run(start, begun))
        return self

    def asked(self) -> list[str]:
        return [call.url.partition("/events?")[2] for call in self.service.calls[1:]]


def stored(folder: Path) -> Any:
    return json.loads((folder / "position.json").read_bytes())


def test_events_are_printed_and_the_position_moves_with_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Followed(tmp_path, opened(), page(an_event(1), an_event(2))).follow()

    out, err = capsys.readouterr()
    assert out.splitlines() == [
        f"{n}  2026-01-01T00:00:00Z  report.created  DiagnosticReport/r-{n}" for n in (1, 2)
    ]
    assert err == "Waiting for events after 0; Ctrl-C ends this.\n"
    assert stored(tmp_path) == {"endpoint": "e-1", "sequence": 2}


def test_the_next_page_begins_behind_the_last_event(tmp_path: Path) -> None:
    followed = Followed(tmp_path, opened(), page(an_event(4)), page(), page(an_event(5)))

    followed.follow((4, None))

    assert [text.partition("&")[0] for text in followed.asked()] == [
        "after_seq=3",
        "after_seq=4",
        "after_seq=4",
        "after_seq=5",
    ]
    assert followed.begun == 1


@pytest.mark.parametrize(("first", "after"), [(0, 0), (1, 0), (7, 6)])
def test_a_sequence_is_where_it_begins(tmp_path: Path, first: int, after: int) -> None:
    followed = Followed(tmp_path, opened()).follow((first, None))

    assert followed.asked()[0].startswith(f"after_seq={after}&")


def test_a_time_is_where_it_begins(tmp_path: Path) -> None:
    followed = Followed(tmp_path, opened(), page(an_event(7))).follow((None, 1_700_000_000_000))

    assert "since=2023-11-14" in followed.asked()[0]
    assert followed.asked()[1].startswith("after_seq=6&")


def test_the_next_run_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    followed = Followed(tmp_path, opened())
    followed.position.move("e-1", 5)

    followed.follow(USUAL)

    assert followed.asked()[0].startswith("after_seq=5&")


def test_another_queue_than_that_of_the_last_run_begins_at_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    followed = Followed(tmp_path, opened("e-2"), page(last=8))
    followed.position.move("e-1", 5)

    followed.follow(USUAL)

    assert followed.asked()[1].startswith("after_seq=8&")
    assert stored(tmp_path) == {"endpoint": "e-2", "sequence": 8}
    assert "Note: the queue of the last run is no longer there" in capsys.readouterr().err


def test_the_first_run_begins_at_the_end_of_a_queue_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Followed(tmp_path, opened(), page(last=8)).follow(USUAL)

    assert stored(tmp_path) == {"endpoint": "e-1", "sequence": 8}
    assert "last run" not in capsys.readouterr().err


def test_the_first_run_begins_at_the_beginning_of_a_queue_that_it_adds(tmp_path: Path) -> None:
    added = response(201, {"id": "e-3"})

    followed = Followed(tmp_path, response(200, {"endpoints": []}), added).follow(USUAL)

    assert followed.asked()[1].startswith("after_seq=0&")
    assert stored(tmp_path) == {"endpoint": "e-3", "sequence": 0}


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (1, []),
        (2, ["Note: the service no longer has the events 1 to 1"]),
        (4, ["Note: the service no longer has the events 1 to 3"]),
    ],
)
def test_events_that_are_gone_are_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: int, expected: list[str]
) -> None:
    Followed(tmp_path, opened(), page(an_event(first), an_event(9))).follow()

    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Note")]
    assert notes == expected


def test_an_event_of_another_type_is_passed_over_without_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    followed = Followed(tmp_path, opened(), page(an_event(1, "b.x"), an_event(2, "a.x")))
    followed.listener.queue.patterns = ["a.*"]
    followed.service._responses[0] = opened("e-1", "a.*")

    followed.follow()

    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["2"]
    assert stored(tmp_path)["sequence"] == 2


def test_what_came_of_each_attempt_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forwarding = Forwarding(UNREACHED, REFUSED, DELIVERED)

    Followed(tmp_path, opened(), page(an_event(1)), forwarding=forwarding).follow()

    out, err = capsys.readouterr()
    assert [line.partition("-> ")[2] for line in out.splitlines()[1:]] == [
        "the answer was 500, not 2xx",
        "204 in 12 ms",
    ]
    assert err.splitlines()[1:] == [
        "Sending event 1 again in 1 s.",
        "Sending event 1 again in 2 s.",
    ]
    assert forwarding.sent == [("evt_1", 1, 1), ("evt_1", 1, 2), ("evt_1", 1, 3)]
    assert json.loads(forwarding.bodies[0]) == an_event(1)["body"]


def test_pauses_double_up_to_half_a_minute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forwarding = Forwarding(*[UNREACHED] * 7, DELIVERED)

    Followed(tmp_path, opened(), page(an_event(1)), forwarding=forwarding).follow()

    waits = [line.split()[-2] for line in capsys.readouterr().err.splitlines()[1:]]
    assert waits == ["1", "2", "4", "8", "16", "30", "30"]


@pytest.mark.parametrize(("after", "wait"), [(0.5, "1"), (20.0, "20"), (300.0, "30")])
def test_a_receiver_may_ask_for_a_longer_pause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], after: float, wait: str
) -> None:
    forwarding = Forwarding(Outcome(status=503, retry_after=after), DELIVERED)

    Followed(tmp_path, opened(), page(an_event(1)), forwarding=forwarding).follow()

    assert f"again in {wait} s." in capsys.readouterr().err


def test_an_event_that_its_receiver_never_wants_is_left_out(tmp_path: Path) -> None:
    forwarding = Forwarding(Outcome(status=500, wish="abort-message"), DELIVERED)

    Followed(tmp_path, opened(), page(an_event(1), an_event(2)), forwarding=forwarding).follow()

    assert forwarding.sent == [("evt_1", 1, 1), ("evt_2", 2, 1)]
    assert stored(tmp_path)["sequence"] == 2


def test_refused_events_are_left_out_if_asked_but_not_those_that_never_arrived(
    tmp_path: Path,
) -> None:
    forwarding = Forwarding(UNREACHED, REFUSED)
    followed = Followed(tmp_path, opened(), page(an_event(1)), forwarding=forwarding)
    followed.listener.skips_refused = True

    followed.follow()

    assert forwarding.sent == [("evt_1", 1, 1), ("evt_1", 1, 2)]
    assert stored(tmp_path)["sequence"] == 1


@pytest.mark.parametrize(
    ("outcome", "came_of_it"),
    [
        (None, {}),
        (
            DELIVERED,
            {"attempt": 1, "accepted": True, "status": 204, "reason": "", "milliseconds": 12},
        ),
        (
            Outcome(reason="E_DNS", wish=None),
            {
                "attempt": 1,
                "accepted": False,
                "status": None,
                "reason": "E_DNS",
                "milliseconds": 0,
            },
        ),
    ],
)
def test_json_has_the_event_and_what_came_of_it(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    outcome: Outcome | None,
    came_of_it: dict[str, Any],
) -> None:
    forwarding = Forwarding(outcome, DELIVERED) if outcome else None
    followed = Followed(tmp_path, opened(), page(an_event(1)), forwarding=forwarding)
    followed.listener.as_json = True

    followed.follow()

    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first == {**an_event(1), **came_of_it}


def test_json_counts_the_attempts_of_each_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forwarding = Forwarding(REFUSED, REFUSED, DELIVERED, DELIVERED)
    followed = Followed(tmp_path, opened(), page(an_event(1), an_event(2)), forwarding=forwarding)
    followed.listener.as_json = True

    followed.follow()

    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["sequence"], one["attempt"]) for one in shown] == [(1, 1), (1, 2), (1, 3), (2, 1)]


def stopped(followed: Followed, forwarding: Forwarding) -> bool:
    """Stop it once it sends; return whether it was cancelled."""

    async def stopping() -> bool:
        running = asyncio.create_task(followed.listener.run(FROM_START, lambda: None))
        await until(lambda: forwarding.sent)
        followed.listener.stop(running)
        await asyncio.wait([running])
        if not running.cancelled():
            running.result()
        return running.cancelled()

    return run(stopping())


@pytest.mark.parametrize(("outcome", "is_stored"), [(DELIVERED, True), (REFUSED, False)])
def test_an_attempt_in_progress_ends_before_a_stop(
    tmp_path: Path, outcome: Outcome, *, is_stored: bool
) -> None:
    forwarding = Forwarding(outcome, DELIVERED)
    followed = Followed(tmp_path, opened(), page(an_event(1), an_event(2)), forwarding=forwarding)
    real = forwarding.send

    async def slow(*event: Any, **more: Any) -> Outcome:
        found = await real(*event, **more)
        await asyncio.sleep(5)
        return found

    forwarding.send = slow  # type: ignore[method-assign]

    assert not stopped(followed, forwarding)
    assert len(forwarding.sent) == 1
    assert (tmp_path / "position.json").exists() is is_stored


def test_a_stop_between_attempts_cancels_what_waits(tmp_path: Path) -> None:
    forwarding = Forwarding(*[UNREACHED] * 9)
    followed = Followed(tmp_path, opened(), page(an_event(1)), forwarding=forwarding)

    assert stopped(followed, forwarding)
    assert len(forwarding.sent) == 1


def test_a_queue_that_is_removed_ends_it(tmp_path: Path) -> None:
    followed = Followed(tmp_path, opened(), response(404))

    with pytest.raises(click.ClickException, match="the queue at the service was removed"):
        run(followed.listener.run(FROM_START, lambda: None))
