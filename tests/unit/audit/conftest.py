from __future__ import annotations

import pytest

from fhirpub.testing.clock import HandClock


@pytest.fixture
def clock() -> HandClock:
    return HandClock()
