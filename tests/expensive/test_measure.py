"""What is measured of a computation is what it costs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from fhirpub.errors import InvalidContent
from fhirpub.fhir.strict_json import dumps
from fhirpub.problems import ContentProblem
from tests.bodies import register_body
from tests.expensive import targets
from tests.expensive.bounds import HEAD, of_body
from tests.expensive.measure import Work, count_calls, grows_faster, measure, trace_memory

_BODY = dumps(register_body("A-1"))


def of_calls(*steps: int) -> Work:
    """Return a computation with so many calls in each step."""

    def work() -> Iterator[None]:
        for count in steps:
            for _ in range(count):
                abs(-1)
            yield

    return work


def compared_with_all(size: int) -> Work:
    """Return a computation that compares each of its values with each other."""

    def work() -> Iterator[None]:
        values = list(range(size))
        yield
        assert sum(value in values for value in values) == size

    return work


def test_calls_are_counted_the_same_each_time() -> None:
    work = targets.registration(_BODY)
    measure(work)

    assert count_calls(work) == count_calls(work)


def test_the_largest_step_is_found() -> None:
    calls, of_a_step = count_calls(of_calls(10, 1_000, 10))

    assert calls > 1_020
    assert 1_000 < of_a_step < 1_010


def test_the_most_memory_at_a_time_is_found() -> None:
    def work() -> Iterator[None]:
        assert len(bytearray(1_000_000)) == 1_000_000
        yield
        assert len(bytearray(1_000_000)) == 1_000_000

    assert 1_000_000 <= trace_memory(work) < 1_100_000


def test_a_refusal_is_the_end_of_a_computation() -> None:
    def work() -> Iterator[None]:
        yield
        raise InvalidContent.because("wrong", details=ContentProblem.VALUE_INVALID)

    assert count_calls(work)[0] < 50


def test_a_registration_has_a_cost() -> None:
    cost = measure(targets.registration(_BODY))

    assert cost.calls > cost.step_calls > 100
    assert cost.memory > len(_BODY)
    assert cost.seconds > cost.step_seconds > 0


def test_too_many_calls_in_one_step_exceed_the_bounds() -> None:
    work = of_calls(200_000)

    assert of_body(b"").exceeded(work, measure(work), 0) == ["calls of a step"]


def test_memory_that_another_thread_has_taken_once_exceeds_no_bounds() -> None:
    work = of_calls(100)
    cost = replace(measure(work), memory=10_000_000)

    assert HEAD.exceeded(work, cost, 0) == []


def test_memory_that_is_taken_each_time_exceeds_the_bounds() -> None:
    def work() -> Iterator[None]:
        yield
        assert len(bytearray(1_000_000)) == 1_000_000

    assert HEAD.exceeded(work, measure(work), 0) == ["memory"]


def test_a_regular_expression_that_backtracks_exceeds_the_bounds() -> None:
    hostile = "a" * 23  # 0.4 s, eight times the bound

    def work() -> Iterator[None]:
        assert re.fullmatch("(a|a)*b", hostile) is None
        yield

    assert HEAD.exceeded(work, measure(work), 0) == ["time"]


def test_a_quadratic_loop_grows_faster_than_its_size() -> None:
    assert grows_faster(compared_with_all, small=200, times=40, slack=4)


def test_a_linear_loop_does_not() -> None:
    assert not grows_faster(of_calls, small=20_000, times=12, slack=4)
