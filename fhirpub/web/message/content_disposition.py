"""What a document is called where it is saved (RFC 6266)."""

from __future__ import annotations

import mimetypes
import re
from urllib.parse import quote

_LONGEST = 100
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f/\\:*?\"<>|]+")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 ._()-]")


def disposition(title: str, content_type: str) -> str:
    """Return the Content-Disposition of a document: to be shown, and saved under its title."""
    ending = mimetypes.guess_extension(content_type.partition(";")[0].strip()) or ""
    name = _NOT_IN_NAMES.sub(" ", title[:_LONGEST]).strip(" .") or "document"
    if not name.lower().endswith(ending):
        name += ending
    plain = _NOT_PLAIN.sub("_", name)
    others = "" if plain == name else f"; filename*=UTF-8''{quote(name, safe='')}"
    return f'inline; filename="{plain}"{others}'
