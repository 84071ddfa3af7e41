from __future__ import annotations

from tests.unit.administration.conftest import lab, lis, office, other

__all__ = ["lab", "lis", "office", "other"]
