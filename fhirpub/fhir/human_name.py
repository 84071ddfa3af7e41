"""Which of a person's names to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_FORMER = ("old", "maiden")


def name_to_use(names: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the official name, else the first that is not of former days, else the first."""
    if len(names) == 1:
        return names[0]
    official = [name for name in names if name.get("use") == "official"]
    current = [name for name in names if name.get("use") not in _FORMER]
    return next(iter([*official, *current, *names]), {})


def given_names(name: Mapping[str, Any]) -> str:
    """Return all given names, with a blank between; gaps in the list are left out."""
    return " ".join(given_name for given_name in name.get("given", ()) if given_name)
