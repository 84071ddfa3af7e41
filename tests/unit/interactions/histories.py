"""Reports with versions in a real store, and their histories."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from types import SimpleNamespace
from typing import Any, cast

from fhirpub.config.settings import Config, FhirConfig
from fhirpub.interactions.context import Context
from fhirpub.interactions.history import PARAMETERS, history, history_of_type
from fhirpub.interactions.versions import Listing
from fhirpub.plugin_host.loader import load
from fhirpub.storage.contract import Version
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import LAB, a_version
from fhirpub.testing.samples import OTHER as OTHER_LAB

REPORT = load(["diagnosticreport"])["DiagnosticReport"]
TENANT = Tenant(id=LAB, name="Lab", salt=b"s" * 32, created=0)
OTHER = Tenant(id=OTHER_LAB, name="Other", salt=b"t" * 32, created=0)
BASE = "http://localhost:8080/fhir/r4"
START = 1_767_225_600_000  # 2026-01-01
DAY = 86_400_000


def context_of(store: Any, **settings: Any) -> Context:
    found = SimpleNamespace(
        config=replace(Config(), fhir=FhirConfig(**settings)),
        resources=store,
        fhir_url=BASE,
        default_zone=UTC,
        types={"DiagnosticReport": REPORT},
        searched={"DiagnosticReport": SimpleNamespace(member=None)},
    )
    return cast("Context", found)


def body_of(number: int) -> bytes:
    return b'{"resourceType":"DiagnosticReport","meta":{"versionId":"%d"}}' % number


def first_version(**changes: Any) -> Version:
    times = {"created": START, "updated": START}
    return a_version(**{**times, "body": body_of(1), **changes})


def later(first: Version, number: int) -> Version:
    updated = START + (number - 1) * DAY
    return replace(first, version=number, updated=updated, body=body_of(number))


async def versions_in(store: SqliteStore, count: int, *, tenant: Tenant = TENANT) -> Version:
    """Store a report with so many versions, one a day, and return the first one."""
    first = first_version()
    await store.add(tenant.id, first)
    for number in range(2, count + 1):
        await store.add(tenant.id, later(first, number))
    return first


def asked(**given: str) -> dict[str, str]:
    return dict.fromkeys(PARAMETERS, "") | given


async def of_one(context: Context, first: Version, **given: str) -> Listing:
    return await history(
        first.id, asked(**given), resource_type=REPORT, tenant=TENANT, context=context
    )


async def of_all(context: Context, *, tenant: Tenant = TENANT, **given: str) -> Listing:
    return await history_of_type(
        asked(**given), resource_type=REPORT, tenant=tenant, context=context
    )


def numbers(listing: Listing) -> list[int]:
    return [int(body.partition(b'versionId":"')[2].partition(b'"')[0]) for body in listing.bodies]


def links(listing: Listing, context: Context) -> dict[str, str]:
    return {link["relation"]: link["url"] for link in listing.bundle(context)["link"]}
