"""Other issuers whose access tokens are accepted, such as the identity provider of a hospital."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


class TokenRejected(Exception):
    """The claims of a token are those of no client here.

    Args:
        reason: A fixed text for the log. It must not contain a value of a claim.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenHolder:
    """The sender of a request with a token of another issuer.

    Attributes:
        client: The client's id at its issuer: 1 to 128 printable ASCII characters without blanks.
        tenant: The id of the tenant that it acts for, one of `TokenIssuer.tenants`.
        scopes: Its SMART scopes, at most 50. Those beyond `TokenIssuer.scopes` are not granted.
    """

    client: str
    tenant: str
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenIssuer:
    """An issuer of access tokens; `fhirpub.testing` has its promises in ``TokenIssuerContract``.

    The service finds its keys by OpenID Connect Discovery, and accepts a token that is a JWT if
    one of them signed it, its ``iss`` and ``aud`` are right and it has not expired. Then it asks
    ``identify``, and holds the answer to what is declared here.

    Attributes:
        name: A short name. The client ``x`` is ``name:x`` in the audit trail, quotas and logs.
        url: The issuer, exactly as in ``iss``: a URL with https.
        audience: What ``aud`` must name: this service at the issuer.
        tenants: The ids of the tenants that its tokens may act for.
        scopes: The SMART scopes that its tokens may have at most.
        identify: A pure function of the claims of a verified token. It is called on the event
            loop, so it answers at once from memory. It raises `TokenRejected` for claims of
            no client.
    """

    name: str
    url: str
    audience: str
    tenants: tuple[str, ...]
    scopes: tuple[str, ...]
    identify: Callable[[Mapping[str, Any]], TokenHolder]
