"""How many attempts an endpoint may begin, so that slots stay free for others."""

from __future__ import annotations

import pytest

from fhirpub.webhooks.dispatch.dispatcher import _part


@pytest.mark.parametrize(
    ("free", "of_endpoint", "part"),
    [(200, 0, 50), (200, 49, 1), (200, 50, 0), (8, 0, 2), (7, 0, 1), (1, 0, 1), (1, 1, 0)],
)
def test_an_endpoint_gets_a_quarter_of_the_free_slots_and_at_least_one(
    free: int, of_endpoint: int, part: int
) -> None:
    assert _part(free, of_endpoint, of_endpoint) == part


@pytest.mark.parametrize(
    ("free", "of_tenant", "part"),
    [(100, 100, 25), (51, 149, 1), (50, 150, 0), (50, 151, -1), (4, 3, 1), (4, 9, 0)],
)
def test_a_tenant_gets_three_quarters_of_all_slots(free: int, of_tenant: int, part: int) -> None:
    assert _part(free, 0, of_tenant) == part
