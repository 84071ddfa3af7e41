"""Pages of endpoints as they are written: states, what can be done, and secrets."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.console.pages import endpoints
from tests.unit.console.pages.test_endpoints import BASE, DAYS, ENDPOINT, HOURS, ONE
from tests.unit.console.pages.visiting import a_visit, written

STATS = {
    "by_hour": HOURS,
    "by_day": DAYS,
    "attempts": 24,
    "success_rate": 0.75,
    "breaker": "open",
    "failures_in_a_row": 2,
    "failing_since": "2024-05-01T10:00:00Z",
    "p50_milliseconds": 8,
    "p95_milliseconds": 90,
    "oldest_undelivered": None,
    "deliveries": {"dead": 3},
}
WHOLE = {
    **ENDPOINT,
    "why": "",
    "event_types": ["*"],
    "payload": "standard",
    "ordering": "per_resource",
    "created": "2024-05-01T10:00:00Z",
    "old_secrets_until": [],
}


async def page_of(**changes: Any) -> str:
    """Return the written page of an endpoint without deliveries."""
    answers = {
        ONE: {**WHOLE, **changes},
        f"{ONE}/stats": STATS,
        f"{ONE}/deliveries": {"deliveries": []},
    }
    return written(await endpoints.show_endpoint(a_visit(answers, "e1")))


async def test_an_endpoint_is_written_with_how_it_does() -> None:
    page = await page_of()

    assert '<span class="badge good">active</span>' in page
    assert "The circuit breaker is open: after 2 failures in a row" in page
    assert "It has been failing since 2024-05-01 10:00:00 UTC." in page
    assert "75% succeeded" in page
    assert "8 ms</span> median, 95% within 90 ms" in page
    assert '<a href="/console/endpoints/e1/deliveries?status=dead">dead</a>: 3' in page


@pytest.mark.parametrize(
    ("changes", "acts"),
    [
        ({"state": "active"}, {"pause", "verify", "test", "delete", "token"}),
        ({"state": "paused"}, {"enable", "verify", "test", "delete", "token"}),
        ({"state": "disabled"}, {"enable", "verify", "test", "delete", "token"}),
        ({"state": "unverified"}, {"verify", "test", "delete", "token"}),
        ({"state": "paused", "url": "pull:lis"}, {"delete"}),
    ],
    ids=["active", "paused", "disabled", "unverified", "read"],
)
async def test_an_endpoint_offers_what_its_state_permits(
    changes: dict[str, str], acts: set[str]
) -> None:
    page = await page_of(**changes)

    places = {
        "pause": "state/pause",
        "enable": "state/enable",
        "verify": "trial/verify",
        "test": "trial/test",
        "token": "rotate/token",
        "delete": "delete",
    }
    assert {name for name, end in places.items() if f'/endpoints/e1/{end}"' in page} == acts


async def test_the_list_is_written_with_the_state_and_reason_of_each() -> None:
    failed = {**WHOLE, "state": "disabled", "why": "it failed for too long"}
    answers = {f"{BASE}/endpoints": {"endpoints": [failed]}}

    page = written(await endpoints.show_list(a_visit(answers)))

    assert '<a href="/console/endpoints/e1">LIS</a>' in page
    assert '<span class="badge bad">disabled</span>' in page
    assert "it failed for too long" in page


async def test_new_secrets_are_written_and_a_missing_one_is_not() -> None:
    new = {**WHOLE, "signing_secret": "whsec_x"}
    visit = a_visit({ONE: WHOLE, f"POST {ONE}/secret:rotate": new}, "e1", "secret")

    page = written(await endpoints.rotate(visit))

    assert "<code>whsec_x</code>" in page
    assert "Bearer token" not in page


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("secret", "For a day, webhooks are signed with both"),
        ("token", "From the next attempt on, the old one is no longer sent."),
    ],
)
async def test_what_becomes_of_the_old_secret_is_written_before_a_rotation(
    kind: str, text: str
) -> None:
    page = written(await endpoints.ask_rotation(a_visit({ONE: WHOLE}, "e1", kind)))

    assert text in page
