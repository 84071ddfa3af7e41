"""The promises of a store about what clients did: revoked tokens, used assertions, last uses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto


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


@dataclass(frozen=True, slots=True)
class UsedAssertion:
    """An assertion by which a client, or another holder of a key, has authenticated.

    Attributes:
        owner: The signer: the id of a client, or a name that no client can have.
        jti: The id of the assertion (RFC 7523, section 3), unique for its owner.
        until: When it expires, in milliseconds: from then on it is refused anyway.
    """

    owner: str
    jti: str
    until: int


class AssertionUse(Enum):
    """What came of the use of an assertion."""

    FIRST = auto()
    """It was not used before, and is recorded now."""
    REPEATED = auto()
    """It was used before."""
    TOO_MANY = auto()
    """Its owner has used as many as it may before they have expired; it is not recorded."""


class ClientActivity(ABC):
    """What clients did. Every method may raise StoreUnavailable."""

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
    async def use_assertion(self, used: UsedAssertion, *, now: int, most: int) -> AssertionUse:
        """Record durably that an assertion is used, unless it was used before.

        Args:
            used: The assertion.
            now: The current time in milliseconds.
            most: How many used assertions that have not expired an owner may have. Concurrent
                calls may exceed it by their number.

        Returns:
            What came of it. Of concurrent calls for one assertion, of all processes, exactly one
            returns `FIRST`. After StoreUnavailable the assertion may be recorded: it must not be
            accepted, and its owner needs another.
        """

    @abstractmethod
    async def sweep_used_assertions(self, *, before: int) -> int:
        """Delete used assertions whose ``until`` is earlier.

        Args:
            before: The time in milliseconds.

        Returns:
            The number of assertions deleted.
        """

    @abstractmethod
    async def used_assertions(
        self, *, after: tuple[str, str] = ("", ""), limit: int = 1_000
    ) -> Sequence[UsedAssertion]:
        """Return used assertions that were not swept, in the order of (owner, jti).

        Args:
            after: Return only assertions behind this owner and id, both ordered by characters.
            limit: The maximum number of assertions.

        Returns:
            The assertions; empty only if there are no more.
        """

    @abstractmethod
    async def put_used_assertions(self, used: Collection[UsedAssertion]) -> None:
        """Record that assertions were used, however many an owner has; for copies.

        Args:
            used: The assertions. Of several ends of one assertion the latest remains.
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
