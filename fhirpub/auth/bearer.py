"""The access token in the header Authorization: one form of it is accepted (D-19)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fhirpub.auth import refusals

_BEARER = re.compile(r"bearer ([A-Za-z0-9\-._~+/=]+)", re.IGNORECASE)
_EMPTY = re.compile(r"\s*(?:bearer\s*)?", re.IGNORECASE)
_BASIC = re.compile(r"\s*basic\b.*", re.IGNORECASE | re.DOTALL)


def bearer_token(authorization: Sequence[str]) -> str:
    """Return the token, from the value of every header. Raises NotAuthenticated."""
    if not authorization:
        raise refusals.no_token()
    if len(authorization) > 1:
        raise refusals.several_headers()
    match = _BEARER.fullmatch(authorization[0])
    if match is None:
        if _BASIC.fullmatch(authorization[0]):
            raise refusals.basic()
        sent = _EMPTY.fullmatch(authorization[0]) is None
        raise refusals.malformed("not one Bearer token", token_sent=sent)
    return match[1]
