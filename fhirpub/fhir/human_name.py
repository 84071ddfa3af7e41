"""Which of a person's names to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_FORMER = ("old", "maiden")


def name_to_use(names: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the official name, else the first that is not of former days, else the first."""
    official = [each for each in names if each.get("use") == "official"]
    current = [each for each in names if each.get("use") not in _FORMER]
    return next(iter([*official, *current, *names]), {})


def given_names(name: Mapping[str, Any]) -> str:
    """Return all given names, with a blank between; gaps in the list are left out."""
    return " ".join(each for each in name.get("given", ()) if each)
