"""Replaces functions of Python's library for one module, and for no other thread of this process.

A service that a fixture started runs in a thread next to the tests: its timers would call what
stands in for `asyncio.sleep` or `time.time`, and what they pass would be counted.
"""

from __future__ import annotations

from types import ModuleType

import pytest


def copy_for(module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the copy of an imported module that only ``module`` uses until the test ends."""
    imported: ModuleType = getattr(module, name)
    copied = ModuleType(imported.__name__)
    vars(copied).update(vars(imported))
    monkeypatch.setattr(module, name, copied)
    return copied
