"""A start with secrets that cannot be read is refused or logged, and keys are read again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.app import secret_checks
from fhirpub.app.secret_checks import follow_keys, report_lost_key, require_readable_secrets
from fhirpub.encryption.cipher import LOST_KEY, NO_KEY, SecretCipher
from fhirpub.errors import ConfigurationError, SecretsUnavailable
from fhirpub.sealed import is_sealed
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.contracts.webhooks.records import an_endpoint
from fhirpub.testing.samples import LAB

OLD, NEW = bytes(32), bytes(range(32))


async def checked(store: SqliteStore) -> list[Any]:
    with capture_logs() as lines:
        await require_readable_secrets(store)
    return [(one["log_level"], one["event"]) for one in lines]


async def test_secrets_that_can_be_read_are_no_problem(store: SqliteStore) -> None:
    store.cipher.use([NEW])
    await store.put_tenant(Tenant.new("Lab", created=1))

    assert await checked(store) == []


async def test_a_missing_key_stops_the_start(store: SqliteStore) -> None:
    store.cipher.use([OLD])
    for name in ("Lab", "Ward"):
        await store.put_tenant(Tenant.new(name, created=1))
    store.cipher.use([NEW])

    with pytest.raises(ConfigurationError, match="the salt of 2 tenants in the store cannot be"):
        await require_readable_secrets(store)


async def test_the_secret_of_a_disabled_tenant_stops_nothing(store: SqliteStore) -> None:
    tenant = Tenant.new("Lab", created=1)
    store.cipher.use([OLD])
    await store.put_tenant(tenant)
    await store.change_tenant(tenant.id, disabled=True)
    store.cipher.use([NEW])

    assert await checked(store) == []


@pytest.mark.parametrize(("keys", "action"), [([], NO_KEY), ([NEW], secret_checks.RESEAL)])
async def test_secrets_in_clear_are_logged_with_what_to_do(
    store: SqliteStore, keys: list[bytes], action: str
) -> None:
    await store.put_tenant(Tenant.new("Lab", created=1))
    store.cipher.use(keys)

    with capture_logs() as lines:
        await require_readable_secrets(store)

    (line,) = lines
    assert (line["log_level"], line["action"]) == ("warning", action)


async def test_secrets_that_are_damaged_are_logged_by_their_owners_and_stop_no_start(
    store: SqliteStore,
) -> None:
    damaged, other = Tenant.new("Lab", created=1), Tenant.new("Clinic", created=2)
    store.cipher.use([NEW])
    for tenant in (damaged, other):
        await store.put_tenant(tenant)
    ((salt,),) = await store._fetch_in_thread(
        "SELECT salt FROM tenant WHERE id = ?", (damaged.id,)
    )
    changed = salt[:-1] + bytes([salt[-1] ^ 1])
    await store._execute("UPDATE tenant SET salt = ? WHERE id = ?", (changed, damaged.id))

    with capture_logs() as lines:
        await require_readable_secrets(store)

    (line,) = lines
    assert (line["log_level"], line["event"]) == ("error", "secret damaged in the store")
    assert (line["purpose"], line["owner"]) == ("salt", damaged.id)


async def test_all_that_is_wrong_with_secrets_is_logged(store: SqliteStore) -> None:
    store.cipher.use([])
    await store.put_tenant(Tenant.new("in clear", created=1))
    store.cipher.use([NEW])
    for name in ("Lab", "Clinic"):
        await store.put_tenant(Tenant.new(name, created=2))
    sealed = [one for one in await store.stored_secrets() if is_sealed(one.value)]
    for one in sealed:
        damaged = one.value[:-1] + bytes([one.value[-1] ^ 1])
        assert await store.replace_stored_secret(one, damaged)

    with capture_logs() as lines:
        await require_readable_secrets(store)

    owners = {one["owner"] for one in lines if one["event"] == "secret damaged in the store"}
    assert owners == {one.owner for one in sealed}
    assert [one["event"] for one in lines][2:] == ["secrets in the store are in clear"]


async def test_endpoints_without_a_key_are_logged_at_the_start(store: SqliteStore) -> None:
    await store.put_endpoint(LAB, an_endpoint())
    store.cipher.use([])

    assert await checked(store) == [("error", "no webhook can be signed")]


@pytest.mark.parametrize(("keys", "is_logged"), [([], True), ([NEW], False)])
async def test_endpoints_without_a_key_are_logged(
    store: SqliteStore, keys: list[bytes], *, is_logged: bool
) -> None:
    await store.put_endpoint(LAB, an_endpoint())
    store.cipher.use(keys)

    with capture_logs() as lines:
        await report_lost_key(store)

    found = [(line["log_level"], line["reason"]) for line in lines]
    assert found == ([("error", LOST_KEY)] if is_logged else [])


async def test_a_store_without_endpoints_needs_no_key(store: SqliteStore) -> None:
    with capture_logs() as lines:
        await report_lost_key(store)

    assert lines == []


async def followed(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[], list[bytes]], rounds: int
) -> list[Any]:
    """Follow keys for some rounds; return what was logged."""
    left = asyncio.Semaphore(rounds)
    done = asyncio.Event()

    async def pause(seconds: float) -> None:
        assert seconds == 5.0
        if left.locked():
            done.set()
            await asyncio.Future()
        await left.acquire()

    own = SimpleNamespace(sleep=pause, to_thread=asyncio.to_thread)
    monkeypatch.setattr(secret_checks, "asyncio", own)
    with capture_logs() as lines:
        following = asyncio.create_task(follow_keys(SecretCipher([OLD], read=read)))
        await asyncio.wait_for(done.wait(), 30)
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
    return list(lines)


async def test_a_new_key_is_logged_once_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = await followed(monkeypatch, lambda: [NEW], 3)

    (line,) = lines
    assert line["log_level"] == "info"
    assert line["event"] == "keys of the store's secrets read again"
    assert line["names"] == list(SecretCipher([NEW]).names)


async def test_keys_that_are_the_same_are_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await followed(monkeypatch, lambda: [OLD], 2) == []


async def test_a_problem_is_logged_once_until_it_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problems: list[Exception | None] = [
        ConfigurationError("a"),
        ConfigurationError("a"),
        SecretsUnavailable("b"),
        None,
        SecretsUnavailable("b"),
    ]
    turn = iter(problems)

    def read() -> list[bytes]:
        if problem := next(turn):
            raise problem
        return [OLD]

    lines = await followed(monkeypatch, read, len(problems))

    assert [one["reason"] for one in lines] == ["a", "b", "b"]
