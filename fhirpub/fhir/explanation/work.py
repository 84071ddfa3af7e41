"""Bounds the work that is spent to explain what is wrong with one resource."""

from __future__ import annotations

from typing import Any

_WORK_PER_VALUE = 16
_MIN_WORK = 50_000
"""Values that the fast engine may visit to explain one resource, at least. The deeper a problem
is nested, the more often the values around it are visited."""


class Work:
    """The work that may be spent to explain one resource, in visited values."""

    def __init__(self, resource: dict[str, Any]) -> None:
        self._weights: dict[int, int] = {}
        total = _weigh(resource, self._weights)
        self._left = max(_MIN_WORK, _WORK_PER_VALUE * total)

    def spend(self, instance: Any) -> bool:
        """Count a visit of an object or a part of an array; return whether work was left."""
        if self._left <= 0:
            return False
        if isinstance(instance, list):
            self._left -= sum(self._weights.get(id(item), 1) for item in instance)
        else:
            self._left -= self._weights.get(id(instance), 1)
        return True


def _weigh(resource: dict[str, Any], weights: dict[int, int]) -> int:
    """Note how many values each object and array holds, itself included; return the total."""
    containers: list[Any] = [resource]
    for container in containers:  # grows while it is read
        members = container.values() if isinstance(container, dict) else container
        containers += [member for member in members if isinstance(member, (dict, list))]
    for container in reversed(containers):
        members = container.values() if isinstance(container, dict) else container
        weights[id(container)] = 1 + sum(weights.get(id(member), 1) for member in members)
    return weights[id(resource)]
