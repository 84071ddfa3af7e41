"""Which of two places of keys is taken, and how often each of several keys is unwrapped."""

from __future__ import annotations

from pathlib import Path

from fhirpub.config.settings import Config, StorageConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.encryption.keys import KeySource
from tests.unit.encryption.test_keys import NEW, OLD, Kms, line, named


def test_of_two_settings_that_of_the_store_counts(tmp_path: Path) -> None:
    for name, key in (("new", NEW), ("old", OLD)):
        (tmp_path / name).write_text(line(key))
    config = Config(
        storage=StorageConfig(keys_file=str(tmp_path / "new")),
        webhooks=WebhooksConfig(keys_file=str(tmp_path / "old")),
    )

    source = KeySource(config, beside=tmp_path / "beside")

    assert source.read() == (NEW,)
    assert source.file == tmp_path / "new"


def test_each_of_several_wrapped_keys_is_unwrapped_once(tmp_path: Path) -> None:
    kms = Kms()
    wrapped = [f"kms:{line(b'<' + key[::-1])}" for key in (NEW, OLD)]
    (tmp_path / "keys").write_text("\n".join(wrapped))
    source = KeySource(named(tmp_path / "keys"), provider=kms.provider)

    assert [source.read() for _time in range(3)] == [(NEW, OLD)] * 3
    assert kms.unwrapped == 2
    assert not source.has_clear_key()
