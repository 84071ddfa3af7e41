"""What a tenant sees of a private receiver, and what only the operator's log has."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from fhirpub.webhooks.management.disclosure import disclose
from fhirpub.webhooks.policy.outcome import WITHHELD, Outcome

REFUSED = Outcome(reason="E_CONNECT", duration=7, dialled=("10.0.0.1",), private=True)


def disclosed(outcome: Outcome, *, verified: bool = True) -> Outcome:
    return disclose(
        outcome, endpoint="e-1", event_id="evt_1", verified=verified, milliseconds=5_000
    )


@pytest.mark.parametrize("verified", [True, False])
def test_the_outcome_of_a_public_receiver_is_shown_whole(*, verified: bool) -> None:
    public = Outcome(reason="E_CONNECT", duration=7, dialled=("192.0.2.1",))

    with capture_logs() as logs:
        assert disclosed(public, verified=verified) is public

    assert logs == []


def test_a_failure_of_a_private_receiver_took_as_long_as_any() -> None:
    assert disclosed(REFUSED) == Outcome(reason=WITHHELD, duration=5_000)


def test_an_answer_of_a_private_receiver_is_for_verified_endpoints() -> None:
    answered = Outcome(status=500, duration=7, private=True, answer=b"inside")

    assert disclosed(answered) is answered
    assert disclosed(answered, verified=False) == Outcome(reason=WITHHELD, duration=5_000)


def test_what_is_withheld_is_in_the_log_of_the_operator() -> None:
    with capture_logs() as logs:
        disclosed(REFUSED)

    assert logs == [
        {
            "event": "webhook to a private address failed",
            "log_level": "info",
            "endpoint": "e-1",
            "event_id": "evt_1",
            "outcome": "E_CONNECT",
            "milliseconds": 7,
            "dialled": ["10.0.0.1"],
        }
    ]
