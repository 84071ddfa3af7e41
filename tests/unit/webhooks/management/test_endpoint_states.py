"""What becomes of an endpoint, and who may have it so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.errors import BrokenRule
from fhirpub.problems import OperationProblem
from fhirpub.storage.webhook_contract import EndpointSecret, EndpointState
from fhirpub.testing.contracts.webhooks.records import an_endpoint
from fhirpub.webhooks.management import endpoint_states as states

ACTIVE = an_endpoint(state="active", secrets=(EndpointSecret(b"sealed"),), token=b"token")
PULLED = replace(ACTIVE, url="pull:lab", state="paused")


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


# First states


@pytest.mark.parametrize(
    ("url", "trusted", "state"),
    [
        ("https://lab.example/hook", True, "active"),
        ("https://lab.example/hook", False, "unverified"),
        ("pull:lab", True, "paused"),
        ("pull:lab", False, "paused"),
    ],
)
def test_a_new_endpoint_is_active_only_where_nothing_has_to_be_proved(
    url: str, *, trusted: bool, state: str
) -> None:
    assert states.first_state(url, trusted=trusted) == state


# Changes


def test_an_endpoint_that_moves_keeps_all_but_its_state() -> None:
    gone = replace(ACTIVE, state="disabled", why="gone")

    assert states.moved(gone) == replace(gone, state="unverified", why="")


@pytest.mark.parametrize("why", [states.OPERATOR, states.UNPROVEN])
def test_an_endpoint_that_the_operator_disabled_stays_so_when_it_moves(why: str) -> None:
    disabled = replace(ACTIVE, state="disabled", why=why)

    assert states.moved(disabled) == replace(disabled, why=states.UNPROVEN)


def test_of_a_deleted_endpoint_the_rest_is_left() -> None:
    assert states.deleted(ACTIVE) == replace(ACTIVE, state="deleted", secrets=(), token=b"")


@pytest.mark.parametrize("state", ["active", "paused"])
def test_an_active_endpoint_can_be_paused_and_paused_again(state: EndpointState) -> None:
    endpoint = replace(ACTIVE, state=state)

    assert states.paused(endpoint) == replace(ACTIVE, state="paused")


@pytest.mark.parametrize("state", ["unverified", "disabled", "deleted"])
def test_what_is_not_active_cannot_be_paused(state: EndpointState) -> None:
    with pytest.raises(BrokenRule, match=rf"^is {state}; only an active one can be paused$") as no:
        states.paused(replace(ACTIVE, state=state))

    (issue,) = no.value.issues
    assert (issue.details, issue.code) == (OperationProblem.ENDPOINT_STATE, "business-rule")


def test_what_is_read_by_its_client_cannot_be_paused() -> None:
    with pytest.raises(BrokenRule, match=r"^is read by its client; nothing is sent to it$"):
        states.paused(PULLED)


def test_to_what_is_sent_may_be_sent() -> None:
    states.refuse_unsent(ACTIVE)


@pytest.mark.parametrize(
    ("state", "why", "expected"),
    [
        ("active", "", states.OPERATOR),
        ("paused", "", states.OPERATOR),
        ("disabled", "gone", states.OPERATOR),
        ("disabled", states.OPERATOR, states.OPERATOR),
        ("unverified", "", states.UNPROVEN),
        ("disabled", states.UNPROVEN, states.UNPROVEN),
    ],
)
def test_the_operator_disables_and_it_is_kept_whether_it_was_verified(
    state: EndpointState, why: str, expected: str
) -> None:
    endpoint = replace(ACTIVE, state=state, why=why)

    assert states.disabled(endpoint) == replace(ACTIVE, state="disabled", why=expected)


# Enabling


@pytest.mark.parametrize("state", ["active", "paused"])
def test_what_is_active_or_paused_is_enabled_whatever_it_was_before(state: EndpointState) -> None:
    endpoint = replace(ACTIVE, state=state)
    known = replace(ACTIVE, state="unverified")

    assert states.enabled(endpoint, known=known, operator=False) == ACTIVE


def test_what_was_disabled_since_it_was_gone_is_enabled_without_a_reason() -> None:
    gone = replace(ACTIVE, state="disabled", why="gone")

    assert states.enabled(gone, known=gone, operator=False) == ACTIVE


def test_what_is_read_by_its_client_is_enabled_as_paused() -> None:
    disabled = replace(PULLED, state="disabled", why=states.OPERATOR)

    enabled = states.enabled(disabled, known=disabled, operator=True)

    assert enabled == replace(PULLED, state="paused", why="")


def test_what_was_deleted_since_it_was_read_is_not_enabled() -> None:
    with pytest.raises(BrokenRule, match=r"^has become deleted meanwhile$"):
        states.enabled(states.deleted(ACTIVE), known=ACTIVE, operator=True)


@pytest.mark.parametrize("why", [states.OPERATOR, states.UNPROVEN])
def test_a_tenant_enables_nothing_that_the_operator_disabled(why: str) -> None:
    disabled = replace(ACTIVE, state="disabled", why=why)

    with pytest.raises(
        BrokenRule, match=r"^was disabled by the operator, who alone can enable it$"
    ):
        states.require_permission(disabled, operator=False)
    states.require_permission(disabled, operator=True)


@pytest.mark.parametrize("why", ["", "gone", "operator, "])
def test_a_tenant_enables_what_was_disabled_otherwise(why: str) -> None:
    states.require_permission(replace(ACTIVE, state="disabled", why=why), operator=False)


def test_what_was_unverified_when_it_was_disabled_has_no_reason_any_more() -> None:
    disabled = replace(ACTIVE, state="disabled", why=states.UNPROVEN)

    enabled = states.enabled(disabled, known=disabled, operator=True)

    assert enabled == replace(ACTIVE, state="unverified", why="")


# Verification


@pytest.mark.parametrize("state", ["active", "paused", "disabled", "deleted"])
def test_a_challenge_changes_only_what_waits_for_it(state: EndpointState) -> None:
    endpoint = replace(ACTIVE, state=state)

    assert states.verified(endpoint, url=endpoint.url) is endpoint


def test_a_challenge_that_was_passed_changes_nothing_but_the_state() -> None:
    waiting = replace(ACTIVE, state="unverified")

    assert states.verified(waiting, url=waiting.url) == ACTIVE


@pytest.mark.parametrize(
    ("state", "why", "expected"),
    [
        ("active", "", True),
        ("paused", "", True),
        ("disabled", "gone", True),
        ("disabled", states.OPERATOR, True),
        ("disabled", states.UNPROVEN, False),
        ("unverified", "", False),
    ],
)
def test_an_endpoint_is_verified_unless_it_waits_for_its_challenge(
    state: EndpointState, why: str, *, expected: bool
) -> None:
    assert states.is_verified(replace(ACTIVE, state=state, why=why)) is expected
