"""What a server answers: documents that were found, and refused writes."""

from __future__ import annotations

from typing import Any

from pymongo.errors import BulkWriteError


class Found:
    """A cursor on documents."""

    def __init__(self, found: list[dict[str, Any]]) -> None:
        self._found = found

    async def to_list(self, _most: None) -> list[dict[str, Any]]:
        return [*self._found]


def refused(*codes: int, durable: bool = True, first: int = 0) -> BulkWriteError:
    """Return the refusal of writes, one for each code, from the place of the first on."""
    errors: list[dict[str, Any]] = [
        {"index": place, "code": code, "errmsg": "a value"}
        for place, code in enumerate(codes, start=first)
    ]
    concerns = [] if durable else [{"code": 64, "errmsg": "a value"}]
    return BulkWriteError({"writeErrors": errors, "writeConcernErrors": concerns})
