"""What of a version is read for a page: not the search values that nothing needs.

They are a third of a version or more, and each is a document of its own: to decode those of a page
of 1,000 results takes 50 ms, in which no other thread has the interpreter.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

ALONE = {"members": 0}
"""A version without its members."""
_LISTED = {**ALONE, "attached": 0, "audit": 0}
"""The same without the documents that it holds: lists show where they are."""
_NEEDED = (
    "id version tenant type system value status created updated documents body response parts "
    "events digest"
).split()


def listed_with(names: Collection[str] | None) -> dict[str, Any]:
    """Return a version as lists show it, with the search values under these names.

    None is all of them.
    """
    if names is None:
        return _LISTED
    if not names:
        return {**_LISTED, "search": 0}
    return {**dict.fromkeys(_NEEDED, 1), "search": _under(names, "$search")}


def members_with(ids: Collection[str], names: Collection[str] | None) -> dict[str, Any]:
    """Return members of a version by their ids, with their search values under these names."""
    has_id = {"$in": ["$$this.id", {"$literal": [*ids]}]}
    wanted: dict[str, Any] = {"$filter": {"input": "$members", "cond": has_id}}
    if names is None:
        return wanted
    values = _under(names, "$$this.search") if names else "$$REMOVE"
    member = {"$setField": {"field": "search", "input": "$$this", "value": values}}
    return {"$map": {"input": wanted, "in": member}}


def _under(names: Collection[str], values: str) -> dict[str, Any]:
    is_under = {"$in": ["$$value.name", {"$literal": [*names]}]}
    return {"$filter": {"input": values, "as": "value", "cond": is_under}}
