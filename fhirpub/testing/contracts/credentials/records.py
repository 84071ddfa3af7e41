"""Tests of tenants, clients and signing keys."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from fhirpub.storage.contract import (
    Client,
    ClientSecret,
)
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant
from fhirpub.testing.contracts.store.records import (
    Reopen,
    a_client,
    a_key,
)
from fhirpub.testing.samples import (
    LAB,
    OTHER,
    new_id,
)

KEY = b"k" * 32
PEM = b"-----BEGIN PRIVATE KEY-----"
_TENANT = Tenant.new("Laboratorio Uno", created=5)


_OPTIONAL = [
    ("networks", ("192.0.2.0/24",)),
    ("jwks", "{}"),
    ("jwks_url", "https://lab.example.org/jwks"),
]


def _without_and_with(field: str, value: object) -> tuple[Client, Client]:
    """Return a client without a field, and the same with it."""
    client = a_client()
    return client, replace(client, **{field: value})  # type: ignore[arg-type]


class CredentialContract:
    """Tenants, clients and signing keys are stored exactly; racing changes have one winner."""

    async def test_a_tenant_comes_back_as_it_was_put(self, store: Store, reader: Store) -> None:
        tenant = replace(Tenant.new("Labor Süd 🩺", created=5), disabled=True)
        await store.put_tenant(tenant)

        assert await reader.tenant(tenant.id) == tenant
        assert await reader.tenants() == [tenant]

    async def test_a_tenant_put_again_is_replaced(self, store: Store) -> None:
        tenant = Tenant.new("before", created=5)
        await store.put_tenant(tenant)

        await store.put_tenant(replace(tenant, name="after", disabled=True))

        assert await store.tenants() == [replace(tenant, name="after", disabled=True)]

    async def test_of_concurrent_additions_of_a_tenant_one_counts(self, store: Store) -> None:
        tenants = [replace(_TENANT, name=name) for name in ("one", "two", "three")]

        added = await asyncio.gather(*map(store.add_tenant, tenants))

        assert sorted(added) == [False, False, True]
        assert await store.tenants() == [tenants[added.index(True)]]

    async def test_a_change_of_a_tenant_leaves_the_rest_as_it_is(
        self, store: Store, reader: Store
    ) -> None:
        await store.put_tenant(_TENANT)

        await store.change_tenant(_TENANT.id, disabled=True)
        await store.change_tenant(_TENANT.id, name="Labor Süd")

        assert await reader.tenant(_TENANT.id) == replace(_TENANT, name="Labor Süd", disabled=True)

    async def test_concurrent_changes_of_a_tenant_are_all_kept(self, store: Store) -> None:
        await store.put_tenant(_TENANT)

        await asyncio.gather(
            store.change_tenant(_TENANT.id, disabled=True),
            store.change_tenant(_TENANT.id, name="Labor Süd"),
        )

        assert await store.tenant(_TENANT.id) == replace(_TENANT, name="Labor Süd", disabled=True)

    async def test_a_disabled_tenant_is_enabled_by_a_change(self, store: Store) -> None:
        await store.put_tenant(replace(_TENANT, disabled=True))

        await store.change_tenant(_TENANT.id, disabled=False)

        assert await store.tenant(_TENANT.id) == _TENANT

    async def test_a_change_of_nothing_changes_nothing(self, store: Store) -> None:
        tenant = replace(_TENANT, disabled=True)
        await store.put_tenant(tenant)

        await store.change_tenant(tenant.id)

        assert await store.tenant(tenant.id) == tenant

    async def test_a_change_of_a_tenant_leaves_all_others_as_they_are(self, store: Store) -> None:
        other = Tenant.new("Laboratorio Dos", created=6)
        for tenant in (_TENANT, other):
            await store.put_tenant(tenant)

        await store.change_tenant(_TENANT.id, name="Labor Süd", disabled=True)

        assert await store.tenant(other.id) == other

    async def test_a_change_of_an_unknown_tenant_adds_none(self, store: Store) -> None:
        await store.change_tenant(_TENANT.id, name="Labor Süd")

        assert await store.tenant(_TENANT.id) is None

    async def test_of_concurrent_additions_of_a_client_one_counts(self, store: Store) -> None:
        first = a_client()
        clients = [replace(first, name=name) for name in ("one", "two", "three")]

        added = await asyncio.gather(*map(store.add_client, clients))

        assert sorted(added) == [False, False, True]
        assert await store.clients() == [clients[added.index(True)]]

    async def test_tenants_are_listed_oldest_first(self, store: Store) -> None:
        tenants = [Tenant.new("t", created=created) for created in (30, 10, 20)]
        for tenant in tenants:
            await store.put_tenant(tenant)
        await store.put_tenant(tenants[1])

        assert [tenant.created for tenant in await store.tenants()] == [10, 20, 30]

    async def test_what_was_created_in_one_moment_is_listed_in_the_order_of_ids(
        self, store: Store
    ) -> None:
        ids = [f"{number}1111111-1111-4111-8111-111111111111" for number in (3, 1, 2)]
        for id_ in ids:
            await store.put_tenant(replace(_TENANT, id=id_))
            await store.put_client(a_client(id=id_, created=5))
            await store.put_signing_key(a_key(id_, created=5))

        keys = await store.signing_keys("sandbox")
        assert [tenant.id for tenant in await store.tenants()] == sorted(ids)
        assert [client.id for client in await store.clients()] == sorted(ids)
        assert [key.kid for key in keys] == sorted(ids)

    async def test_a_client_comes_back_as_it_was_put(self, store: Store, reader: Store) -> None:
        client = a_client(
            name="Système\n",
            secrets=(ClientSecret(bytes(range(32))), ClientSecret(b"\xff" * 32, 7)),
            scopes=("system/DiagnosticReport.write", "system/*.read"),
            disabled=True,
            networks=("192.0.2.0/24", "2001:db8::/32"),
            jwks='{"keys":[]}',
            jwks_url="https://lab.example.org/jwks",
        )
        await store.put_client(client)

        assert await reader.client(client.id) == client
        assert await reader.clients() == [client]

    async def test_a_client_put_again_is_replaced(self, store: Store) -> None:
        client = a_client(secrets=(ClientSecret(b"a"),), scopes=("x",))
        await store.put_client(client)

        await store.put_client(replace(client, secrets=(ClientSecret(b"b"),), scopes=()))

        assert await store.clients() == [replace(client, secrets=(ClientSecret(b"b"),), scopes=())]

    async def test_a_client_is_replaced_as_it_was_read(self, store: Store) -> None:
        client = a_client(
            secrets=(ClientSecret(b"a", 7), ClientSecret(b"b")), scopes=("system/*.rs",)
        )
        await store.put_client(client)

        assert await store.replace_client(replace(client, disabled=True), over=client)

        assert await store.client(client.id) == replace(client, disabled=True)

    async def test_a_client_that_has_changed_meanwhile_is_not_replaced(self, store: Store) -> None:
        client = a_client()
        disabled = replace(client, disabled=True)
        await store.put_client(disabled)

        assert not await store.replace_client(replace(client, name="other"), over=client)

        assert await store.client(client.id) == disabled

    @pytest.mark.parametrize(("field", "value"), _OPTIONAL)
    @pytest.mark.parametrize("filled", [False, True])
    async def test_a_client_is_not_replaced_over_another_value_of_an_optional_field(
        self, store: Store, field: str, value: object, *, filled: bool
    ) -> None:
        empty, full = _without_and_with(field, value)
        client, read = (full, empty) if filled else (empty, full)
        await store.put_client(client)

        assert not await store.replace_client(replace(read, name="other"), over=read)

        assert await store.client(client.id) == client

    @pytest.mark.parametrize(("field", "value"), _OPTIONAL)
    @pytest.mark.parametrize("filled", [False, True])
    async def test_an_optional_field_of_a_client_is_replaced(
        self, store: Store, field: str, value: object, *, filled: bool
    ) -> None:
        empty, full = _without_and_with(field, value)
        client, changed = (full, empty) if filled else (empty, full)
        await store.put_client(client)

        assert await store.replace_client(changed, over=client)

        assert await store.client(client.id) == changed

    async def test_an_unknown_client_is_not_replaced(self, store: Store) -> None:
        client = a_client()

        assert not await store.replace_client(client, over=client)

        assert await store.client(client.id) is None

    async def test_of_racing_replacements_of_a_client_one_succeeds(
        self, store: Store, other_store: Store
    ) -> None:
        client = a_client()
        await store.put_client(client)

        racing = [
            item.replace_client(replace(client, name=str(number)), over=client)
            for number, item in enumerate((store, other_store, store, other_store))
        ]
        assert sorted(await asyncio.gather(*racing)) == [False, False, False, True]

    async def test_clients_are_listed_oldest_first_of_all_or_of_one_tenant(
        self, store: Store
    ) -> None:
        for created, tenant in ((3, LAB), (1, OTHER), (2, LAB)):
            await store.put_client(a_client(created=created, tenant=tenant))

        assert [client.created for client in await store.clients()] == [1, 2, 3]
        assert [client.created for client in await store.clients(tenant=LAB)] == [2, 3]
        assert await store.clients(tenant=new_id()) == []

    async def test_unknown_access_records_are_none(self, store: Store) -> None:
        assert await store.tenant(new_id()) is None
        assert await store.client(new_id()) is None
        assert await store.signing_keys("sandbox") == []

    async def test_keys_come_back_as_they_were_put_oldest_first_in_their_environment(
        self, store: Store, other_store: Store
    ) -> None:
        old = a_key("a", created=2, private_pem=bytes(range(256)), retired=9)
        new = a_key("b", created=1, algorithm="RS256")
        await store.put_signing_key(old)
        await store.put_signing_key(new)
        await store.put_signing_key(a_key("c", environment="production"))

        assert await other_store.signing_keys("sandbox") == [new, old]

    async def test_a_key_put_again_is_replaced(self, store: Store) -> None:
        await store.put_signing_key(a_key("a"))

        await store.put_signing_key(a_key("a", retired=4))

        assert await store.signing_keys("sandbox") == [a_key("a", retired=4)]

    async def test_rotation_adds_a_key_and_retires_the_others(self, store: Store) -> None:
        retired, other = a_key("a", retired=2), a_key("p", environment="production")
        for key in (retired, a_key("b"), a_key("c"), other):
            await store.put_signing_key(key)
        new = a_key("d", created=50)

        assert await store.rotate_signing_key(new, expected=["c", "b"]) is True
        keys = await store.signing_keys("sandbox")
        assert keys == [retired, a_key("b", retired=50), a_key("c", retired=50), new]
        assert await store.signing_keys("production") == [other]

    async def test_the_first_key_is_added_by_a_rotation_from_none(self, store: Store) -> None:
        assert await store.rotate_signing_key(a_key("a"), expected=[]) is True
        assert await store.signing_keys("sandbox") == [a_key("a")]

    @pytest.mark.parametrize("expected", [[], ["b"], ["a", "b"], ["old"], ["a", "old"]])
    async def test_a_rotation_that_expects_other_keys_does_nothing(
        self, store: Store, expected: list[str]
    ) -> None:
        keys = [a_key("a"), a_key("old", retired=3)]
        for key in keys:
            await store.put_signing_key(key)

        assert await store.rotate_signing_key(a_key("new"), expected=expected) is False
        assert await store.signing_keys("sandbox") == keys

    async def test_of_racing_rotations_one_succeeds(
        self, store: Store, other_store: Store
    ) -> None:
        await store.put_signing_key(a_key("first"))

        rotated = await asyncio.gather(
            *(
                item.rotate_signing_key(a_key(f"{n}", created=5 + n), expected=["first"])
                for n, item in enumerate([store, other_store] * 10)
            )
        )

        assert rotated.count(True) == 1
        unretired = [key.kid for key in await store.signing_keys("sandbox") if not key.retired]
        assert unretired == [str(rotated.index(True))]

    async def test_access_records_are_there_after_a_restart(
        self, store: Store, reopen: Reopen
    ) -> None:
        tenant, client = Tenant.new("Lab", created=1), a_client()
        await store.put_tenant(tenant)
        await store.put_client(client)
        await store.put_signing_key(a_key("a"))
        await store.stop()

        again = await reopen()

        assert await again.tenant(tenant.id) == tenant
        assert await again.client(client.id) == client
        assert await again.signing_keys("sandbox") == [a_key("a")]
