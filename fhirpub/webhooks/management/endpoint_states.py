"""The states of an endpoint: which one follows a change, and who may bring it about."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.errors import BrokenRule
from fhirpub.problems import OperationProblem
from fhirpub.storage.webhook_contract import Endpoint, EndpointState
from fhirpub.webhooks.transport.pull_url import is_pull

OPERATOR = "operator"
UNPROVEN = "operator, unverified"
"""Why an endpoint is disabled that only the operator can enable: one that had been verified where
it is now, and one that had not."""


def first_state(url: str, *, trusted: bool) -> EndpointState:
    """Return the state of a new endpoint. One that is read by its client stays paused (ADR 47)."""
    if is_pull(url):
        return "paused"
    return "active" if trusted else "unverified"


def moved(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint whose URL was changed: it has to be verified there."""
    if _is_operators(endpoint):
        return replace(endpoint, why=UNPROVEN)
    return replace(endpoint, state="unverified", why="")


def deleted(endpoint: Endpoint) -> Endpoint:
    """Return what is left of an endpoint."""
    return replace(endpoint, state="deleted", secrets=(), token=b"")


def paused(endpoint: Endpoint) -> Endpoint:
    """Return a paused endpoint. Raises BrokenRule unless it was active."""
    refuse_unsent(endpoint)
    if endpoint.state not in ("active", "paused"):
        raise refuse_state(f"is {endpoint.state}; only an active one can be paused")
    return replace(endpoint, state="paused")


def disabled(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that the operator has disabled."""
    why = OPERATOR if is_verified(endpoint) else UNPROVEN
    return replace(endpoint, state="disabled", why=why)


def enabled(endpoint: Endpoint, *, known: Endpoint, operator: bool) -> Endpoint:
    """Return an active endpoint, or one that is verified next.

    Raises BrokenRule: only the operator may, or it has changed since it was ``known``.
    """
    require_permission(endpoint, operator=operator)
    if endpoint.why == UNPROVEN:
        return replace(endpoint, state="unverified", why="")
    if endpoint.state not in ("active", "paused", known.state):
        raise refuse_state(f"has become {endpoint.state} meanwhile")
    if is_pull(endpoint.url):
        return replace(endpoint, state="paused", why="")
    return replace(endpoint, state="active", why="")


def verified(endpoint: Endpoint, *, url: str) -> Endpoint:
    """Return an active endpoint, if it waits for that and still is where it was verified."""
    proven = endpoint.state == "unverified" and endpoint.url == url
    return replace(endpoint, state="active") if proven else endpoint


def is_verified(endpoint: Endpoint) -> bool:
    """Return whether it passed its challenge where it is now, or the operator vouches for it."""
    return endpoint.state != "unverified" and endpoint.why != UNPROVEN


def require_permission(endpoint: Endpoint, *, operator: bool) -> None:
    """Raise BrokenRule for an endpoint that the operator has disabled, to all others."""
    if _is_operators(endpoint) and not operator:
        raise refuse_state("was disabled by the operator, who alone can enable it")


def refuse_unsent(endpoint: Endpoint) -> None:
    """Raise BrokenRule for an endpoint that is read by its client: nothing is sent to it."""
    if is_pull(endpoint.url):
        raise refuse_state("is read by its client; nothing is sent to it")


def _is_operators(endpoint: Endpoint) -> bool:
    return endpoint.why in (OPERATOR, UNPROVEN)


def refuse_state(rule: str) -> BrokenRule:
    """Return the refusal of what the state of an endpoint does not allow."""
    return BrokenRule.because(rule, details=OperationProblem.ENDPOINT_STATE)
