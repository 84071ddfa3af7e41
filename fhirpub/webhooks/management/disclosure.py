"""What a tenant may see of an attempt, and what of it only the operator's log holds (D-282)."""

from __future__ import annotations

from fhirpub.runtime.logging import logger
from fhirpub.webhooks.policy.outcome import Outcome

_log = logger()


def disclose(
    outcome: Outcome, *, endpoint: str, event_id: str, verified: bool, milliseconds: int
) -> Outcome:
    """Return the outcome for the tenant, and log the cause of a failure that is withheld.

    ``verified``: the endpoint has passed its challenge, or the operator has added it.
    ``milliseconds`` is the duration reported for every failure that is withheld.
    """
    shown = outcome.disclosed(verified=verified, milliseconds=milliseconds)
    if shown is not outcome:
        _log.info(
            "webhook to a private address failed",
            endpoint=endpoint,
            event_id=event_id,
            outcome=outcome.word,
            milliseconds=outcome.duration,
            dialled=list(outcome.dialled),
        )
    return shown
