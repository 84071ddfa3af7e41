"""The line of progress of a transfer, and the settings of the other store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from fhirpub.cli import transfer
from fhirpub.cli.transfer import _naming, _other, _Rate
from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage.transfer import Progress


@pytest.fixture
def rate(monkeypatch: pytest.MonkeyPatch) -> _Rate:
    """Return the rate of a transfer that began 100 seconds ago."""
    readings = iter([7.0, 107.0])
    monkeypatch.setattr(transfer, "time", SimpleNamespace(monotonic=lambda: next(readings)))
    return _Rate()


def test_progress_has_the_rate_and_the_time_that_is_left(rate: _Rate) -> None:
    text = rate.describe(Progress(total=3_000, copied=600, there=400))

    assert text == "1,000 of 3,000 versions, 10/s, 200 s left"


def test_the_progress_of_one_version_is_in_the_singular(rate: _Rate) -> None:
    assert rate.describe(Progress(total=1, copied=1)).startswith("1 of 1 version, ")


def test_more_than_was_counted_leaves_no_time(rate: _Rate) -> None:
    assert rate.describe(Progress(total=5, copied=1_000)).endswith(", 0 s left")


def test_a_url_names_only_another_store() -> None:
    config = Config()

    other = _other(config, "sqlite:///x.db")

    assert other == replace(config, storage=replace(config.storage, url="sqlite:///x.db"))


def test_a_file_names_the_store_and_the_keys_of_webhooks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FHIRPUB_STORAGE__URL", "sqlite:///ours.db")
    file = tmp_path / "f.toml"
    file.write_text(
        "[storage]\nurl = 'sqlite:///new.db'\n[webhooks]\nkeys_file = '/k'\n[server]\nport = 7\n"
    )

    other = _other(Config(), str(file))

    assert (other.storage.url, other.webhooks.keys_file) == ("sqlite:///new.db", "/k")
    assert other.server == Config().server


def test_what_is_neither_is_refused_without_its_text() -> None:
    with pytest.raises(ConfigurationError) as refusal:
        _other(Config(), "mongodb:/user:secret@h")

    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (ConfigurationError("x.db is no store"), "x.db is no store"),
        (StoreUnavailable("SQLITE_FULL"), "the disk is full (SQLITE_FULL)"),
    ],
)
def test_each_problem_names_which_of_the_two_stores_has_it(problem: Exception, words: str) -> None:
    with pytest.raises(ConfigurationError) as named, _naming("the store to copy to"):
        raise problem

    assert str(named.value).startswith(f"the store to copy to cannot be used: {words}")
