"""Every store that the faults are tried on, and the seed of all that is random."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(params=["sqlite", "mongodb"])
def store_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty store, by the fixture of its engine."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A file that is not there yet."""
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """What pytest prints at its start; ``--randomly-seed=N`` takes it again."""
    number: int = request.config.getoption("randomly_seed")
    return number
