"""Where a computation runs, by its size, its values, and whether there are processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.interactions.context import Context
from fhirpub.runtime.process_pool import ProcessUnavailable
from fhirpub.testing.service import RunningService
from fhirpub.web.handlers.placement import (
    DENSE,
    LARGE,
    LARGE_STORED,
    compute,
    compute_with,
    count_values,
    joined,
)
from fhirpub.web.services import Services


class Processes:
    """A pool that notes what it is given, or has no process."""

    def __init__(self, *, is_available: bool = True) -> None:
        self.owners: list[str] = []
        self._is_available = is_available

    async def run(
        self, owner: str, _work: Callable[[Context, bytes], Any], _chunks: Sequence[bytes]
    ) -> str:
        if not self._is_available:
            raise ProcessUnavailable
        self.owners.append(owner)
        return "process"


class Trimmer:
    """Counts large pieces of work."""

    def __init__(self) -> None:
        self.noted = 0

    def note_large_work(self) -> None:
        self.noted += 1


@pytest.fixture
def services(service: RunningService) -> Services:
    made: Any = {"processes": None, "trimmer": Trimmer()}
    return replace(service.services, **made)


def where(_context: Context, body: bytes) -> tuple[int, bytes]:
    return threading.get_ident(), body


def place(service: RunningService, services: Services, **given: Any) -> str:
    """Return where a computation runs: on the loop, in a thread, or in a process."""

    async def found() -> str:
        ran: Any = await compute(services, "t", where, [b"a", b"b"], **given)
        if ran == "process":
            return "process"
        assert ran[1] == b"ab"
        return "loop" if ran[0] == threading.get_ident() else "thread"

    return service.call(found())


@pytest.mark.parametrize(
    ("size", "dense", "wanted"),
    [
        (LARGE, False, "loop"),
        (LARGE + 1, False, "thread"),
        (1, True, "thread"),
        (LARGE + 1, True, "thread"),
    ],
)
def test_what_is_small_runs_on_the_loop_and_else_in_a_thread(
    service: RunningService, services: Services, size: int, wanted: str, *, dense: bool
) -> None:
    assert place(service, services, size=size, is_dense=dense) == wanted


@pytest.mark.parametrize(("dense", "wanted"), [(True, "process"), (False, "thread")])
def test_what_is_dense_runs_in_a_process_if_there_is_one(
    service: RunningService, services: Services, wanted: str, *, dense: bool
) -> None:
    made: Any = Processes()
    given = replace(services, processes=made)

    assert place(service, given, size=LARGE + 1, is_dense=dense) == wanted
    assert made.owners == ["t"] * dense


def test_what_gets_no_process_runs_in_a_thread(
    service: RunningService, services: Services
) -> None:
    made: Any = Processes(is_available=False)

    assert place(service, replace(services, processes=made), size=1, is_dense=True) == "thread"


@pytest.mark.parametrize(("size", "noted"), [(LARGE, 0), (LARGE + 1, 1)])
def test_memory_is_given_back_after_large_work(
    service: RunningService, services: Services, size: int, noted: int
) -> None:
    place(service, services, size=size, is_dense=False)

    assert services.trimmer.noted == noted  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        ([b" " * LARGE_STORED], False),
        ([b" " * LARGE_STORED, b" "], True),
        ([b"," * DENSE], False),
        ([b"," * DENSE, b","], True),
    ],
)
def test_stored_resources_are_dense_by_their_bytes_or_their_values(
    service: RunningService, services: Services, stored: list[bytes], *, wanted: bool
) -> None:
    made: Any = Processes()
    given = replace(services, processes=made)

    service.call(compute_with(given, "t", lambda *_given: "here", stored))

    assert bool(made.owners) is wanted


@pytest.mark.parametrize(
    ("piece", "json", "xml"),
    [(b'{"a":[1,2]}', 3, 3), (b'<a b="1"/>', 1, 2), (b"", 0, 0), (b"a, b", 1, 1)],
)
def test_values_are_counted_by_the_marks_beside_them(piece: bytes, json: int, xml: int) -> None:
    assert [count_values(piece), count_values(piece, is_xml=True)] == [json, xml]


def test_one_piece_is_joined_without_a_copy() -> None:
    piece = b"abc"

    assert joined([piece]) is piece
    assert (joined([b"a", b"b"]), joined([])) == (b"ab", b"")
