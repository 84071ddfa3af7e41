"""So many requests of each client in a minute, and no more."""

from __future__ import annotations

import pytest

from fhirpub.errors import Throttled
from fhirpub.testing.clock import HandClock
from fhirpub.web.admission.rate_limit import RateLimit

MINUTE_START = 1_795_000_020_000


def admitted(limit: RateLimit, client: str, number: int) -> int:
    """Return how many of some requests are admitted."""
    count = 0
    for _ in range(number):
        try:
            limit.count(client)
        except Throttled:
            continue
        count += 1
    return count


def test_each_client_has_as_many_requests_as_the_limit_in_each_minute() -> None:
    clock = HandClock(MINUTE_START)
    limit = RateLimit(3, clock)

    assert [admitted(limit, client, 5) for client in ("one", "two")] == [3, 3]
    clock.forward(seconds=60)
    assert admitted(limit, "one", 5) == 3


def test_without_a_limit_nothing_is_counted() -> None:
    assert admitted(RateLimit(0, HandClock(MINUTE_START)), "one", 1_000) == 1_000


@pytest.mark.parametrize(("into", "seconds"), [(0, 61), (50_000, 11), (59_000, 2), (59_999, 1)])
def test_a_client_waits_until_the_next_minute_has_begun(into: int, seconds: int) -> None:
    limit = RateLimit(1, HandClock(MINUTE_START + into))
    limit.count("one")

    with pytest.raises(Throttled) as refused:
        limit.count("one")

    assert refused.value.retry_after == seconds
