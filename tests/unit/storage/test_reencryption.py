"""Salts and private keys get under the first key, whatever else happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fhirpub.encryption.cipher import NO_KEY, SecretCipher, name_of
from fhirpub.errors import SecretsUnavailable
from fhirpub.sealed import is_sealed
from fhirpub.storage.reencryption import (
    in_words,
    key_names,
    missing_key,
    outdated_secrets,
    reencrypt,
    state_of,
)
from fhirpub.storage.secret_contract import StoredSecret
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.store_contract import a_key

OLD, NEW, LOST = bytes(32), bytes(range(32)), b"l" * 32
TENANTS = [Tenant.new(str(number), created=number) for number in range(20)]
KEYS = [a_key("a", retired=9), replace(a_key("b"), environment="production")]


class WatchedStore(SqliteStore):
    """A store in which a tenant is disabled while its salt is replaced.

    It counts what happens at the same time, and may refuse to replace a secret, as if another
    process were always quicker.
    """

    meddles = refuses = False
    in_progress = most_in_progress = listed = 0

    def __init__(self, path: Path) -> None:
        super().__init__(path, deadline_seconds=10)
        self.has_listed = asyncio.Event()

    async def stored_secrets(self) -> Sequence[StoredSecret]:
        self.listed += 1
        secrets = await super().stored_secrets()
        self.has_listed.set()
        return secrets

    async def replace_stored_secret(self, secret: StoredSecret, value: bytes) -> bool:
        self.in_progress += 1
        self.most_in_progress = max(self.most_in_progress, self.in_progress)
        replaced = not self.refuses and await self._replace(secret, value)
        self.in_progress -= 1
        return replaced

    async def _replace(self, secret: StoredSecret, value: bytes) -> bool:
        if self.meddles and secret.purpose == "salt":
            tenant = await self.tenant(secret.owner)
            assert tenant is not None
            await self.put_tenant(replace(tenant, disabled=True))
        return await super().replace_stored_secret(secret, value)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[WatchedStore]:
    store = WatchedStore(tmp_path / "f.db")
    await store.start()
    yield store
    await store.stop()


async def fill(store: SqliteStore) -> None:
    for tenant in TENANTS:
        await store.put_tenant(tenant)
    for key in KEYS:
        await store.put_signing_key(key)


async def everything(store: SqliteStore) -> list[object]:
    keys = [*await store.signing_keys("sandbox"), *await store.signing_keys("production")]
    return [*await store.tenants(), *keys]


@pytest.mark.parametrize("before", [[], [OLD]])
async def test_everything_gets_under_the_first_key_and_stays_the_same(
    store: WatchedStore, before: list[bytes]
) -> None:
    store.cipher.use(before)
    await fill(store)
    store.cipher.use([NEW, OLD])

    changed = await reencrypt(store)

    assert changed == {"salt": 20, "private key": 2}
    store.cipher.use([NEW])
    assert {state_of(store, one) for one in await store.stored_secrets()} == {"first"}
    assert await everything(store) == [*TENANTS, *KEYS]


async def test_a_repetition_changes_nothing(store: WatchedStore) -> None:
    await fill(store)
    store.cipher.use([NEW])
    await reencrypt(store)
    before = await store.stored_secrets()

    assert not await reencrypt(store)
    assert await store.stored_secrets() == before
    assert not await outdated_secrets(store)


async def test_what_no_other_process_changes_is_replaced_in_one_round(store: WatchedStore) -> None:
    await fill(store)
    store.cipher.use([NEW])

    await reencrypt(store)

    assert store.listed == 2


async def test_no_more_than_sixteen_are_replaced_at_the_same_time(store: WatchedStore) -> None:
    await fill(store)
    store.cipher.use([NEW])

    await reencrypt(store)

    assert store.most_in_progress == 16


async def test_one_that_another_process_is_always_quicker_with_is_left_after_five_rounds(
    store: WatchedStore,
) -> None:
    await store.put_tenant(TENANTS[0])
    store.cipher.use([NEW])
    store.refuses = True

    assert await reencrypt(store) == {}

    assert store.listed == 5
    assert len(await outdated_secrets(store)) == 1


async def test_what_is_under_the_first_key_is_read_once_and_left(store: WatchedStore) -> None:
    store.cipher.use([NEW, OLD])
    await fill(store)

    assert await reencrypt(store) == {}

    assert (store.listed, store.most_in_progress) == (1, 0)


async def test_outdated_are_those_in_clear_and_under_an_older_key_that_is_here(
    store: WatchedStore,
) -> None:
    for tenant, keys in zip(TENANTS[:4], ([], [OLD], [LOST], [NEW]), strict=True):
        store.cipher.use(keys)
        await store.put_tenant(tenant)
    store.cipher.use([NEW, OLD])

    secrets = await store.stored_secrets()

    states = {secret.owner: state_of(store, secret) for secret in secrets}
    assert [states[tenant.id] for tenant in TENANTS[:4]] == ["clear", "older", "missing", "first"]
    outdated = {secret.owner for secret in await outdated_secrets(store)}
    assert outdated == {tenant.id for tenant in TENANTS[:2]}


async def test_what_was_moved_to_another_owner_stays_as_it_is(store: WatchedStore) -> None:
    store.cipher.use([OLD])
    for tenant in TENANTS[:2]:
        await store.put_tenant(tenant)
    one, other = await store.stored_secrets()
    await store.replace_stored_secret(one, other.value)
    store.cipher.use([NEW, OLD])

    assert await reencrypt(store) == {"salt": 1}

    values = {secret.owner: secret.value for secret in await store.stored_secrets()}
    assert values[one.owner] == other.value


async def test_what_cannot_be_decrypted_stays_as_it_is(store: WatchedStore) -> None:
    store.cipher.use([LOST])
    await store.put_tenant(TENANTS[0])
    (before,) = await store.stored_secrets()
    store.cipher.use([NEW])
    await store.put_tenant(TENANTS[1])

    assert not await reencrypt(store)
    assert before in await store.stored_secrets()


async def test_without_a_key_it_is_refused(store: WatchedStore) -> None:
    await fill(store)

    with pytest.raises(SecretsUnavailable) as caught:
        await reencrypt(store)

    assert caught.value.reason == NO_KEY


async def test_a_tenant_that_is_disabled_at_the_same_time_stays_disabled(
    store: WatchedStore,
) -> None:
    await fill(store)
    store.cipher.use([OLD])  # a process with another first key puts the tenants
    store.meddles = True
    other = SqliteStore(store._path, deadline_seconds=10, cipher=SecretCipher([NEW, OLD]))
    await other.start()

    async def follow() -> None:
        await store.has_listed.wait()  # what the other process has replaced is not listed any more
        await reencrypt(other)

    await asyncio.gather(reencrypt(store), follow())
    await reencrypt(other)

    assert all(tenant.disabled for tenant in await other.tenants())
    assert not await outdated_secrets(other)
    assert {tenant.salt for tenant in await other.tenants()} == {one.salt for one in TENANTS}
    await other.stop()


async def test_racing_processes_end_with_every_secret_once(store: WatchedStore) -> None:
    await fill(store)
    store.cipher.use([NEW])
    other = SqliteStore(store._path, deadline_seconds=10, cipher=SecretCipher([NEW]))
    await other.start()

    one, two = await asyncio.gather(*(reencrypt(each) for each in (store, other)))

    assert (one + two).total() == 22
    assert all(is_sealed(secret.value) for secret in await store.stored_secrets())
    assert await everything(other) == [*TENANTS, *KEYS]
    await other.stop()


@pytest.mark.parametrize(
    ("salts", "keys", "words"),
    [
        (0, 0, ""),
        (1, 0, "the salt of 1 tenant"),
        (2, 0, "the salt of 2 tenants"),
        (0, 1, "1 signing key"),
        (0, 2, "2 signing keys"),
        (2, 1, "the salt of 2 tenants and 1 signing key"),
    ],
)
def test_secrets_are_counted_in_words(salts: int, keys: int, words: str) -> None:
    salt = StoredSecret(purpose="salt", owner="t", value=b"")
    key = StoredSecret(purpose="private key", owner="sandbox/k", value=b"")

    assert in_words([salt] * salts + [key] * keys) == words


def test_the_names_of_keys_are_listed_once_in_their_order() -> None:
    ciphers = [SecretCipher([key]) for key in (OLD, NEW, OLD)]
    secrets = [
        StoredSecret(purpose="salt", owner="t", value=each.seal(b"s", owner="t", purpose="salt"))
        for each in ciphers
    ]

    assert key_names(secrets) == ", ".join(sorted({name_of(OLD), name_of(NEW)}))


def test_an_error_about_lost_keys_names_them_and_what_to_do() -> None:
    sealed = SecretCipher([LOST]).seal(b"s", owner="t", purpose="salt")
    secrets = [StoredSecret(purpose="salt", owner="t", value=sealed)] * 2

    assert str(missing_key(secrets)) == (
        "the salt of 2 tenants in the store cannot be decrypted: the key "
        f"{name_of(LOST)} is not here; put the file that has it back, or name its copy in "
        "[storage] keys_file; where other keys are named, add its line below theirs; a new key "
        "cannot decrypt them"
    )
