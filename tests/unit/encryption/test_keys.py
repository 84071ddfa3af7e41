"""The keys of a store come from the environment, a file, or a plugin that unwraps them."""

from __future__ import annotations

import base64
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from fhirpub.config.settings import Config, StorageConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.encryption import keys
from fhirpub.encryption.cipher import KEYS_VARIABLE, name_of
from fhirpub.encryption.keys import OLDER_VARIABLE, KeySource
from fhirpub.errors import ConfigurationError, SecretsUnavailable
from fhirpub.plugin_api import KeyProvider

OLD, NEW = bytes(32), bytes(range(32))


def line(key: bytes) -> str:
    return base64.b64encode(key).decode()


def named(file: Path) -> Config:
    return Config(storage=StorageConfig(keys_file=str(file)))


def named_as_before(file: Path) -> Config:
    return Config(webhooks=WebhooksConfig(keys_file=str(file)))


class Kms:
    """A key provider that turns keys around, and counts."""

    def __init__(self) -> None:
        self.unwrapped = 0

    def provider(self) -> KeyProvider:
        return KeyProvider(name="kms", wrap=lambda key: b"<" + key[::-1], unwrap=self._unwrap)

    def _unwrap(self, wrapped: bytes) -> bytes:
        self.unwrapped += 1
        if not wrapped.startswith(b"<"):
            raise RuntimeError("the key is " + line(NEW))
        return wrapped[:0:-1]


def test_without_settings_there_are_no_keys() -> None:
    source = KeySource(Config())

    assert source.read() == ()
    assert source.file is None


def test_a_file_beside_that_is_not_used_is_found_by_the_name_of_a_key_in_it(
    tmp_path: Path,
) -> None:
    beside, file = tmp_path / "beside", tmp_path / "keys"
    beside.write_text(line(OLD))
    file.write_text(line(NEW))

    source = KeySource(named(file), beside=beside)

    assert source.unused_file_with(name_of(OLD)) == beside
    assert source.unused_file_with(name_of(NEW)) is None


@pytest.mark.parametrize("content", [None, "no key"])
def test_without_a_key_in_it_a_file_beside_is_not_found(
    tmp_path: Path, content: str | None
) -> None:
    beside = tmp_path / "beside"
    if content:
        beside.write_text(content)

    source = KeySource(named(tmp_path / "keys"), beside=beside)

    assert source.unused_file_with(name_of(OLD)) is None


def test_a_file_beside_that_is_used_is_no_unused_one(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.write_text(line(OLD))

    for config in (Config(), named(beside)):
        assert KeySource(config, beside=beside).unused_file_with(name_of(OLD)) is None


@pytest.mark.parametrize("config", [named, named_as_before])
def test_keys_come_from_a_file_with_remarks(config: object, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# since May\n{line(NEW)}\n\n{line(OLD)} # before\n")

    assert callable(config)
    assert KeySource(config(file)).read() == (NEW, OLD)


@pytest.mark.parametrize("name", [KEYS_VARIABLE, OLDER_VARIABLE])
def test_the_environment_comes_before_the_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keys").write_text(line(OLD))
    monkeypatch.setenv(name, line(NEW))

    source = KeySource(named(tmp_path / "keys"))

    assert source.read() == (NEW,)
    assert source.file is None


def test_a_source_keeps_the_environment_it_was_created_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keys").write_text(line(OLD))
    source = KeySource(named(tmp_path / "keys"))

    monkeypatch.setenv(KEYS_VARIABLE, line(NEW))

    assert source.read() == (OLD,)


def test_of_two_variables_the_newer_name_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEYS_VARIABLE, line(NEW))
    monkeypatch.setenv(OLDER_VARIABLE, line(OLD))

    assert KeySource(Config()).read() == (NEW,)


@pytest.mark.parametrize(
    ("config", "setting"), [(named, "[storage]"), (named_as_before, "[webhooks]")]
)
@pytest.mark.parametrize("content", ["", "# nothing", "abc", "!" * 44, line(NEW[:31]), "ä"])
def test_a_file_that_holds_no_keys_is_named_and_not_quoted(
    content: str, config: object, setting: str, tmp_path: Path
) -> None:
    file = tmp_path / "keys"
    file.write_text(content, encoding="utf-8")

    assert callable(config)
    with pytest.raises(ConfigurationError) as caught:
        KeySource(config(file)).read()

    assert str(caught.value).startswith(f"{setting} keys_file: {file}: each line must be")
    assert len(content) < 4 or content not in str(caught.value)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        KeySource(named(tmp_path / "none")).read()


def test_a_key_file_that_cannot_be_looked_for_is_named(tmp_path: Path) -> None:
    beside = tmp_path / ("x" * 300)

    with pytest.raises(ConfigurationError, match=r"x: cannot be read: File name too long"):
        KeySource(Config(), beside=beside).read()


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "fhirpub.webhook-keys"

    with ThreadPoolExecutor(8) as threads:
        made = threads.map(lambda _: KeySource(Config(), beside=file).create(), range(8))
        (keys,) = set(made)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]
    assert KeySource(Config(), beside=file).read() == keys


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigurationError, match="cannot be written"):
        KeySource(Config(), beside=tmp_path / "file" / "keys").create()


def test_where_a_key_cannot_be_put_in_its_place_no_draft_of_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_paths: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(keys, "os", SimpleNamespace(**{**vars(os), "link": refused}))

    with pytest.raises(ConfigurationError, match="cannot be written"):
        KeySource(Config(), beside=tmp_path / "keys").create()

    assert list(tmp_path.iterdir()) == []


def test_a_created_key_is_wrapped_if_a_plugin_wraps_keys(tmp_path: Path) -> None:
    source = KeySource(Config(), beside=tmp_path / "keys", provider=Kms().provider)

    (key,) = source.create()

    written = (tmp_path / "keys").read_text()
    assert written.startswith("kms:")
    assert line(key) not in written
    assert not source.has_clear_key()
    assert KeySource(Config(), beside=tmp_path / "keys", provider=Kms().provider).read() == (key,)


def test_a_wrapped_key_is_unwrapped_once_however_often_it_is_read(tmp_path: Path) -> None:
    kms = Kms()
    source = KeySource(named(tmp_path / "keys"), provider=kms.provider)
    (tmp_path / "keys").write_text(f"kms:{line(b'<' + NEW[::-1])}\n{line(OLD)}")

    assert [source.read() for _time in range(3)] == [(NEW, OLD)] * 3
    assert kms.unwrapped == 1
    assert source.has_clear_key()


def test_a_key_that_no_plugin_unwraps_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"vault:{line(NEW)}")

    for source in (
        KeySource(named(tmp_path / "keys")),
        KeySource(named(tmp_path / "keys"), provider=Kms().provider),
    ):
        with pytest.raises(ConfigurationError, match=r"add the plugin to \[plugins\] enabled"):
            source.read()


def test_of_a_failing_provider_the_text_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"kms:{line(OLD)}")

    with pytest.raises(SecretsUnavailable) as caught:
        KeySource(named(tmp_path / "keys"), provider=Kms().provider).read()

    assert caught.value.reason == "key provider kms: cannot unwrap the key (RuntimeError)"


def test_a_provider_that_does_not_return_the_same_key_creates_none(tmp_path: Path) -> None:
    forgetful = KeyProvider(name="kms", wrap=lambda _key: b"x", unwrap=lambda _wrapped: OLD)
    source = KeySource(Config(), beside=tmp_path / "keys", provider=lambda: forgetful)

    with pytest.raises(ConfigurationError, match="unwraps another key"):
        source.create()
    assert list(tmp_path.iterdir()) == []
