"""A database says which releases may use it, and no other one does."""

from __future__ import annotations

import pytest

from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage.mongodb import schema
from fhirpub.storage.mongodb.schema import SCHEMA_VERSION
from fhirpub.storage.store import Store
from fhirpub.storage.upgrades.versions import UpgradeNeeded
from fhirpub.testing.store_contract import LAB, Reopen, a_version
from tests.storage.mongodb.helpers import Database, store_of

NEWER = SCHEMA_VERSION + 6


def mark(database: Database, **fields: int) -> None:
    """Write what the upgrade by another release writes."""
    database[schema.STORE].replace_one({"_id": schema.SCHEMA}, {"_id": schema.SCHEMA, **fields})


async def test_a_database_of_a_newer_release_that_this_one_may_use_stays_as_it_is(
    store: Store, reopen: Reopen, database: Database
) -> None:
    mark(database, version=NEWER, usable_from=SCHEMA_VERSION)
    database[schema.VERSION].create_index("later", name="of_the_newer_release")
    before = {name: database[name].index_information() for name in schema.COLLECTIONS}

    again = await reopen()

    assert await again.add(LAB, a_version())
    await again.check()
    found = database[schema.STORE].find_one({"_id": schema.SCHEMA})
    assert found == {"_id": schema.SCHEMA, "version": NEWER, "usable_from": SCHEMA_VERSION}
    assert {name: database[name].index_information() for name in schema.COLLECTIONS} == before


async def test_a_newer_database_without_an_index_that_this_release_needs_is_refused(
    store: Store, url: str, database: Database
) -> None:
    mark(database, version=NEWER, usable_from=SCHEMA_VERSION)
    database[schema.VERSION].drop_index(schema.BY_TIME)

    with pytest.raises(ConfigurationError, match=f"{schema.BY_TIME} is missing"):
        await store_of(url).start()


async def test_a_database_of_a_newer_release_that_this_one_must_not_use_is_refused(
    store: Store, url: str, database: Database
) -> None:
    mark(database, version=NEWER, usable_from=SCHEMA_VERSION + 1)

    with pytest.raises(ConfigurationError, match=f"{NEWER} of a newer release.*{SCHEMA_VERSION}:"):
        await store_of(url).start()


async def test_an_upgrade_by_a_newer_release_is_found_by_the_check_of_an_open_database(
    store: Store, database: Database
) -> None:
    await store.check()
    mark(database, version=NEWER)

    with pytest.raises(StoreUnavailable) as refusal:
        await store.check()

    assert "of a newer release" in refusal.value.reason


async def test_an_older_database_is_not_upgraded_where_that_is_not_asked_for(
    store: Store, url: str, database: Database
) -> None:
    mark(database, version=3)
    looking = store_of(url)
    looking.upgrades = False

    with pytest.raises(UpgradeNeeded) as refusal:
        await looking.start()

    assert (refusal.value.found, refusal.value.own) == (3, SCHEMA_VERSION)
    found = database[schema.STORE].find_one({"_id": schema.SCHEMA})
    assert found == {"_id": schema.SCHEMA, "version": 3}
