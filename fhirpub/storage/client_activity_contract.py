"""The promises of a store about what clients did: revoked tokens, and when they were last used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RevokedToken:
    """An access token that is refused although it has not expired.

    Attributes:
        client: The id of the client to which the token was issued.
        jti: The id of the token (RFC 7519, section 4.1.7).
        until: When the token expires, in milliseconds: from then on it is refused anyway.
    """

    client: str
    jti: str
    until: int


class ClientActivity(ABC):
    """Revoked tokens and the last use of clients. Every method may raise StoreUnavailable."""

    @abstractmethod
    async def revoke_token(self, token: RevokedToken, *, most: int) -> bool:
        """Record that a token is revoked, durably; to repeat it changes nothing.

        Args:
            token: The token.
            most: How many revoked tokens a client may have. Concurrent calls may exceed it by
                their number.

        Returns:
            Whether the token is recorded. False means that the client has ``most`` others, and
            that nothing was changed.
        """

    @abstractmethod
    async def revoked_tokens(self, client_id: str) -> Sequence[RevokedToken]:
        """Return the revoked tokens of a client that were not swept.

        Returns:
            The tokens, those first that expire first.
        """

    @abstractmethod
    async def sweep_revoked_tokens(self, *, before: int) -> int:
        """Delete revoked tokens whose ``until`` is earlier.

        Args:
            before: The time in milliseconds.

        Returns:
            The number of tokens deleted.
        """

    @abstractmethod
    async def put_client_uses(self, uses: Mapping[str, int]) -> None:
        """Record when clients were used; of several times of one client the latest remains.

        Args:
            uses: Times in milliseconds by the ids of clients.
        """

    @abstractmethod
    async def client_uses(self) -> Mapping[str, int]:
        """Return when clients were last used.

        Returns:
            Times in milliseconds by the ids of clients; those never used are omitted.
        """
