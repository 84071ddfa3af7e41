"""The store on MongoDB keeps the contract of every store, on a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fhirpub.storage.mongodb import schema
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
    """Its fixtures are those of this module, but for the database.

    Collections and indexes take far longer to make than anything that is done with them here.
    """

    @pytest.fixture
    def url(self, address: str, shared: Database) -> Iterator[str]:
        """Return where it is, with nothing in it."""
        yield f"mongodb://{address}/{shared.name}?replicaSet=rs0"
        for name in {*schema.COLLECTIONS} - {schema.STORE}:
            shared[name].delete_many({})
        shared[schema.STORE].update_one({"_id": schema.KEYS}, {"$set": {"keys": []}})
