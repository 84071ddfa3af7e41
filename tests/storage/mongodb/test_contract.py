"""The MongoDB store fulfils the contract of every store, on a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fhirpub.storage.mongodb import schema
from fhirpub.storage.store import Store
from fhirpub.storage.upgrades.versions import SchemaVersion
from fhirpub.testing.store_contract import (
    StoreContract,
    new_id,
)
from tests.storage.mongodb.helpers import (
    Admin,
    Database,
)


@pytest.fixture(scope="module")
def shared(admin: Admin) -> Iterator[Database]:
    """The database of all tests of the contract."""
    shared = admin[f"t{new_id()}"]
    yield shared
    admin.drop_database(shared.name)


class TestMongoStore(StoreContract):
    """The contract with the fixtures of this module, except for the database.

    Creating collections and indexes takes far longer than the tests themselves.
    """

    @pytest.fixture
    def url(self, address: str, shared: Database) -> Iterator[str]:
        """Return the URL of the emptied database."""
        yield f"mongodb://{address}/{shared.name}?replicaSet=rs0"
        for name in {*schema.COLLECTIONS} - {schema.STORE}:
            shared[name].delete_many({})
        shared[schema.STORE].update_one({"_id": schema.KEYS}, {"$set": {"keys": []}})

    async def test_the_version_of_the_schema_is_what_the_last_upgrade_wrote(
        self, store: Store
    ) -> None:
        version = await store.schema_version()

        assert version == SchemaVersion(schema.SCHEMA_VERSION, schema.USABLE_FROM)
