from __future__ import annotations

from tests.unit.administration.conftest import lab, office

__all__ = ["lab", "office"]
