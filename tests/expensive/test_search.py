"""No request of 64 KiB costs more than its length allows: a search for those that cost most.

What is counted is the same on each machine (`tests/expensive/measure.py`). With FHIRPUB_TEST_FULL
there are far more examples, new ones each time; the worst are printed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings, target
from hypothesis import strategies as st

from fhirpub.config.loader import variable
from fhirpub.interactions.patch_formats import Form
from tests.expensive import targets
from tests.expensive.bounds import HEAD, QUERY, Bounds, of_body
from tests.expensive.http_messages import heads, queries
from tests.expensive.json_bodies import (
    Shape,
    bodies_of_few_values,
    bodies_of_many_values,
    numbers,
    updates,
)
from tests.expensive.measure import Work, measure
from tests.expensive.xml_bodies import xml_bodies

FULL = bool(variable("FHIRPUB_TEST_FULL"))
SIZES = st.sampled_from([targets.LARGEST - 2_600, 16_000, 5_000])
_KEPT = 5
_worst: dict[str, list[tuple[float, str]]] = {}


def searched(examples: int) -> settings:
    """Return the settings for a number of examples; unless full, the same ones each time."""
    return settings(
        max_examples=examples * 40 if FULL else examples // 4,
        derandomize=not FULL,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate, Phase.target, *((Phase.shrink,) if FULL else ())),
    )


@pytest.fixture(autouse=True, scope="module")
def worst() -> Iterator[None]:
    """Print the worst of a long search."""
    yield
    for name, found in _worst.items() if FULL else ():
        for share, text in sorted(found, reverse=True):
            print(f"{name} {share:.2f} {text}")  # noqa: T201


def check(name: str, text: bytes, work: Work, bounds: Bounds) -> None:
    """Assert that a request stays within its bounds, and let the search climb towards them."""
    cost = measure(work)
    shares = dict(bounds.shares(cost, len(text)))
    if FULL:  # else the examples would not be the same each time
        shares["time"] = bounds.share_of_time(cost)
    for metric, share in shares.items():
        target(share, label=metric)
        kept = _worst.setdefault(f"{name} {metric}", [])
        heapq.heappush(kept, (share, f"{len(text)} B: {cost} {text[-400:]!r}"))
        if len(kept) > _KEPT:
            heapq.heappop(kept)
    assert bounds.exceeded(work, cost, len(text)) == []


@given(shape=bodies_of_few_values() | numbers(), size=SIZES)
@searched(40)
def test_a_body_of_few_values_costs_no_more_than_its_length_allows(
    shape: Shape, size: int
) -> None:
    body = shape(size)

    check("few values", body, targets.registration(body), of_body(body))


@given(shape=bodies_of_many_values(), size=SIZES)
@searched(10)
def test_a_body_of_many_values_costs_no_more_than_its_length_allows(
    shape: Shape, size: int
) -> None:
    body = shape(size)

    check("many values", body, targets.registration(body), of_body(body))


@given(form_and_shape=updates(), size=SIZES)
@searched(20)
def test_an_update_costs_no_more_than_its_length_allows(
    form_and_shape: tuple[Form, Shape], size: int
) -> None:
    form, shape = form_and_shape
    body = shape(size)

    check("update", body, targets.update(body, form), of_body(body))


@given(shape=xml_bodies(), size=SIZES)
@searched(30)
def test_a_body_of_xml_costs_no_more_than_its_length_allows(shape: Shape, size: int) -> None:
    body = shape(size)

    check("XML", body, targets.registration(body, is_xml=True), of_body(body))


@given(shape=heads(), size=SIZES)
@searched(20)
def test_a_head_costs_no_more_than_its_length_allows(shape: Shape, size: int) -> None:
    head = shape(size)

    check("head", head, targets.head(head), HEAD)


@given(shape=queries(), size=SIZES, type_name=st.sampled_from(["DiagnosticReport", "Observation"]))
@searched(40)
def test_a_query_costs_no_more_than_its_length_allows(
    shape: Callable[[int], str], size: int, type_name: str
) -> None:
    text = shape(size)

    check("query", text.encode(), targets.query(text, type_name), QUERY)
