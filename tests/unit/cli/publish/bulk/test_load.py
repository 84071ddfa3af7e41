"""A load sends all that there is, in parallel, and ends at a failure or a stop."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fhirpub.cli.publish.bulk.intake import Taken
from fhirpub.cli.publish.bulk.items import Item
from fhirpub.cli.publish.bulk.load import Load, Record, interruptible
from fhirpub.cli.publish.outcome import Outcome
from fhirpub.cli.publish.publisher import Registration
from fhirpub.cli.publish.retries import Answered
from tests.canned import created

FILE = Path("/f.ndjson")


def taken(line: int, problem: str = "") -> Taken:
    item = Item(file=FILE, base=FILE.parent, line=line)
    if problem:
        return Taken(item, problem=problem)
    return Taken(item, Registration("DiagnosticReport", str(line).encode()))


class Groups:
    """An intake of groups at hand."""

    def __init__(self, *groups: list[Taken]) -> None:
        self.stopped = threading.Event()
        self.skipped = 0
        self._groups = list(groups)

    def take(self) -> list[Taken]:
        if self.stopped.is_set() or not self._groups:
            return []
        return self._groups.pop(0)


class Sending:
    """Answers each registration, fails at one, or waits at one."""

    def __init__(self, *, fails_at: int = 0, waits_at: int = 0) -> None:
        self.sent: list[int] = []
        self.waiting = asyncio.Event()
        self.closed = 0
        self._fails_at, self._waits_at = fails_at, waits_at

    async def __call__(self, group: Sequence[Registration]) -> AsyncGenerator[Answered, None]:
        try:
            for registration in group:
                number = int(registration.body)
                self.sent.append(number)
                if number == self._fails_at:
                    raise RuntimeError("none is accepted")
                if number == self._waits_at:
                    self.waiting.set()
                    await asyncio.Event().wait()
                yield Answered(created(), 2)
        finally:
            self.closed += 1


Kept = list[tuple[int | None, str]]


def loading(groups: Groups, sending: Sending, record: Record, jobs: int = 1, **more: Any) -> Load:
    return Load(groups, sending, record, jobs, **more)  # type: ignore[arg-type]


def a_load(groups: Groups, sending: Sending, jobs: int = 2) -> tuple[Load, Kept]:
    kept: Kept = []

    def record(item: Item, outcome: Outcome) -> None:
        kept.append((item.line, outcome.result))

    return loading(groups, sending, record, jobs), kept


async def test_everything_is_sent_once_and_recorded() -> None:
    groups = [[taken(1), taken(2)], [taken(3)], [taken(4)]]
    sending = Sending()
    load, kept = a_load(Groups(*groups), sending)

    await load.run()

    assert sorted(sending.sent) == [1, 2, 3, 4]
    assert sorted(kept, key=str) == [(number, "created") for number in (1, 2, 3, 4)]


async def test_an_outcome_has_the_file_the_line_and_the_attempts() -> None:
    outcomes: list[Outcome] = []
    load = loading(Groups([taken(7)]), Sending(), lambda _item, outcome: outcomes.append(outcome))

    await load.run()

    (one,) = outcomes
    assert (one.file, one.line, one.attempts, one.type_name) == (
        *(str(FILE), 7, 2),
        "DiagnosticReport",
    )


async def test_what_cannot_be_sent_is_recorded_with_its_problem_and_the_rest_is_sent() -> None:
    outcomes: dict[int | None, Outcome] = {}
    sending = Sending()
    load = loading(
        Groups([taken(1, "is no JSON"), taken(2)], [taken(3, "is empty")]),
        sending,
        lambda item, outcome: outcomes.update({item.line: outcome}),
    )

    await load.run()

    assert sending.sent == [2]
    assert [(outcomes[n].result, outcomes[n].reason, outcomes[n].line) for n in (1, 3)] == [
        ("not sent", "is no JSON", 1),
        ("not sent", "is empty", 3),
    ]


async def test_what_finishes_a_report_runs_in_a_thread_before_it_is_recorded() -> None:
    steps: list[str] = []

    def finish(_item: Item, _outcome: Outcome) -> None:
        in_thread = threading.current_thread() is not threading.main_thread()
        steps.append(f"finish {in_thread}")

    groups = Groups([taken(1)], [taken(2, "x")])
    load = loading(groups, Sending(), lambda *_: steps.append("record"), finish=finish)

    await load.run()

    assert steps == ["finish True", "record"] * 2


async def test_a_failure_ends_everything_and_is_raised() -> None:
    groups, sending = Groups([taken(1)], [taken(2)], [taken(3)]), Sending(fails_at=1)
    load, kept = a_load(groups, sending, jobs=1)

    with pytest.raises(RuntimeError, match="none is accepted"):
        await load.run()

    assert groups.stopped.is_set()
    assert (sending.sent, kept) == ([1], [])


async def test_a_failure_gives_up_what_others_wait_for() -> None:
    sending = Sending(fails_at=2, waits_at=1)
    load, _ = a_load(Groups([taken(1)], [taken(2)]), sending)

    with pytest.raises(RuntimeError, match="none is accepted"):
        await load.run()

    assert sending.closed == 2


async def test_the_rest_of_a_group_is_not_sent_after_a_stop() -> None:
    groups, sending = Groups([taken(1), taken(2)]), Sending()
    load, kept = a_load(groups, sending, jobs=1)
    record = load.record

    def stopping(item: Item, outcome: Outcome) -> None:
        record(item, outcome)
        groups.stopped.set()

    await loading(groups, sending, stopping).run()

    assert (sending.sent, kept, sending.closed) == ([1], [(1, "created")], 1)


async def test_requests_in_flight_are_given_up_some_time_after_a_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fhirpub.cli.publish.bulk.load._GRACE_SECONDS", 0.0)
    groups, sending = Groups([taken(1)]), Sending(waits_at=1)
    load, kept = a_load(groups, sending, jobs=1)

    async def stop() -> None:
        await sending.waiting.wait()
        groups.stopped.set()

    async with asyncio.timeout(30):
        await asyncio.gather(load.run(), stop())

    assert (kept, sending.closed) == ([], 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_stops_once_and_is_known_afterwards(number: signal.Signals) -> None:
    reached, stopped = False, asyncio.Event()

    async with interruptible(stopped.set) as was_interrupted:
        before = was_interrupted()
        os.kill(os.getpid(), number)
        async with asyncio.timeout(30):  # wait_for may swallow that this is cancelled
            await stopped.wait()
        reached = True

    assert (before, was_interrupted(), reached) == (False, True, True)
    assert not asyncio.get_running_loop().remove_signal_handler(number)


async def test_a_second_signal_ends_what_runs() -> None:
    reached, stopped = False, asyncio.Event()

    async with interruptible(stopped.set) as was_interrupted:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.wait_for(stopped.wait(), 30)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(10)
        reached = True

    assert was_interrupted()
    assert not reached


async def test_another_cancellation_is_not_swallowed() -> None:
    async def work() -> None:
        async with interruptible(lambda: None):
            await asyncio.sleep(10)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_requests_in_flight_may_end_for_some_time_after_a_stop() -> None:
    groups = Groups([taken(1)])
    kept: Kept = []
    released = asyncio.Event()

    async def send(group: Sequence[Registration]) -> AsyncGenerator[Answered, None]:
        for _ in group:
            groups.stopped.set()
            asyncio.get_running_loop().call_later(0.3, released.set)  # longer than a look at it
            await released.wait()
            yield Answered(created(), 1)

    def record(item: Item, outcome: Outcome) -> None:
        kept.append((item.line, outcome.result))

    await Load(groups, send, record, 1).run()  # type: ignore[arg-type]

    assert kept == [(1, "created")]
