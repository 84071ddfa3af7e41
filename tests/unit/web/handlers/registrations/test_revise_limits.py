"""What a revision counts in a tenant's storage, and leaves in the audit trail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from fhirpub.config.quotas import QuotasConfig
from fhirpub.config.settings import Config
from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.web.admission.quotas import Ticket
from tests.audit_trail import records_of_tenant
from tests.bodies import register_body
from tests.panels import panel, result
from tests.unit.web.handlers.asking import NotingMemory, asked, path_of, running
from tests.unit.web.handlers.registrations.test_revise import registered, revise


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service whose tenants may store little."""
    config = Config(quotas=QuotasConfig(tenant_stored_bytes=20_000))
    with RunningService(tmp_path_factory.mktemp("narrow"), config=config) as service:
        yield service


def test_a_tenant_that_may_store_no_more_cannot_revise(narrow: RunningService, value: str) -> None:
    lab = narrow.integrator()
    path = registered(lab, value, result("r1", 1.0))

    answer = revise(lab, path, panel(value, result("r1", 1.0), conclusion="x y " * 6_000))

    assert (answer.status, answer.problems) == (403, ["storage-quota-used-up"])
    assert lab.get(path).headers["etag"] == 'W/"1"'


def test_a_revision_counts_in_what_a_tenant_stores(narrow: RunningService, value: str) -> None:
    lab = narrow.integrator()
    path = registered(lab, value, result("r1", 1.0))
    body = dumps(panel(value, result("r1", 2.0), conclusion="x y " * 500))
    counted: list[int] = []

    class Noting(Ticket):
        def add_stored(self, size: int) -> None:
            counted.append(size)

    async def status() -> int:
        services = replace(narrow.services, ticket_type=Noting)
        headers = {"If-Match": "*"}
        async with asked(lab, "POST", f"{path}/$revise", headers, services=services) as one:
            one.handler.data_received(body)
            one.handler.run()
            await one.exchange.wait_ended()
            return one.exchange.status

    assert narrow.call(status()) == 200
    (size,) = counted
    assert size >= 2_000


def test_a_revision_leaves_one_record_and_so_does_one_that_changes_nothing(
    lab: Integrator, value: str
) -> None:
    path = registered(lab, value, result("r1", 1.0))
    for _ in range(2):
        assert revise(lab, path, panel(value, result("r1", 2.0))).status == 200

    found = [(one["action"], one["status"]) for one in records_of_tenant(lab)]
    assert found == [("register", 201), ("revise", 200), ("revise", 200)]


def test_a_large_version_that_is_revised_takes_memory_of_its_tenant(
    lab: Integrator, value: str
) -> None:
    large = {"conclusion": "x y " * 20_000}
    path = path_of(lab.register(register_body(value, **large)))
    body = dumps(register_body(value, **large, status="amended"))
    memory = NotingMemory()

    async def status() -> int:
        services = replace(running(lab).services, response_memory=memory)
        given = {"If-Match": "*"}
        path_of_it = path.removeprefix(lab.service.base_url) + "/$revise"
        async with asked(lab, "POST", path_of_it, given, services=services) as one:
            one.handler.data_received(body)
            one.handler.run()
            await one.exchange.wait_ended()
            return one.exchange.status

    assert running(lab).call(status()) == 200
    ((size, owner),) = memory.asked_for
    assert (size >= 80_000, owner) == (True, lab.tenant.id)
