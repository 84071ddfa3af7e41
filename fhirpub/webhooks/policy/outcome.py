"""The outcome of one delivery attempt, reduced to what the retry decision needs."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Final, Literal

Reason = Literal[
    "E_BLOCKED_ADDRESS",
    "E_CONNECT",
    "E_DNS",
    "E_INTERNAL",
    "E_MALFORMED",
    "E_NO_SINK",
    "E_REJECTED",
    "E_RESET",
    "E_SINK",
    "E_TIMEOUT",
    "E_TLS",
]
"""Why there is no response. All blocked addresses share one reason, which reveals nothing of them.

``E_INTERNAL``: the request could not be sent; the receiver did not see it. ``E_SINK``,
``E_REJECTED`` and ``E_NO_SINK`` are of endpoints that a plugin serves: its sink failed, will never
take the event, or is not there.
"""

Withheld = Literal["E_PRIVATE_NETWORK"]
WITHHELD: Final[Withheld] = "E_PRIVATE_NETWORK"
"""What the tenant gets instead of a failure in a network that the operator has opened (D-282)."""

FAILURES = (*typing.get_args(Reason), "3xx", "4xx", "5xx")
"""The usual values of :attr:`Outcome.word` when an attempt has failed."""

Wish = Literal["disable", "abort-message"]
"""What a receiver asks for in the header ``webhook-delivery``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One attempt: a ``reason``, or the ``status`` of an answer whose headers were complete.

    ``retry_after`` is in seconds from the answer on, None if the receiver named no time.
    ``dialled`` are the addresses that were tried, in order, none if a
    connection was open already; ``private`` says that only an entry of ``allow_networks`` permits
    such an address. ``duration`` in milliseconds covers
    the whole exchange. ``answer`` is how the body begins, at most 4 KiB, without the endpoint's
    token.
    """

    reason: Reason | Withheld | None = None
    status: int = 0
    retry_after: float | None = None
    wish: Wish | None = None
    duration: int = 0
    dialled: tuple[str, ...] = ()
    private: bool = False
    answer: bytes = b""

    @property
    def word(self) -> str:
        """The outcome as a metric label: the failure reason or the status class (``5xx``)."""
        return self.reason or f"{self.status // 100}xx"

    @property
    def delivered(self) -> bool:
        """Whether the receiver accepted the event."""
        return 200 <= self.status < 300

    def disclosed(self, *, verified: bool, milliseconds: int) -> Outcome:
        """Return the outcome as its tenant may see it.

        A private receiver's answer is for an endpoint that is ``verified``. Everything else that
        comes of a private address is the same failure, which took ``milliseconds``.
        """
        if not self.private or (verified and self.status):
            return self
        return Outcome(reason=WITHHELD, duration=milliseconds)
