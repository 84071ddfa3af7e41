"""How much work an explanation may take, and what each visit costs."""

from __future__ import annotations

from typing import Any

from fhirpub.fhir.explanation.work import Work

LEAST = 50_000
PER_VALUE = 16


def visits(work: Work, instance: Any) -> int:
    """How often an instance can be visited until the work is used up."""
    count = 0
    while work.spend(instance):
        count += 1
    return count


def test_a_small_resource_has_the_least_work() -> None:
    names = [{"text": str(each)} for each in range(499)]
    resource = {"name": names}  # 1 + 1 + 499 * 2 values

    assert visits(Work(resource), resource) == LEAST // 1000


def test_a_large_resource_has_work_by_its_values() -> None:
    names = [{"text": str(each)} for each in range(4_999)]
    resource = {"name": names}  # 10,000 values

    assert visits(Work(resource), resource) == PER_VALUE


def test_a_visit_that_begins_with_work_left_is_made() -> None:
    resource = {"name": [{"text": str(each)} for each in range(14_999)]}  # 30,000 values
    work = Work(resource)
    short = {"part": [0] * 7}

    assert visits(work, short) == PER_VALUE * 30_000  # an object of another resource counts as 1


def test_an_object_costs_all_values_within_it() -> None:
    inner = {"coding": [{"code": str(each)} for each in range(499)]}  # 1,000 values
    work = Work({"code": inner})

    assert visits(work, inner) == LEAST // 1000


def test_a_part_of_an_array_costs_the_values_of_its_items() -> None:
    items = [{"a": 1, "b": 2, "c": 3, "d": 4} for _ in range(100)]  # 5 values each
    work = Work({"item": items})

    assert visits(work, items[:50]) == LEAST // 250


def test_an_item_that_is_a_primitive_costs_one() -> None:
    work = Work({"given": ["A"] * 100})

    assert visits(work, ["A"] * 50) == LEAST // 50


def test_the_last_visit_may_take_more_than_is_left() -> None:
    work = Work({})

    assert visits(work, ["A"] * (LEAST - 1)) == 2


def test_no_work_is_left_once_all_is_spent() -> None:
    work = Work({})

    assert work.spend(["A"] * LEAST)
    assert not work.spend({})
    assert not work.spend([])
