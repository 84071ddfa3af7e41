"""Webhooks: whether the service has sent one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from standardwebhooks.webhooks import Webhook, WebhookVerificationError


class NotVerified(Exception):
    """A request that has no right signature: answer it with 401."""


def verify(headers: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> dict[str, Any]:
    """Return the event in a request, if the service has signed it in the last five minutes.

    Args:
        headers: The headers of the request, with names in any case.
        body: The bytes as they arrived.
        secrets: The signing secret of the endpoint, two of them during a rotation.

    Raises:
        NotVerified: No signature is right, or it is too old.
        ValueError: There is no secret, or one is malformed.
    """
    if not secrets or not all(secret.removeprefix("whsec_") for secret in secrets):
        raise ValueError("a signing secret is needed")
    lower = {name.lower(): value for name, value in headers.items()}
    hooks = [Webhook(secret) for secret in secrets]
    refusals = []
    for hook in hooks:
        try:
            hook.verify(body, lower)
        except WebhookVerificationError as refusal:
            refusals.append(str(refusal))
        else:
            event: dict[str, Any] = json.loads(body)
            return event
    raise NotVerified(refusals[0])
