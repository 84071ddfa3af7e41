"""Long lists of operators: in pages, with what is looked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.console.operators.listing import ROWS
from fhirpub.testing.samples import new_id
from fhirpub.testing.service import Integrator, RunningService
from tests.console.operating import OPERATIONS, form_path
from tests.console.tabs import Tab, text_of
from tests.log_lines import caught_lines

COUNT = 2 * ROWS + 20


@pytest.fixture(scope="module")
def tenant(console: RunningService) -> str:
    """A tenant with more clients than fit on two pages."""
    lab: Integrator = console.integrator()
    store = console.services.store
    known = console.call(store.client(lab.client_id))
    assert known is not None
    for number in range(1, COUNT):
        name = f"Machine {number:03}"
        other = replace(known, id=new_id(), name=name, created=known.created + number)
        console.call(store.put_client(other))
    return lab.tenant.id


@pytest.mark.parametrize(
    "path", [f"{OPERATIONS}/clients?tenant={{}}", f"{form_path('clientList')}?tenant={{}}"]
)
def test_a_long_list_has_pages(path: str, tenant: str, operator: Tab) -> None:
    pages = [operator.get(f"{path.format(tenant)}&page={page}") for page in (1, 2, 3)]

    assert [page.body.count(b"Machine ") for page in pages] == [ROWS - 1, ROWS, 20]
    assert f"{COUNT} in all, page 2 of 3" in text_of(pages[1])
    assert f"?tenant={tenant}&amp;page=3" in pages[1].body.decode()
    assert "Previous page" not in text_of(pages[0])
    assert "Next page" not in text_of(pages[2])


def test_a_part_of_a_name_is_found(tenant: str, operator: Tab) -> None:
    text = text_of(operator.get(f"{OPERATIONS}/clients?tenant={tenant}&find=MACHINE+007"))

    assert "Machine 007" in text
    assert "Machine 008" not in text
    assert "1 in all" in text


@pytest.mark.parametrize("page", ["0", "-1", "x", "999", "99999999999999999999"])
def test_any_other_page_is_the_nearest_that_there_is(
    page: str, tenant: str, operator: Tab
) -> None:
    answer = operator.get(f"{OPERATIONS}/clients?tenant={tenant}&page={page}")

    assert answer.status == 200
    assert ("page 3 of 3" if page == "999" else "page 1 of 3") in text_of(answer)


def test_a_list_within_a_result_has_pages(tenant: str, operator: Tab) -> None:
    quotas = text_of(operator.get(f"{form_path('quotaShow')}?tenant={tenant}&page=2"))

    assert f"{COUNT} in all, page 2 of 3" in quotas
    assert quotas.count("Machine ") == ROWS


def test_the_page_of_a_tenant_shows_its_first_clients(tenant: str, operator: Tab) -> None:
    page = operator.get(f"{OPERATIONS}/tenants/{tenant}")

    assert f"Clients, the first 20 of {COUNT}" in text_of(page)
    assert page.body.count(b"Machine ") == 19


def test_the_log_takes_no_id_in_the_path_of_a_page_for_an_endpoint(
    tenant: str, operator: Tab
) -> None:
    with caught_lines() as caught:
        answer = operator.get(f"{OPERATIONS}/tenants/{tenant}")
        line = caught.of(answer.headers["x-request-id"])

    assert line["route"] == f"{OPERATIONS}/tenants/{{}}"
    assert "resource" not in line
