"""The overview of a service whose store cannot be written."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from fhirpub.config.administration import AdminConfig
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import Config
from fhirpub.testing.service import RunningService
from tests.console.operating import sign_in
from tests.console.tabs import KEY, Tab, text_of
from tests.waiting import wait_until


def _signed_in(service: RunningService) -> Tab:
    """Sign in; a busy machine may need more than the time for the store."""
    for _ in range(20):
        with suppress(AssertionError):
            return sign_in(service, KEY)
    raise AssertionError("the store never was in time")


def test_a_store_that_cannot_be_written_is_shown_as_not_available(tmp_path: Path) -> None:
    config = Config(
        console=ConsoleConfig(enabled=True),
        admin=AdminConfig(bootstrap_key_hash=hashlib.sha256(KEY.encode()).hexdigest()),
    )
    config = replace(config, storage=replace(config.storage, deadline_seconds=0.5))
    with RunningService(tmp_path, config=config) as service:
        operator = _signed_in(service)
        with closing(sqlite3.connect(tmp_path / "fhirpub.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")

            assert wait_until(lambda: "not available" in text_of(operator.get("/console/")))
            text = text_of(operator.get("/console/"))
            assert "Problem" in text
            assert "Tenants 0" in text
            other.execute("ROLLBACK")

        assert wait_until(lambda: "ready" in text_of(operator.get("/console/")))
