"""What is a NumericDate, and what only looks like one (RFC 7519, 2)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from fhirpub.auth.jwt import numeric_date


@pytest.mark.parametrize("value", [0, 1.5, Decimal("1.5"), 253_402_300_799])
def test_a_number_of_seconds_is_a_date(value: Any) -> None:
    assert numeric_date(value) == value


@pytest.mark.parametrize("value", [True, False, "1", None, -1, 253_402_300_800, [1]])
def test_anything_else_is_none(value: Any) -> None:
    assert numeric_date(value) is None
