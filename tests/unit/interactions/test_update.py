"""An update that another one overtakes begins again with the version of the other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.errors import VersionConflict
from fhirpub.interactions.context import Context
from fhirpub.interactions.update import Update, update
from fhirpub.plugin_host.loader import load
from fhirpub.storage.contract import Version
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import LAB, a_version, successor

REPORT = load(["diagnosticreport"])["DiagnosticReport"]
TENANT = Tenant(id=LAB, name="Lab", salt=b"s" * 32, created=0)


async def test_a_condition_holds_for_the_very_version_that_is_replaced(
    store: SqliteStore,
) -> None:
    first = a_version()
    await store.add(LAB, first)

    async def newest() -> Version:
        found = await store.latest(LAB, first.id)
        assert found is not None
        return found

    def check(version: Version) -> None:
        if not version.is_first:
            raise VersionConflict(target="1", current=version.version)

    async def prepared(version: Version) -> Update:
        await store.add(LAB, successor(first, status="amended"))  # another one is quicker
        return Update(successor(version, status="corrected"), ())

    context: Any = SimpleNamespace(resources=store, added=lambda: None)
    with pytest.raises(VersionConflict):
        await update(
            newest_of=newest,
            check=check,
            resource_type=REPORT,
            tenant=TENANT,
            context=cast("Context", context),
            prepared=prepared,
        )

    assert (await newest()).status == "amended"
