"""The secrets of endpoints, as they are stored."""

from __future__ import annotations

import base64
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import ConfigurationError, SecretsUnavailable
from fhirpub.webhooks.management.secret_encryption import (
    KEYS_VARIABLE,
    SecretCipher,
    create_key_file,
    load_cipher,
)

OLD, NEW = bytes(32), bytes(range(32))
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def sealed(*keys: bytes) -> bytes:
    return SecretCipher(keys).encrypt(SECRET, endpoint="e1", purpose="secret")


def opened(seal: SecretCipher, text: bytes) -> str:
    return seal.decrypt(text, endpoint="e1", purpose="secret")


def line(key: bytes) -> str:
    return base64.b64encode(key).decode()


def test_what_was_sealed_is_opened() -> None:
    assert opened(SecretCipher([NEW]), sealed(NEW)) == SECRET


def test_what_is_sealed_does_not_show_it_and_differs_each_time() -> None:
    assert SECRET.encode() not in sealed(NEW)
    assert sealed(NEW) != sealed(NEW)


def test_the_first_key_seals_and_all_open() -> None:
    both = SecretCipher([NEW, OLD])

    assert opened(both, sealed(OLD)) == SECRET
    assert both.is_of_first(sealed(NEW))
    assert not both.is_of_first(sealed(OLD))


def test_it_opens_for_its_own_endpoint_and_purpose_alone() -> None:
    seal = SecretCipher([NEW])

    for endpoint, purpose in (("e2", "secret"), ("e1", "token")):
        with pytest.raises(SecretsUnavailable, match="webhooks cannot be used"):
            seal.decrypt(sealed(NEW), endpoint=endpoint, purpose=purpose)  # type: ignore[arg-type]


@pytest.mark.parametrize("place", [0, 3, 9, 30, -1])
def test_a_changed_byte_is_noticed(place: int) -> None:
    changed = bytearray(sealed(NEW))
    changed[place] ^= 1

    with pytest.raises(SecretsUnavailable):
        opened(SecretCipher([NEW]), bytes(changed))


@pytest.mark.parametrize("length", [0, 1, 4, 5, 16, 17, 32])
def test_what_was_cut_off_is_noticed(length: int) -> None:
    with pytest.raises(SecretsUnavailable):
        opened(SecretCipher([NEW]), sealed(NEW)[:length])


def test_a_missing_key_is_distinguished_from_damage() -> None:
    with pytest.raises(SecretsUnavailable) as caught:
        opened(SecretCipher([OLD]), sealed(NEW))

    assert "under a key that is not here" in caught.value.reason


def test_without_a_key_the_reason_says_what_to_do() -> None:
    nothing = load_cipher(WebhooksConfig())

    assert not nothing
    with pytest.raises(SecretsUnavailable) as caught:
        nothing.encrypt(SECRET, endpoint="e1", purpose="secret")
    assert "openssl rand -base64 32" in caught.value.reason


def test_keys_come_from_a_file_with_remarks(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# since May\n{line(NEW)}\n\n{line(OLD)} # before\n")

    seal = load_cipher(WebhooksConfig(keys_file=str(file)))

    assert seal.is_of_first(sealed(NEW))
    assert opened(seal, sealed(OLD)) == SECRET


def test_the_environment_comes_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keys").write_text(line(OLD))
    monkeypatch.setenv(KEYS_VARIABLE, line(NEW))

    seal = load_cipher(WebhooksConfig(keys_file=str(tmp_path / "keys")))

    assert seal.is_of_first(sealed(NEW))


@pytest.mark.parametrize("content", ["", "# nothing", "abc", "!" * 44, line(NEW[:31]), "ä"])
def test_a_file_that_holds_no_keys_is_named_and_not_quoted(content: str, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(content, encoding="utf-8")

    with pytest.raises(ConfigurationError) as caught:
        load_cipher(WebhooksConfig(keys_file=str(file)))

    assert str(caught.value).startswith(f"[webhooks] keys_file: {file}: each line must be")
    assert len(content) < 3 or content not in str(caught.value)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        load_cipher(WebhooksConfig(keys_file=str(tmp_path / "none")))


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "fhirpub.webhook-keys"

    with ThreadPoolExecutor(8) as threads:
        seals = list(threads.map(lambda _: create_key_file(file), range(8)))

    sealed_by_one = seals[0].encrypt(SECRET, endpoint="e1", purpose="secret")
    assert {opened(seal, sealed_by_one) for seal in seals} == {SECRET}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]
    assert opened(load_cipher(WebhooksConfig(), beside=file), sealed_by_one) == SECRET


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigurationError, match="cannot be written"):
        create_key_file(tmp_path / "file" / "keys")


def test_where_a_key_cannot_be_put_in_its_place_no_draft_of_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_paths: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refused)

    with pytest.raises(ConfigurationError, match="cannot be written"):
        create_key_file(tmp_path / "keys")

    assert list(tmp_path.iterdir()) == []


def test_no_key_is_in_its_repr() -> None:
    assert line(NEW) not in repr(SecretCipher([NEW]))
    assert repr(NEW) not in repr(SecretCipher([NEW]))
