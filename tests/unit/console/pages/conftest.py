from __future__ import annotations

from tests.unit.console.test_entrance import door
from tests.unit.console.test_sessions import world

__all__ = ["door", "world"]
