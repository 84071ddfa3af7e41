"""Accepts each assertion once, by all processes together (RFC 7523, section 3; ADR 38)."""

from __future__ import annotations

from fhirpub.auth.assertions.verification import Assertion, AssertionRefused
from fhirpub.errors import Throttled
from fhirpub.runtime.clock import Clock
from fhirpub.storage.client_activity_contract import AssertionUse, ClientActivity, UsedAssertion

_MAX_LIVE = 10_000
"""So many used assertions of one owner may be alive: 33 a second, for five minutes."""
_RETRY_SECONDS = 60


async def use_once(access: ClientActivity, stated: Assertion, *, owner: str, clock: Clock) -> None:
    """Use up an assertion that was verified.

    Args:
        access: What records the use.
        stated: The assertion.
        owner: The signer: the id of a client, or a name that no client can have.
        clock: The current time.

    Raises:
        AssertionRefused: It was used before.
        Throttled: Its owner has used too many that have not expired.
        StoreUnavailable: The use could not be recorded for certain; another one is needed.
    """
    used = UsedAssertion(owner, stated.jti, stated.expires)
    use = await access.use_assertion(used, now=clock(), most=_MAX_LIVE)
    if use is AssertionUse.TOO_MANY:
        raise Throttled(retry_after=_RETRY_SECONDS)
    if use is AssertionUse.REPEATED:
        raise AssertionRefused("was used before: sign one with another jti for each request")
