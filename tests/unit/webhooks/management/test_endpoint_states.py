"""What becomes of an endpoint, and who may have it so."""

from __future__ import annotations

import pytest

from fhirpub.errors import BrokenRule
from fhirpub.storage.webhook_contract import EndpointSecret
from fhirpub.testing.contracts.webhooks.records import an_endpoint
from fhirpub.webhooks.management import endpoint_states as states

ACTIVE = an_endpoint(state="active", secrets=(EndpointSecret(b"sealed"),), token=b"token")


def test_of_a_deleted_endpoint_no_secret_is_left() -> None:
    deleted = states.deleted(ACTIVE)

    assert (deleted.state, deleted.secrets, deleted.token) == ("deleted", (), b"")


def test_an_endpoint_that_has_moved_is_not_active_before_it_is_verified() -> None:
    assert states.moved(ACTIVE).state == "unverified"


def test_what_the_operator_has_disabled_only_the_operator_enables() -> None:
    disabled = states.disabled(ACTIVE)

    with pytest.raises(BrokenRule, match="operator"):
        states.enabled(disabled, known=disabled, operator=False)

    assert states.enabled(disabled, known=disabled, operator=True).state == "active"


def test_an_unverified_endpoint_that_the_operator_disabled_is_verified_before_it_is_active() -> (
    None
):
    disabled = states.disabled(an_endpoint(state="unverified"))

    assert states.enabled(disabled, known=disabled, operator=True).state == "unverified"


def test_a_challenge_that_was_passed_elsewhere_verifies_nothing() -> None:
    moved = states.moved(ACTIVE)

    assert states.verified(moved, url="https://elsewhere.example").state == "unverified"
    assert states.verified(moved, url=moved.url).state == "active"


def test_an_endpoint_that_was_disabled_meanwhile_is_not_enabled() -> None:
    paused = states.paused(ACTIVE)
    gone = an_endpoint(state="disabled", why="gone")

    with pytest.raises(BrokenRule, match="has become disabled"):
        states.enabled(gone, known=paused, operator=False)
