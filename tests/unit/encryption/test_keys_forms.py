"""What is a key of a store and what is not, and which place of keys counts."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from fhirpub.config.settings import Config, StorageConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.encryption.cipher import KEYS_VARIABLE
from fhirpub.encryption.keys import KeySource
from fhirpub.errors import ConfigurationError
from fhirpub.plugin_api import KeyProvider


def line(length: int = 32, value: int = 7) -> str:
    return base64.b64encode(bytes([value]) * length).decode()


def source_of(file: Path, text: str) -> KeySource:
    file.write_text(text)
    return KeySource(Config(storage=StorageConfig(keys_file=str(file))))


@pytest.mark.parametrize("length", [1, 16, 31, 33])
def test_a_key_has_32_bytes(tmp_path: Path, length: int) -> None:
    with pytest.raises(ConfigurationError, match="each line must be a key, 32 bytes"):
        source_of(tmp_path / "keys", f"{line()}\n{line(length)}").read()


@pytest.mark.parametrize("text", ["", "# nothing", "\n \n", "not base64!", line()[:-1]])
def test_a_file_without_a_key_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"\[storage\] keys_file: .*keys: each line must"):
        source_of(tmp_path / "keys", text).read()


def test_keys_may_stand_on_one_line(tmp_path: Path) -> None:
    source = source_of(tmp_path / "keys", f"  {line(value=1)}\t{line(value=2)} # two\n")

    assert source.read() == (bytes([1]) * 32, bytes([2]) * 32)


def test_the_older_setting_is_named_in_its_problems(tmp_path: Path) -> None:
    config = Config(webhooks=WebhooksConfig(keys_file=str(tmp_path / "missing")))

    with pytest.raises(ConfigurationError, match=r"^\[webhooks\] keys_file: .*cannot be read"):
        KeySource(config).read()


def test_a_file_beside_the_store_counts_only_if_it_is_there(tmp_path: Path) -> None:
    source = KeySource(Config(), beside=tmp_path / "keys")
    assert (source.read(), source.file, source.is_configured) == ((), tmp_path / "keys", False)

    (tmp_path / "keys").write_text(line())

    assert source.read() == (bytes([7]) * 32,)
    assert not source.is_configured


def test_a_file_that_is_configured_counts_and_not_the_one_beside(tmp_path: Path) -> None:
    (tmp_path / "beside").write_text(line(value=1))
    (tmp_path / "keys").write_text(line(value=2))
    config = Config(storage=StorageConfig(keys_file=str(tmp_path / "keys")))

    source = KeySource(config, beside=tmp_path / "beside")

    assert source.read() == (bytes([2]) * 32,)
    assert (source.file, source.is_configured) == (tmp_path / "keys", True)


def test_keys_of_the_environment_have_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEYS_VARIABLE, f"\n{line()}\n")

    source = KeySource(Config(), beside=tmp_path / "keys")

    assert (source.file, source.is_configured) == (None, True)
    assert source.read() == (bytes([7]) * 32,)


def test_a_variable_of_blanks_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEYS_VARIABLE, " \n")

    assert not KeySource(Config(), beside=tmp_path / "keys").is_configured


def test_a_key_in_clear_beside_wrapped_ones_is_noticed(tmp_path: Path) -> None:
    provider = KeyProvider(name="kms", wrap=lambda key: key[::-1], unwrap=lambda key: key[::-1])
    config = Config(storage=StorageConfig(keys_file=str(tmp_path / "keys")))
    source = KeySource(config, provider=lambda: provider)
    wrapped = f"kms:{line(value=1)}"

    (tmp_path / "keys").write_text(wrapped)
    assert not source.has_clear_key()
    (tmp_path / "keys").write_text(f"{wrapped}\n{line(value=2)}")
    assert source.has_clear_key()


def test_a_key_of_another_provider_is_refused_with_its_name(tmp_path: Path) -> None:
    provider = KeyProvider(name="kms", wrap=lambda key: key, unwrap=lambda key: key)
    config = Config(storage=StorageConfig(keys_file=str(tmp_path / "keys")))
    (tmp_path / "keys").write_text(f"vault:{line()}")

    with pytest.raises(ConfigurationError, match="wrapped by the key provider 'vault'"):
        KeySource(config, provider=lambda: provider).read()


def test_without_a_place_no_key_is_created() -> None:
    assert KeySource(Config()).create() == ()


def test_a_key_is_created_in_a_new_folder_and_announced(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "keys"

    with capture_logs() as logs:
        keys = KeySource(Config(), beside=file).create()

    assert KeySource(Config(), beside=file).read() == keys
    assert [(one["event"], one["file"]) for one in logs] == [
        ("made the key of the store's secrets, keep a copy", str(file))
    ]
    assert [each.name for each in file.parent.iterdir()] == ["keys"]


def test_a_key_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(line())

    with capture_logs() as logs:
        assert KeySource(Config(), beside=tmp_path / "keys").create() == (bytes([7]) * 32,)

    assert logs == []
