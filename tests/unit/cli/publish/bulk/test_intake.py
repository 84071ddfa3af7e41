"""Which reports are taken together, and what is known of those that cannot be sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fhirpub.cli.publish.bulk import intake as module
from fhirpub.cli.publish.bulk.intake import Intake
from fhirpub.cli.publish.bulk.items import Item
from fhirpub.cli.publish.service import Service
from fhirpub.cli.publish.submission import Submission
from tests.bodies import register_body
from tests.unit.cli.publish.services import service_at

FOLDER = Path("/nowhere")


def lines(*values: str, **changes: Any) -> Iterator[Item]:
    for number, value in enumerate(values, start=1):
        raw = json.dumps(register_body(value, **changes)).encode()
        yield Item(file=FOLDER / "a.ndjson", base=FOLDER, line=number, raw=raw)


def intake(items: Iterator[Item], is_done: Callable[[Item], bool] = lambda _item: False) -> Intake:
    return Intake(items, service_at(), threading.Event(), is_done)


def numbers(taken: Intake) -> list[int | None]:
    return [each.item.line for each in taken.take()]


def test_four_reports_are_taken_together_in_their_order() -> None:
    taken = intake(lines(*"abcdef"))

    assert [numbers(taken) for _ in range(3)] == [[1, 2, 3, 4], [5, 6], []]


def test_large_reports_are_taken_alone() -> None:
    taken = intake(lines(*"ab", conclusion="x" * 262_144))

    assert [numbers(taken) for _ in range(3)] == [[1], [2], []]


def test_reports_are_taken_together_up_to_a_quarter_of_a_megabyte() -> None:
    taken = intake(lines(*"abcd", conclusion="x" * 150_000))

    assert [numbers(taken) for _ in range(3)] == [[1, 2], [3, 4], []]


def test_two_threads_never_read_the_source_at_once() -> None:
    found: list[list[int | None]] = []

    def reading() -> Iterator[Item]:
        for item in lines(*"abcdefgh"):
            if item.line == 1:  # another thread comes while this one reads
                other.start()
                other.join(0.1)
            yield item

    taken = intake(reading())
    other = threading.Thread(target=lambda: found.append(numbers(taken)))
    found.append(numbers(taken))
    other.join(30)

    assert len(found) == 2
    assert sorted(line or 0 for group in found for line in group) == list(range(1, 9))


def test_a_report_is_taken_with_what_is_to_be_sent() -> None:
    (only,) = intake(lines("a")).take()

    assert only.registration is not None
    assert only.registration.type_name == "DiagnosticReport"
    assert json.loads(only.registration.body)["resourceType"] == "Parameters"
    assert only.problem == ""


def test_what_is_done_is_counted_and_left_out() -> None:
    taken = intake(lines(*"abc"), is_done=lambda item: item.line != 2)

    assert (numbers(taken), numbers(taken), taken.skipped) == ([2], [], 2)


def test_nothing_is_taken_after_a_stop() -> None:
    taken = intake(lines(*"abc"))
    taken.stopped.set()

    assert (numbers(taken), taken.skipped) == ([], 0)


def test_a_report_that_is_no_json_has_a_problem_and_stops_no_other() -> None:
    wrong = Item(file=FOLDER / "a.ndjson", base=FOLDER, line=9, raw=b"{")

    first, second = intake(iter([wrong, *lines("a")])).take()

    assert (first.registration, bool(first.problem)) == (None, True)
    assert second.registration is not None


def test_a_problem_of_an_item_is_that_of_what_is_taken() -> None:
    wrong = Item(file=FOLDER / "a.json", base=FOLDER, problem="leads out of the folder")

    (only,) = intake(iter([wrong])).take()

    assert (only.item, only.registration, only.problem) == (wrong, None, wrong.problem)


def test_a_missing_file_has_a_problem() -> None:
    (only,) = intake(iter([Item(file=FOLDER / "a.json", base=FOLDER)])).take()

    assert only.problem == "cannot be read: No such file or directory"


def test_a_file_that_the_system_does_not_give_is_a_problem_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(item: Item, _service: Service) -> Submission:
        raise OSError(5, "Input/output error", str(item.file))

    monkeypatch.setattr(module, "submission_of", fail)

    (one,) = intake(lines("a")).take()

    assert (one.registration, one.problem) == (None, "cannot be read: Input/output error")
