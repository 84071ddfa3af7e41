"""URLs of endpoints that are read by their clients and never sent to: ``pull:NAME`` (ADR 47)."""

from __future__ import annotations

import re

from fhirpub.webhooks.transport.url_policy import refuse_url

PULL = "pull:"
MAX_NAME_LENGTH = 64
_URL = re.compile(r"pull:[a-z0-9][a-z0-9-]{0,63}")


def is_pull(url: str) -> bool:
    """Return whether an endpoint with this URL is read by its client."""
    return url.startswith(PULL)


def check_pull(url: str) -> str:
    """Return the URL of such an endpoint. Raises InvalidContent."""
    if not _URL.fullmatch(url):
        rule = "must be pull:NAME, a name of lower-case letters, digits and hyphens, at most"
        raise refuse_url(f"{rule} {MAX_NAME_LENGTH}")
    return url
