"""What is used of the limits of a tenant or client now, and how many endpoints there are."""

from __future__ import annotations

import pytest

from fhirpub.administration import clients
from fhirpub.config.quotas import QuotasConfig
from fhirpub.console.operators.records import show_client, show_tenant
from fhirpub.storage.quota_contract import QuotaCount
from fhirpub.testing.contracts.webhooks.records import an_endpoint
from tests.unit.administration.office import Office
from tests.unit.console.operators.desk import a_visit, cells_of
from tests.unit.console.pages.visiting import as_page

MINUTE = 60_000
LIMITS = QuotasConfig(tenant_requests_per_minute=600, client_requests_per_minute=60)


async def use(office: Office, owner: str, quota: str, used: int, *, ago: int = 0) -> None:
    """Store what one process has counted, in this minute or an earlier one."""
    now = office.clock() - ago
    until = office.clock() + MINUTE
    period = now - now % MINUTE
    count = QuotaCount(owner=owner, quota=quota, period=period, until=until, used=used)
    await office.store.put_quota_counts(f"p-{ago}", [count])


async def test_what_a_tenant_has_used_in_this_minute_is_shown(office: Office, lab: str) -> None:
    await use(office, lab, "tenant_requests_per_minute", 7)
    await use(office, lab, "tenant_requests_per_minute", 500, ago=MINUTE)

    page = as_page(await show_tenant(a_visit(office.with_config(quotas=LIMITS), lab)))

    assert cells_of(page.values["tables"][0])[0] == ["requests per minute", "600", "7"]


async def test_the_limits_of_a_client_are_its_own(office: Office, lab: str) -> None:
    ward = (await office.run(clients.ADD, tenant=lab, name="ward"))["client_id"]
    await use(office, ward, "client_requests_per_minute", 5)
    await use(office, lab, "tenant_requests_per_minute", 7)

    page = as_page(await show_client(a_visit(office.with_config(quotas=LIMITS), ward)))

    assert cells_of(page.values["tables"][0])[0] == ["requests per minute", "60", "5"]


@pytest.mark.parametrize(
    ("count", "title"), [(20, "Endpoints"), (21, "Endpoints, the first 20 of 21")]
)
async def test_endpoints_that_were_removed_are_not_counted(
    office: Office, lab: str, count: int, title: str
) -> None:
    for state in [*["active"] * count, "deleted"]:
        await office.store.put_endpoint(lab, an_endpoint(tenant=lab, state=state))

    page = as_page(await show_tenant(a_visit(office, lab)))

    table = page.values["tables"][2]
    assert (table.title, len(table.rows)) == (title, 20)
