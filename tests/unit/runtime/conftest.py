"""What tests change for the whole process, and what is put back behind them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from fhirpub.runtime import faults
from fhirpub.runtime import logging as module


@pytest.fixture
def log_as_before() -> Iterator[None]:
    """Restore where log lines are written, and which."""
    before, root = structlog.get_config(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    kept = module._stream, module._request_lines
    yield
    structlog.configure(**before)
    root.handlers[:] = handlers
    root.setLevel(level)
    module._stream, module._request_lines = kept


@pytest.fixture
def faults_as_before() -> Iterator[None]:
    """Restore which plugins a fault may name, and whether it has a traceback."""
    before = faults._plugins, faults._shows_tracebacks
    yield
    faults._plugins, faults._shows_tracebacks = before
