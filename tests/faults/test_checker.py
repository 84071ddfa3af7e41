"""The checker itself: possible histories pass, impossible ones are refused with the reason."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.linearizability import (
    Absent,
    Call,
    Conflict,
    Found,
    Kept,
    Operation,
    Outcome,
    Patch,
    Read,
    Register,
    Registered,
    State,
    Updated,
    complaints,
    explain,
    happened,
)

CURRENT = -1
"""Placeholder for a version to match: the one that is current when the call has its effect."""


def done(call: Call, outcome: Outcome | None, start: float, end: float = 0.0) -> Operation:
    """Return a call; by default it takes half a second."""
    if outcome is None:
        return Operation(client=0, call=call, invoked=start)
    end = end or start + 0.5
    return Operation(client=0, call=call, invoked=start, outcome=outcome, completed=end)


class Simulated:
    """A report as a list of contents, written independently of the checker's model."""

    def __init__(self) -> None:
        self.versions: list[str] = []

    def ask(self, call: Call) -> tuple[Call, Outcome]:
        """Carry out a call; return it, with the current version in it, and its response."""
        latest = len(self.versions)
        match call:
            case Register(marker):
                if not latest:
                    self.versions.append(marker)
                return call, Registered(self.versions[0])
            case Patch(marker, wanted):
                wanted = latest if wanted == CURRENT else wanted
                if latest and wanted in (None, latest):
                    self.versions.append(marker)
                    return Patch(marker, wanted), Updated(latest + 1)
                return Patch(marker, wanted), Conflict(latest) if latest else Absent()
        return call, Found(latest, self.versions[-1]) if latest else Absent()


@st.composite
def calls(draw: st.DrawFn, marker: str) -> Call:
    kind = draw(st.sampled_from(["register", "read", "patch", "patch"]))
    if kind == "register":
        return Register(marker)
    if kind == "read":
        return Read()
    return Patch(marker, draw(st.sampled_from([None, CURRENT, CURRENT, 1, 2, 3])))


@st.composite
def possible_histories(draw: st.DrawFn, *, with_unknown: bool = True) -> list[Operation]:
    """Calls at drawn times, each answered by one report at some moment in between.

    Of the calls without a response some have their effect, sooner or much later, some have none.
    """
    plan = []
    for number in range(draw(st.integers(1, 24))):
        call = draw(calls(f"content {number}"))
        start = draw(st.integers(0, 40))
        unknown = with_unknown and draw(st.integers(0, 3)) == 0
        effect = start + draw(st.integers(0, 40 if unknown else 8))
        happens = not unknown or draw(st.booleans())
        plan.append((effect, number, call, start, unknown, happens))
    report, history = Simulated(), []
    for effect, _number, call, start, unknown, happens in sorted(plan, key=lambda one: one[:2]):
        asked, outcome = report.ask(call) if happens else (replace_current(call), None)
        end = effect + draw(st.integers(0, 8))
        history.append(done(asked, None if unknown else outcome, start, end + 0.25))
    return history


def replace_current(call: Call) -> Call:
    return replace(call, if_match=1) if isinstance(call, Patch) and call.if_match else call


@given(possible_histories())
def test_what_one_report_answered_is_accepted(history: list[Operation]) -> None:
    assert explain(history) is None


@given(possible_histories(with_unknown=False), st.data())
def test_one_falsified_answer_is_refused(history: list[Operation], data: st.DataObject) -> None:
    false: dict[int, Outcome] = {}
    for index, operation in enumerate(history):
        match operation.outcome:
            case Found(version, marker):
                false[index] = Found(version + 1, marker)
            case Updated(version):
                false[index] = Updated(version + 1)
            case Registered(first):
                false[index] = Registered(first + "?")
    if not false:
        return

    index = data.draw(st.sampled_from(sorted(false)))
    history[index] = replace(history[index], outcome=false[index])

    assert explain(history) is not None


@st.composite
def small_histories(draw: st.DrawFn) -> list[Operation]:
    """A few calls with arbitrary responses; most of them cannot have happened."""
    how_many = draw(st.integers(1, 5))
    markers = [f"content {number}" for number in range(how_many)]
    history = []
    for marker in markers:
        call = replace_current(draw(calls(marker)))
        version, other = draw(st.integers(1, 3)), draw(st.sampled_from(markers))
        answers: list[Outcome | None] = [None, Absent()]
        if isinstance(call, Register):
            answers = [None, Registered(other)]
        elif isinstance(call, Patch):
            answers += [Updated(version), Conflict(version)]
        else:
            answers += [Found(version, other)]
        start = draw(st.integers(0, 6))
        end = start + draw(st.integers(0, 6)) + 0.5
        history.append(done(call, draw(st.sampled_from(answers)), start, end))
    return history


def fits(order: Sequence[Operation]) -> bool:
    state: State | None = None
    for number, operation in enumerate(order):
        if any(later.completed < operation.invoked for later in order[number:]):
            return False
        state, outcome = happened(state, operation.call)
        if operation.outcome not in (None, outcome):
            return False
    return True


def some_order_fits(history: list[Operation]) -> bool:
    """Try every order of every choice: slow, and too simple to be wrong."""
    answered = [operation for operation in history if operation.outcome is not None]
    unknown = [operation for operation in history if operation.outcome is None]
    return any(
        fits(order)
        for size in range(len(unknown) + 1)
        for chosen in combinations(unknown, size)
        for order in permutations([*answered, *chosen])
    )


@given(small_histories())
def test_the_verdict_is_that_of_trying_every_order(history: list[Operation]) -> None:
    assert (explain(history) is None) is some_order_fits(history)


FIRST = done(Register("a"), Registered("a"), 0)
SECOND = done(Patch("b", 1), Updated(2), 1)
IMPOSSIBLE = {
    "a stale read after an acknowledged update": [
        FIRST,
        SECOND,
        done(Read(), Found(1, "a"), 2),
    ],
    "a lost update": [FIRST, SECOND, done(Patch("c", 2), Conflict(1), 2)],
    "two updates under one tag": [FIRST, SECOND, done(Patch("c", 1), Updated(2), 1)],
    "an acknowledged registration that is gone": [FIRST, done(Read(), Absent(), 1)],
    "a version that was skipped": [FIRST, done(Patch("b", 1), Updated(3), 1)],
    "a read from the future": [FIRST, done(Read(), Found(2, "b"), 1), replace(SECOND, invoked=2)],
    "a read that goes back in time": [
        FIRST,
        done(Patch("b", 1), None, 1),
        done(Read(), Found(2, "b"), 2),
        done(Read(), Found(1, "a"), 3),
    ],
    "a registration that is not the first": [FIRST, done(Register("b"), Registered("b"), 1)],
    "an update that happened twice": [
        FIRST,
        done(Patch("b"), None, 1),
        done(Read(), Found(3, "b"), 2),
        done(Patch("c", 2), Conflict(3), 3),
    ],
    "a conflict with the version that was sent": [FIRST, done(Patch("b", 1), Conflict(1), 1)],
    "a content that no call sent": [FIRST, done(Read(), Found(1, "z"), 1)],
}
CULPRITS = {
    "a read from the future": [1],
    "two updates under one tag": [1, 2],
    "an update that happened twice": [2],
}
"""Which calls could not be placed, where it is not only the last one."""


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_cannot_have_happened_is_refused_and_the_culprit_named(case: str) -> None:
    history = IMPOSSIBLE[case]
    culprits = CULPRITS.get(case, [len(history) - 1])

    refusal = explain(history)

    assert refusal is not None
    assert set(refusal.stuck) <= {history[culprit] for culprit in culprits}
    assert not set(refusal.stuck) & set(refusal.order)


def test_a_refusal_says_what_each_answer_should_have_been() -> None:
    explanation = str(explain(IMPOSSIBLE["a stale read after an acknowledged update"]))

    assert (
        "Read() -> Found(version=1, marker='a'); here it would be Found(version=2" in explanation
    )


def test_two_calls_with_one_content_cannot_be_checked() -> None:
    with pytest.raises(ValueError, match="must be distinct"):
        explain([FIRST, FIRST])


@pytest.mark.parametrize("unknown", ["with effect", "without effect", "late"])
def test_a_call_without_an_answer_may_have_happened_or_not(unknown: str) -> None:
    read: Outcome = Found(2, "b") if unknown == "with effect" else Found(1, "a")
    history = [FIRST, done(Patch("b", 1), None, 1), done(Read(), read, 2)]
    if unknown == "late":
        history.append(done(Read(), Found(2, "b"), 3))

    assert explain(history) is None


def many_at_once(seed: int, last: Found | None = None) -> list[Operation]:
    """Return 64 calls that all overlap; a third of them have an unknown outcome."""
    random, report, history = Random(seed), Simulated(), [FIRST]
    report.ask(Register("a"))
    for number in range(64):
        call: Call = Patch(f"content {number}", random.choice([None, None, CURRENT]))
        if random.random() < 0.25:
            call = Read()
        unknown = random.random() < 0.33
        happens = not unknown or random.random() < 0.5
        asked, outcome = report.ask(call) if happens else (replace_current(call), None)
        history.append(done(asked, None if unknown else outcome, 1 + random.random(), 9))
    return history if last is None else [*history, done(Read(), last, 10)]


def many_without_a_response() -> list[Operation]:
    """Return 64 calls without a response: any of them may have happened."""
    bound = [Patch(f"bound {number}", number) for number in range(1, 33)]
    free = [Patch(f"free {number}") for number in range(32)]
    unknown = [done(call, None, 1) for call in (*bound, *free)]
    return [FIRST, *unknown, done(Read(), Found(50, "z"), 2)]


def cpu_seconds(history: list[Operation], *, possible: bool) -> float:
    start = time.process_time()
    refusal = explain(history)
    seconds = time.process_time() - start
    assert (refusal is None) is possible
    return seconds


def test_64_calls_at_once_are_checked_within_a_second(seed: int) -> None:
    assert cpu_seconds(many_at_once(seed), possible=True) < 1
    assert cpu_seconds(many_at_once(seed, Found(9, "z")), possible=False) < 1
    assert cpu_seconds(many_without_a_response(), possible=False) < 1


KEPT = [
    Kept(1, "a", ("diagnostic_report.created 1",)),
    Kept(2, "b", ("diagnostic_report.updated 2",)),
]
HISTORY = [FIRST, SECOND]


def test_versions_that_agree_with_the_answers_give_no_cause_for_complaint() -> None:
    assert list(complaints(HISTORY, KEPT)) == []


WRONG_VERSIONS = {
    "a gap": ([KEPT[0], replace(KEPT[1], version=3)], "not one after another"),
    "one that is missing": (KEPT[:1], "Version 2 was reported as b, and is nothing"),
    "another content": ([KEPT[0], replace(KEPT[1], marker="c")], "Version 2 was reported as b"),
    "a content of no call": ([*KEPT, replace(KEPT[1], version=3, marker="z")], "no call sent"),
    "one update twice": ([*KEPT, replace(KEPT[1], version=3)], "made the versions [2, 3]"),
    "no event": ([KEPT[0], replace(KEPT[1], events=())], "Version 2 has the events []"),
    "an event twice": ([replace(KEPT[0], events=KEPT[0].events * 2), KEPT[1]], "Version 1 has"),
}


@pytest.mark.parametrize("case", WRONG_VERSIONS)
def test_versions_that_do_not_agree_are_complained_of(case: str) -> None:
    kept, complaint = WRONG_VERSIONS[case]

    assert complaint in "\n".join(complaints(HISTORY, kept))


def test_registrations_that_got_different_bytes_are_complained_of() -> None:
    other = done(Register("c"), Registered("a", "other bytes"), 1)

    assert "2 different answers" in "\n".join(complaints([*HISTORY, other], KEPT))
