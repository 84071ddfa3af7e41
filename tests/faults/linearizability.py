"""Checks the observed calls of one report: is there an order in which they could have happened?

A history is linearizable if every response can be explained by one report that changes in single
steps, each between the call and its response. The search is that of Wing and Gong with Lowe's
memory of visited states (G. Lowe, Testing for linearizability, 2017). What the service promises is
stated in `happened`, and nowhere else.

Pure: no clock, no socket, no store.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Register:
    """``$register`` with a content that no other call of the history sends."""

    marker: str


@dataclass(frozen=True, slots=True)
class Patch:
    """An update with a content of its own; ``if_match`` None: any version."""

    marker: str
    if_match: int | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """A read of the latest version."""


@dataclass(frozen=True, slots=True)
class Registered:
    """201: the content of the first registration, and a digest of the response's bytes."""

    first: str
    answer: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Updated:
    """204, with the version of the ETag."""

    version: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """412, with the version that the response calls the current one."""

    current: int


@dataclass(frozen=True, slots=True)
class Found:
    """200, with the version and its content."""

    version: int
    marker: str


@dataclass(frozen=True, slots=True)
class Absent:
    """404."""


Call = Register | Patch | Read
Outcome = Registered | Updated | Conflict | Found | Absent


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A call and its outcome; times are seconds of one monotonic clock.

    ``outcome`` None: unknown. The call may have had its effect at any time since, may yet have it,
    or never.
    """

    client: int
    call: Call
    invoked: float
    outcome: Outcome | None = None
    completed: float = math.inf

    def __str__(self) -> str:
        end = "" if self.outcome is None else f"{self.completed:.6f}"
        outcome = "unknown" if self.outcome is None else str(self.outcome)
        return f"{self.invoked:.6f} to {end:>12}  client {self.client}: {self.call} -> {outcome}"


@dataclass(frozen=True, slots=True)
class State:
    """A registered report: its latest version, its content, and the first registration."""

    version: int
    marker: str
    first: str


def happened(state: State | None, call: Call) -> tuple[State | None, Outcome]:
    """Return the state after one call, and the response that the call must get."""
    if state is None:
        if isinstance(call, Register):
            return State(1, call.marker, call.marker), Registered(call.marker)
        return None, Absent()
    if isinstance(call, Register):
        return state, Registered(state.first)
    if isinstance(call, Read):
        return state, Found(state.version, state.marker)
    if call.if_match not in (None, state.version):
        return state, Conflict(state.version)
    return State(state.version + 1, call.marker, state.first), Updated(state.version + 1)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no order explains a history: the longest explained part, and what stopped it."""

    order: tuple[Operation, ...]
    state: State | None
    stuck: tuple[Operation, ...]
    """The answered calls of which one had to be next, but none could be."""

    def __str__(self) -> str:
        shown = self.order[-20:]
        lines = [f"No order explains the answers. The longest that does has {len(self.order)}:"]
        if len(shown) < len(self.order):
            lines.append(f"  ... {len(self.order) - len(shown)} before")
        lines += [f"  {operation}" for operation in shown]
        lines.append(f"Then the report is {self.state or 'absent'}, and next had to be one of:")
        for operation in self.stuck:
            _state, outcome = happened(self.state, operation.call)
            lines.append(f"  {operation}; here it would be {outcome}")
        return "\n".join(lines)


def explain(history: Iterable[Operation]) -> Refusal | None:
    """Return None if the history of one report is linearizable, else the reason why it is not.

    The report is absent at the beginning. Raises ValueError if two calls send one content.
    """
    return _Search(history).run()


_Path = tuple["_Path", Operation] | None


class _Search:
    """One search: the answered calls first, ordered by their times, then the others.

    A set of calls is a number with a bit for each of them.
    """

    def __init__(self, history: Iterable[Operation]) -> None:
        every = sorted(history, key=lambda each: each.invoked)
        markers = [
            operation.call.marker for operation in every if not isinstance(operation.call, Read)
        ]
        if len(markers) != len(set(markers)):
            raise ValueError("contents must be distinct")
        answered = [operation for operation in every if operation.outcome is not None]
        unknown = [
            operation
            for operation in every
            if operation.outcome is None and operation.call != Read()
        ]
        self._calls = answered + unknown
        self._answered = len(answered)
        self._seen = dict(_sightings(answered))
        self._seen_versions = set(self._seen.values())

    def run(self) -> Refusal | None:
        """Visit every reachable set and state once."""
        everything = (1 << self._answered) - 1
        tried: set[tuple[int, State | None]] = set()
        best: tuple[int, int, State | None, _Path] = (-1, 0, None, None)
        to_try: list[tuple[int, State | None, _Path]] = [(0, None, None)]
        while to_try:
            done, state, path = self._with_all_that_changes_nothing(*to_try.pop())
            if done & everything == everything:
                return None
            if (done, state) in tried:
                continue
            tried.add((done, state))
            best = max(best, ((done & everything).bit_count(), done, state, path), key=_progress)
            to_try += self._steps(done, state, path)
        _count, done, state, path = best
        stuck = tuple(
            self._calls[number] for number in self._next(done) if number < self._answered
        )
        return Refusal(_order(path), state, stuck)

    def _with_all_that_changes_nothing(
        self, done: int, state: State | None, path: _Path
    ) -> tuple[int, State | None, _Path]:
        """Place every response that fits the current state: waiting would not help it."""
        found = True
        while found:
            found = False
            for number in self._next(done):
                operation = self._calls[number]
                if operation.outcome and happened(state, operation.call) == (
                    state,
                    operation.outcome,
                ):
                    done, path, found = done | 1 << number, (path, operation), True
        return done, state, path

    def _steps(
        self, done: int, state: State | None, path: _Path
    ) -> Iterator[tuple[int, State | None, _Path]]:
        """Yield the states reachable by one call that changes the report.

        Of the calls without a known outcome one represents all: the first with If-Match if there
        is one, since the others can still have their effect later, and it cannot.
        """
        unseen: list[tuple[bool, int, State]] = []
        for number in self._next(done):
            operation = self._calls[number]
            after, outcome = happened(state, operation.call)
            if after is None or after == state:
                continue
            if operation.outcome is None and after.marker not in self._seen:
                if after.version not in self._seen_versions:
                    unseen.append((operation.call == Patch(after.marker), number, after))
            elif operation.outcome == outcome or self._was_seen(operation, after):
                yield done | 1 << number, after, (path, operation)
        for _without, number, after in sorted(unseen)[:1]:
            yield done | 1 << number, after, (path, self._calls[number])

    def _was_seen(self, operation: Operation, after: State) -> bool:
        """Return whether a call without a response created this version."""
        return operation.outcome is None and self._seen[after.marker] == after.version

    def _next(self, done: int) -> Iterator[int]:
        """Yield the calls before which no other must have happened."""
        until = math.inf
        first = (~done & (done + 1)).bit_length() - 1
        for number in range(first, self._answered):
            operation = self._calls[number]
            if operation.invoked > until:
                break
            if not done >> number & 1:
                until = min(until, operation.completed)
                yield number
        for number in range(self._answered, len(self._calls)):
            if self._calls[number].invoked > until:
                break
            if not done >> number & 1:
                yield number


def _sightings(answered: Iterable[Operation]) -> Iterator[tuple[str, int]]:
    """Yield the contents that a client saw, each with its version."""
    for operation in answered:
        if isinstance(operation.outcome, Found):
            yield operation.outcome.marker, operation.outcome.version
        elif isinstance(operation.outcome, Registered):
            yield operation.outcome.first, 1
        elif isinstance(operation.outcome, Updated) and isinstance(operation.call, Patch):
            yield operation.call.marker, operation.outcome.version


def _progress(tried: tuple[int, int, State | None, _Path]) -> int:
    return tried[0]


def _order(path: _Path) -> tuple[Operation, ...]:
    backwards: list[Operation] = []
    while path is not None:
        path, operation = path
        backwards.append(operation)
    return tuple(reversed(backwards))


@dataclass(frozen=True, slots=True)
class Kept:
    """A version as it is stored at the end, with the names of its events."""

    version: int
    marker: str
    events: tuple[str, ...]


def complaints(history: Sequence[Operation], kept: Sequence[Kept]) -> Iterator[str]:
    """Yield the problems of one report: its versions, its responses, its order.

    ``kept`` are all its versions, oldest first. An event's name is its type and its version.
    """
    yield from _of_versions(kept)
    yield from _of_acknowledged(history, kept)
    yield from _of_contents(history, kept)
    yield from _of_registrations(history)
    refusal = explain(history)
    if refusal is not None:
        yield str(refusal)


def _of_versions(kept: Sequence[Kept]) -> Iterator[str]:
    numbers = [item.version for item in kept]
    if numbers != list(range(1, len(kept) + 1)):
        yield f"The versions are {numbers}, not one after another from 1."
    for item in kept:
        event = "created" if item.version == 1 else "updated"
        if list(item.events) != [f"diagnostic_report.{event} {item.version}"]:
            yield f"Version {item.version} has the events {list(item.events)}."


def _of_acknowledged(history: Sequence[Operation], kept: Sequence[Kept]) -> Iterator[str]:
    standing = {item.version: item.marker for item in kept}
    answered = [operation for operation in history if operation.outcome is not None]
    for marker, version in dict.fromkeys(_sightings(answered)):
        if standing.get(version) != marker:
            there = standing.get(version, "nothing")
            yield f"Version {version} was reported as {marker}, and is {there}."


def _of_contents(history: Sequence[Operation], kept: Sequence[Kept]) -> Iterator[str]:
    sent = {operation.call.marker for operation in history if not isinstance(operation.call, Read)}
    versions: dict[str, list[int]] = {}
    for item in kept:
        versions.setdefault(item.marker, []).append(item.version)
    for marker, places in versions.items():
        if marker not in sent:
            yield f"Version {places[0]} is {marker}, which no call sent."
        if len(places) > 1:
            yield f"One update, {marker}, made the versions {places}."


def _of_registrations(history: Sequence[Operation]) -> Iterator[str]:
    answers = {
        operation.outcome.answer
        for operation in history
        if isinstance(operation.outcome, Registered)
    }
    if len(answers) > 1:
        yield f"Registrations got {len(answers)} different answers."
