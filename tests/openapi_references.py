"""The references inside an OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def followed(document: Any) -> dict[str, Any]:
    """Return what each reference leads to. Raises KeyError if one leads nowhere."""
    found = {}
    for reference in {*_references_in(document)}:
        place = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
        found[reference] = place
    return found


def _references_in(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for name, item in node.items():
            if name == "$ref":
                yield item
            yield from _references_in(item)
    elif isinstance(node, list):
        for item in node:
            yield from _references_in(item)
