"""Many values as one parameter of a statement, which SQLite takes apart again."""

from __future__ import annotations

import json
from collections.abc import Iterable

import orjson


def json_list(texts: Iterable[str]) -> str:
    """Return texts as one parameter, however many, for ``IN (SELECT value FROM json_each(?))``.

    Leaves out texts with a NUL, where SQLite would cut them off: none that we keep has one.
    """
    return json.dumps([text for text in texts if "\0" not in text], ensure_ascii=False)


def json_pairs(pairs: Iterable[tuple[str | int, str | int]]) -> str:
    """Return pairs of what we keep as one parameter."""
    return orjson.dumps(list(pairs)).decode()
