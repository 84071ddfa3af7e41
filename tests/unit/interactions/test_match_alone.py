"""A condition with an identifier means what was registered under it, not what came with others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.app.context import create_context
from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.errors import SeveralMatch
from fhirpub.interactions.context import Context
from fhirpub.interactions.match import the_match
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import encode
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import a_version, new_member_id
from tests.unit.interactions.patients.people import OTHER, START, TENANT

SYSTEM = "urn:results"
KEY = {"system": SYSTEM, "value": "7"}
CONTEXT = create_context(
    replace(Config(), plugins=PluginsConfig(enabled=["diagnosticreport", "observation"])),
    clock=lambda: START,
)


async def match(store: SqliteStore, *criteria: tuple[str, str], tenant: Any = TENANT) -> str:
    context: Context = replace(CONTEXT, resources=store)
    found = await the_match(
        criteria, resource_type=context.types["Observation"], tenant=tenant, context=context
    )
    return found.id if found else ""


async def alone(store: SqliteStore, **key: str) -> Version:
    """Store an observation that was registered alone, under its identifier."""
    key = {**KEY, **key}
    id_ = TENANT.resource_id("Observation", key["system"], key["value"])
    version = a_version(
        type="Observation",
        id=id_,
        search=encode([("identifiers", key["value"], key["system"]), ("status", "final", "")]),
        **key,
    )
    await store.add(TENANT.id, version)
    return version


async def with_report(store: SqliteStore) -> Version:
    """Store an observation with the same identifier that came with a report."""
    member = a_version(
        type="Observation",
        id=new_member_id(),
        system="",
        value="",
        search=encode([("identifiers", "7", SYSTEM), ("status", "final", "")]),
    )
    await store.add(TENANT.id, a_version(members=(member,)))
    return member


async def test_what_came_with_a_report_is_not_meant(store: SqliteStore) -> None:
    await with_report(store)

    assert await match(store, ("identifier", f"{SYSTEM}|7")) == ""


async def test_what_was_registered_alone_is_meant_beside_it(store: SqliteStore) -> None:
    await with_report(store)
    one = await alone(store)

    assert await match(store, ("identifier", f"{SYSTEM}|7")) == one.id


async def test_any_other_condition_means_both(store: SqliteStore) -> None:
    await with_report(store)
    await alone(store)

    with pytest.raises(SeveralMatch):
        await match(store, ("status", "final"))


async def test_another_identifier_is_not_meant(store: SqliteStore) -> None:
    await alone(store)

    assert await match(store, ("identifier", f"{SYSTEM}|8")) == ""
    assert await match(store, ("identifier", "urn:other|7")) == ""
    assert await match(store, ("identifier", f"{SYSTEM}|7"), tenant=OTHER) == ""


async def test_both_conditions_must_hold(store: SqliteStore) -> None:
    one = await alone(store)
    identifier = ("identifier", f"{SYSTEM}|7")

    assert await match(store, identifier, ("status", "final")) == one.id
    assert await match(store, identifier, ("status", "amended")) == ""
