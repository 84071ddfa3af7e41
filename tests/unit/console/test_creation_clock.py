"""The console goes by the clock of the service."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.console import creation
from fhirpub.console.creation import create_console
from fhirpub.testing.clock import HandClock
from tests.unit.console.test_creation import configured


def test_sessions_and_limits_go_by_the_clock_of_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(creation, "Router", lambda _services: None)
    clock = HandClock()
    services: Any = SimpleNamespace(
        config=configured(),
        clock=clock,
        tokens=SimpleNamespace(ring=None),
        store=object(),
        patterns={},
    )

    console = create_console(services, cast("Any", object()))

    assert console.sessions._clock is clock
    assert console.throttle._clock is clock
    assert console.throttle._limit == services.config.limits.token_failures > 0
    assert console.sessions._tokens is services.tokens
