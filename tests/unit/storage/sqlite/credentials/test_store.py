"""Signing keys are rotated over those that are expected, and secrets in use are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.contracts.store.records import a_client, a_key


async def retired(store: SqliteStore, environment: str = "sandbox") -> dict[str, int | None]:
    return {one.kid: one.retired for one in await store.signing_keys(environment)}


@pytest.fixture
async def keys(store: SqliteStore) -> SqliteStore:
    """A store with two keys of this environment and one of another."""
    for kid in ("a", "b"):
        await store.put_signing_key(a_key(kid, created=1))
    await store.put_signing_key(a_key("c", environment="production", created=1))
    return store


async def test_a_rotation_retires_all_keys_of_its_environment(keys: SqliteStore) -> None:
    assert await keys.rotate_signing_key(a_key("new", created=7), expected=["b", "a"])

    assert await retired(keys) == {"a": 7, "b": 7, "new": None}
    assert await retired(keys, "production") == {"c": None}


@pytest.mark.parametrize("expected", [[], ["a"], ["a", "b", "c"], ["x", "b"]])
async def test_a_rotation_over_other_keys_than_those_expected_changes_nothing(
    keys: SqliteStore, expected: Sequence[str]
) -> None:
    assert not await keys.rotate_signing_key(a_key("new", created=7), expected=expected)

    assert await retired(keys) == {"a": None, "b": None}


async def test_a_retired_key_stays_retired_since_then(keys: SqliteStore) -> None:
    await keys.rotate_signing_key(a_key("d", created=7), expected=["a", "b"])
    await keys.rotate_signing_key(a_key("e", created=9), expected=["d"])

    assert await retired(keys) == {"a": 7, "b": 7, "d": 9, "e": None}


async def test_secrets_are_in_use_of_tenants_that_are_enabled_and_keys_that_sign(
    keys: SqliteStore,
) -> None:
    tenants = [Tenant.new(name, created=1) for name in ("Lab", "Ward")]
    for tenant in tenants:
        await keys.put_tenant(tenant)
    await keys.change_tenant(tenants[1].id, disabled=True)
    await keys.rotate_signing_key(a_key("new", created=7), expected=["a", "b"])

    used = {one.owner: one.in_use for one in await keys.stored_secrets()}

    assert used == {
        tenants[0].id: True,
        tenants[1].id: False,
        "sandbox/a": False,
        "sandbox/b": False,
        "sandbox/new": True,
        "production/c": True,
    }


async def test_a_client_is_replaced_if_it_is_what_was_read(store: SqliteStore) -> None:
    first = a_client(name="1")
    second, third = [replace(first, name=name) for name in "23"]
    await store.put_client(first)

    assert not await store.replace_client(third, over=second)
    assert await store.replace_client(second, over=first)
    assert not await store.replace_client(third, over=first)
    assert await store.client(first.id) == second
