"""Why a request authenticates no client: a reason for the log, and a sentence for the caller.

Only of a token whose signature is verified the caller is given more than that it is not good
(D-18). The sentences are sent as ``error_description`` as well (RFC 6750, 3), which allows
neither quotation marks nor a backslash.
"""

from __future__ import annotations

from fhirpub.errors import NotAuthenticated
from fhirpub.problems import RequestProblem

_FORM = "the header Authorization must be the word Bearer, one space and the access token"


def no_token() -> NotAuthenticated:
    """Refuse a request without the header."""
    return NotAuthenticated(
        "no Authorization header",
        f"the request has no access token: {_FORM}",
        RequestProblem.TOKEN_MISSING,
        token_sent=False,
    )


def malformed(reason: str, *, token_sent: bool, said: str = _FORM) -> NotAuthenticated:
    """Refuse a header from which no token can be taken."""
    return NotAuthenticated(
        reason, said, RequestProblem.AUTHORIZATION_MALFORMED, token_sent=token_sent
    )


def basic() -> NotAuthenticated:
    """Refuse the credentials of a client in place of a token."""
    said = "HTTP Basic is for the token endpoint only: send Bearer and the access token here"
    return malformed("HTTP Basic", token_sent=False, said=said)


def several_headers() -> NotAuthenticated:
    """Refuse a request with several tokens."""
    said = "there is more than one header Authorization: send exactly one"
    return malformed("several Authorization headers", token_sent=True, said=said)


def unproved(reason: str) -> NotAuthenticated:
    """Return the one refusal of every token whose signature proves nothing (D-18)."""
    return _token(
        reason,
        "the access token is incomplete or not of this service: request a new one",
        RequestProblem.TOKEN_INVALID,
    )


def expired() -> NotAuthenticated:
    """Refuse a token of ours whose time is over."""
    return _token(
        "expired", "the access token has expired: request a new one", RequestProblem.TOKEN_EXPIRED
    )


def not_yet_valid(claim: str) -> NotAuthenticated:
    """Refuse a token of ours from the future."""
    said = "the access token is not valid yet: compare the clocks of the services"
    return _token(f"{claim} lies ahead", said, RequestProblem.TOKEN_INVALID)


def misdirected(reason: str, what: str) -> NotAuthenticated:
    """Refuse a token of ours for another issuer, audience or environment."""
    said = f"the access token is for another {what}: request one from this service"
    return _token(reason, said, RequestProblem.TOKEN_MISDIRECTED)


def unbound() -> NotAuthenticated:
    """Refuse a token of ours without the certificate that it was requested with (RFC 8705)."""
    said = "the access token was requested with a client certificate: send it with the same one"
    return _token("certificate", said, RequestProblem.TOKEN_INVALID)


def lacks(claim: str) -> NotAuthenticated:
    """Refuse a token of ours without a claim, or with another value than we write."""
    said = "the access token lacks a claim that this service needs: request a new one"
    return _token(claim, said, RequestProblem.TOKEN_INVALID)


def revoked() -> NotAuthenticated:
    """Refuse a token of ours that its client or an operator has revoked."""
    said = "the access token was revoked: request a new one"
    return _token("revoked", said, RequestProblem.TOKEN_REVOKED)


def unknown_holder(reason: str) -> NotAuthenticated:
    """Refuse a token of another issuer whose claims are those of no client or tenant of it."""
    said = "the access token is of no client that its issuer may have here: ask the operator"
    return _token(reason, said, RequestProblem.TOKEN_INVALID)


def disabled() -> NotAuthenticated:
    """Refuse a token of ours whose client or tenant is disabled, or not here any more."""
    said = "the client of the access token, or its organization, is disabled: ask the operator"
    return _token("client or tenant", said, RequestProblem.CLIENT_DISABLED)


def _token(reason: str, said: str, details: RequestProblem) -> NotAuthenticated:
    return NotAuthenticated(reason, said, details, token_sent=True)
