from __future__ import annotations

from tests.unit.administration.conftest import lab, office, other

__all__ = ["lab", "office", "other"]
