"""What a tenant may see of an attempt."""

from __future__ import annotations

import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.webhooks.policy.outcome import FAILURES, WITHHELD, Outcome, Reason

REASONS = st.sampled_from([*typing.get_args(Reason)])
FAILED = st.builds(
    Outcome,
    reason=REASONS,
    duration=st.integers(0, 20_000),
    dialled=st.just(("10.0.0.1",)),
    private=st.sampled_from([True]),
)
ANSWERED = st.builds(
    Outcome,
    status=st.integers(100, 599),
    duration=st.integers(0, 20_000),
    dialled=st.just(("10.0.0.1",)),
    private=st.sampled_from([True]),
    answer=st.binary(max_size=9),
    retry_after=st.floats(0, 9),
    wish=st.sampled_from([None, "disable"]),
)


@given(outcome=FAILED, verified=st.booleans())
def test_every_failure_at_a_private_address_is_the_same(
    outcome: Outcome, *, verified: bool
) -> None:
    shown = outcome.disclosed(verified=verified, milliseconds=15_000)

    assert shown == Outcome(reason=WITHHELD, duration=15_000)


@given(ANSWERED)
def test_a_private_answer_is_for_a_verified_endpoint_only(outcome: Outcome) -> None:
    hidden = outcome.disclosed(verified=False, milliseconds=15_000)

    assert outcome.disclosed(verified=True, milliseconds=15_000) is outcome
    assert hidden == Outcome(reason=WITHHELD, duration=15_000)


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize(
    "outcome", [Outcome(status=404, answer=b"x"), Outcome(reason="E_TLS", dialled=("8.8.8.8",))]
)
def test_what_comes_of_a_public_address_is_shown(outcome: Outcome, *, verified: bool) -> None:
    assert outcome.disclosed(verified=verified, milliseconds=15_000) is outcome


def test_metrics_keep_the_cause() -> None:
    assert WITHHELD not in FAILURES
    assert Outcome(reason="E_CONNECT", private=True).word == "E_CONNECT"


@pytest.mark.parametrize(
    ("status", "word"), [(200, "2xx"), (399, "3xx"), (400, "4xx"), (503, "5xx")]
)
def test_the_word_of_an_answer_is_the_class_of_its_status(status: int, word: str) -> None:
    assert Outcome(status=status).word == word


@pytest.mark.parametrize(
    ("status", "delivered"), [(0, False), (199, False), (200, True), (299, True), (300, False)]
)
def test_an_event_is_delivered_by_an_answer_of_2xx(status: int, *, delivered: bool) -> None:
    assert Outcome(status=status).delivered is delivered


def test_the_reasons_of_failures_are_those_that_receivers_and_alarms_know() -> None:
    assert (
        *("E_BLOCKED_ADDRESS", "E_CONNECT", "E_DNS", "E_INTERNAL", "E_MALFORMED", "E_NO_SINK"),
        *("E_REJECTED", "E_RESET", "E_SINK", "E_TIMEOUT", "E_TLS", "3xx", "4xx", "5xx"),
    ) == FAILURES
    assert WITHHELD == "E_PRIVATE_NETWORK"
