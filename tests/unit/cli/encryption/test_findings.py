"""``fhirpub check`` names secrets that are in clear, and keys that are missing or exposed."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.app.stores import key_source, open_store
from fhirpub.cli.advice.finding import Finding
from fhirpub.cli.encryption.findings import _problems, _problems_of_key, find_secrets
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.encryption.cipher import NO_KEY, State, name_of
from fhirpub.encryption.keys import KeySource
from fhirpub.storage.secret_contract import StoredSecret
from fhirpub.tenant import Tenant

KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
SEALED = bytes(40)


def found(*states: State, has_key: bool = True) -> list[tuple[str, str]]:
    secrets = [
        (StoredSecret(purpose="salt", owner=f"t-{number}", value=SEALED), state)
        for number, state in enumerate(states)
    ]
    return [(one.level, one.text) for one in _problems(secrets, has_key=has_key)]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(storage=StorageConfig(url=f"sqlite:///{tmp_path}/lab.db"))


def key_of(config: Config, *, mode: int = 0o600) -> KeySource:
    """Write a key next to the store, or where it is configured."""
    source = key_source(config)
    assert source.file is not None
    source.file.write_text(f"{KEY}\n")
    source.file.chmod(mode)
    return source


def texts(config: Config, source: KeySource) -> list[str]:
    findings = list(_problems_of_key(config, source))
    assert all(one.level == "warning" for one in findings)
    return [one.text for one in findings]


def in_production(config: Config) -> Config:
    return replace(config, auth=replace(config.auth, environment="production"))


def test_secrets_under_the_first_key_are_no_problem() -> None:
    assert found("first") == []


def test_a_missing_key_is_named_and_is_an_error() -> None:
    ((level, text),) = found("missing", "missing", has_key=False)

    assert level == "error"
    assert text.startswith("the salt of 2 tenants cannot be decrypted: the key ")
    assert " is not here; put the file that has it back, " in text


def test_each_damaged_secret_is_an_error() -> None:
    assert found("damaged", "first", "damaged") == [
        ("error", "the salt of t-0 was damaged in the store, or moved there"),
        ("error", "the salt of t-2 was damaged in the store, or moved there"),
    ]


def test_without_a_key_the_way_to_one_is_named() -> None:
    assert found("clear", has_key=False) == [
        ("warning", NO_KEY),
        ("warning", "the salt of 1 tenant in the store: in clear"),
    ]


@pytest.mark.parametrize(
    ("state", "words", "other_words"),
    [("clear", "in clear", "under an older key"), ("older", "under an older key", "in clear")],
)
def test_with_a_key_what_is_outdated_can_be_encrypted(
    state: State, words: str, other_words: str
) -> None:
    ((level, text),) = found(state)

    assert level == "warning"
    assert text.startswith("the salt of 1 tenant ")
    assert words in text
    assert other_words not in text
    assert text.endswith(": run `fhirpub secrets reseal`")


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_key_of_its_user_and_group_is_no_problem(config: Config, mode: int) -> None:
    assert texts(config, key_of(config, mode=mode)) == []


def test_a_key_that_others_can_read_is_named(config: Config) -> None:
    source = key_of(config, mode=0o604)

    assert texts(config, source) == [f"{source.file} can be read by others: chmod o-rwx"]


def test_a_key_next_to_the_store_is_a_problem_in_production_only(config: Config) -> None:
    source = key_of(config)

    assert texts(config, source) == []
    (text,) = texts(in_production(config), source)
    assert text.startswith(f"{source.file}, the key, is next to the store")


def test_a_key_elsewhere_is_no_problem(config: Config, tmp_path: Path) -> None:
    storage = replace(config.storage, keys_file=str(tmp_path / "elsewhere"))
    configured = in_production(replace(config, storage=storage))

    assert texts(configured, key_of(configured)) == []


def test_without_a_file_there_is_nothing_to_look_at(config: Config) -> None:
    assert texts(in_production(config), key_source(config)) == []


async def test_an_encrypted_store_is_in_order(config: Config) -> None:
    source = key_of(config)

    usual = [one async for one in find_secrets(config, created=False)]
    first = [one async for one in find_secrets(config, created=True)]

    ((subject, level, text),) = [(one.subject, one.level, one.text) for one in usual]
    assert (subject, level) == ("secrets", "ok")
    assert text.startswith("signing keys and salts (0) are encrypted, new ones under ")
    created = f"created {source.file}, the key of the secrets in the store: keep a copy"
    assert first == [Finding("secrets", "ok", created)]


async def test_the_file_next_to_the_store_is_named_if_it_has_the_missing_key(
    config: Config, tmp_path: Path
) -> None:
    beside, keys = key_of(config).file, tmp_path / "keys"
    keys.write_text(base64.b64encode(bytes(32)).decode())
    async with open_store(config) as store:
        await store.put_tenant(Tenant("t", "Lab", b"s" * 32, 1))
    configured = replace(config, storage=replace(config.storage, keys_file=str(keys)))

    texts = [one.text async for one in find_secrets(configured, created=False)]

    name = name_of(base64.b64decode(KEY))
    assert f"the key {name} is in {beside}: add its line to {keys}, below the others" in texts


async def test_a_store_with_a_problem_is_not_in_order(config: Config) -> None:
    source = key_of(config, mode=0o604)

    found = [one.text async for one in find_secrets(config, created=False)]

    assert found == [f"{source.file} can be read by others: chmod o-rwx"]
