"""Tokens that were verified, so that the next request with one costs a look into a dictionary."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from fhirpub.auth.caller import Caller
from fhirpub.auth.jwt import Claims


@dataclass(frozen=True, slots=True)
class CachedToken:
    """What a token proved. ``caller`` counts from ``since`` until ``until``, then look again.

    ``claims`` are None if it is of another issuer: it is verified again from its text.
    """

    kid: str
    claims: Claims | None
    caller: Caller
    since: int
    until: int


class TokenCache:
    """The latest tokens, keyed by their whole text; the one not used for longest goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tokens: OrderedDict[str, CachedToken] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, token: str) -> CachedToken | None:
        """Return what a token proved, which may be out of date by now."""
        found = self._tokens.get(token)
        if found is not None:
            self._tokens.move_to_end(token)
        return found

    def keep(self, token: str, verified: CachedToken) -> None:
        """Remember a token."""
        self._tokens[token] = verified
        self._tokens.move_to_end(token)
        if len(self._tokens) > self._most:
            self._tokens.popitem(last=False)

    def forget_client(self, client_id: str) -> None:
        """Make the next look-up of each token of a client start from the text."""
        for token in [
            token for token, known in self._tokens.items() if known.caller.client_id == client_id
        ]:
            del self._tokens[token]

    def forget(self, token: str) -> None:
        """Make the next look-up start from the text."""
        self._tokens.pop(token, None)
