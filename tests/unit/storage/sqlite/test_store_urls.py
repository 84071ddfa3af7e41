"""Which file a URL names, and with what its store is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage.sqlite.files import identity_of
from fhirpub.storage.sqlite.store import from_url


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:////var/x.db", Path("/var/x.db")),
        ("sqlite:////var/lib/x.db", Path("/var/lib/x.db")),
        ("sqlite:////var/a b%20c/x.db", Path("/var/a b%20c/x.db")),
        ("sqlite:///x.db", Path.cwd() / "x.db"),
        ("sqlite:///data/x.db", Path.cwd() / "data" / "x.db"),
        ("sqlite:///a/%20b.db", Path.cwd() / "a" / "%20b.db"),
    ],
)
def test_a_url_names_a_file_as_it_stands(url: str, path: Path) -> None:
    assert from_url(url, deadline_seconds=7)._path == path


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x.db",
        "sqlite:",
        "sqlite://",
        "sqlite://x.db",
        "sqlite://host/x.db",
        "sqlite:///",
        "sqlite:////",
        "sqlite:///a/",
        "sqlite:///data/",
        "SQLITE:///x.db",
        "file:///x.db",
        "mongodb://host/x",
    ],
)
def test_a_url_that_names_no_file_is_refused(url: str) -> None:
    rule = r"\[storage\] url.* must be sqlite:///relative/path\.db"
    with pytest.raises(ConfigurationError, match=rule):
        from_url(url, deadline_seconds=7)


@pytest.mark.parametrize("path", ["a?b.db", "a#b.db", "a:b.db", "a\0b.db", "x.db?mode=ro",
                                  "x.db#part", ":memory:"])  # fmt: skip
def test_a_path_with_a_sign_of_urls_is_refused(path: str) -> None:
    with pytest.raises(ConfigurationError, match=r"\[storage\] url.* the path must not contain"):
        from_url(f"sqlite:///{path}", deadline_seconds=7)


def test_a_url_gives_a_store_what_it_is_given() -> None:
    cipher = SecretCipher([b"k" * 32])

    store = from_url("sqlite:///x.db", deadline_seconds=7, make=False, cipher=cipher)

    assert (store._deadline, store._make, store.cipher) == (7, False, cipher)


def test_a_store_is_made_in_clear_unless_it_is_asked_otherwise() -> None:
    store = from_url("sqlite:///x.db", deadline_seconds=7)

    assert store._make is True
    assert store.cipher.keys == ()


async def test_a_store_that_is_not_to_be_made_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "away" / "fhirpub.db"

    with pytest.raises(StoreUnavailable) as refused:
        await from_url(f"sqlite:///{path}", deadline_seconds=10, make=False).start()

    assert refused.value.reason.startswith("the file was moved, deleted or replaced")
    assert identity_of(path) is None
    assert not path.parent.exists()


def test_a_store_has_the_cipher_that_it_is_given_although_that_has_no_key_yet() -> None:
    cipher = SecretCipher()
    store = from_url("sqlite:///x.db", deadline_seconds=7, cipher=cipher)

    cipher.use([bytes(32)])

    assert store.cipher is cipher
    assert store.cipher.keys == (bytes(32),)
