"""Web addresses, split in a time that grows with their length alone."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

MAX_URL_LENGTH = 2048
_AUTHORITY = re.compile(r"https?://[^/?#]{0,255}(?:[/?#]|\Z)", re.IGNORECASE)
"""What is not longer is split at once: combining marks of a host are sorted in quadratic time."""


def split_web_address(url: str) -> SplitResult | None:
    """Return the parts of an http or https URL; None for another, and for a host that is none."""
    try:
        return urlsplit(url) if _AUTHORITY.match(url) else None
    except ValueError:
        return None


def is_web_address(url: str) -> bool:
    """Return whether a document may be there: http or https, a host, no password (D-57)."""
    if len(url) > MAX_URL_LENGTH or not url.isprintable() or " " in url:
        return False
    parts = split_web_address(url)
    return parts is not None and bool(parts.hostname) and "@" not in parts.netloc
