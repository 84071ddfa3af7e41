"""Every store that the faults are tried on, and the random seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.stores import STORES


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store, by the fixture of its engine."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A file that does not exist yet."""
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed that pytest prints at its start; ``--randomly-seed=N`` repeats it."""
    number: int = request.config.getoption("randomly_seed")
    return number
