"""Accesses: what was done, in which request, and with which outcome."""

from __future__ import annotations

import re
from html import unescape

import pytest

from fhirpub.testing.service import Integrator, RunningService
from tests.console.tabs import Tab, text_of
from tests.console.test_resources import REPORTS, publish

ACCESSES = "/console/accesses"


@pytest.fixture
def lab(console: RunningService) -> Integrator:
    """A client that may read the audit trail of its tenant."""
    return console.integrator(scopes=("system/*.cruds", "system/AuditEvent.rs"))


def settle(console: RunningService) -> None:
    """Wait until what was done is in the audit trail."""
    trail = console.services.audit
    assert trail is not None
    console.call(trail.settle())


def test_an_access_leads_to_all_of_its_request(
    console: RunningService, lab: Integrator, tab: Tab
) -> None:
    publish(lab, "A-1")
    read = lab.get("/fhir/r4/DiagnosticReport?identifier=A-1")
    settle(console)
    request = read.headers["x-request-id"]

    link = f"{ACCESSES}?request={request}"
    assert f'href="{link}"' in tab.get(ACCESSES).body.decode()

    rows = tab.get(link).body.decode().partition("<tbody>")[2]
    assert rows.count("<tr>") == 1
    assert "search" in rows


def test_a_resource_is_named_once_whatever_its_versions(
    console: RunningService, lab: Integrator, tab: Tab
) -> None:
    id_ = publish(lab, "A-1")
    tab.get(f"{REPORTS}/{id_}/history")
    settle(console)

    page = tab.get(f"{ACCESSES}?act=history").body.decode()

    assert page.count(f'href="{REPORTS}/{id_}"') == 1


def test_what_was_refused_is_not_called_done(
    console: RunningService, lab: Integrator, tab: Tab
) -> None:
    assert lab.get("/fhir/r4/DiagnosticReport/none").status == 404
    settle(console)

    assert "refused" in text_of(tab.get(ACCESSES))


def test_older_accesses_are_on_another_page(
    console: RunningService, lab: Integrator, tab: Tab
) -> None:
    publish(lab, "A-1")
    for _ in range(51):
        lab.get("/fhir/r4/DiagnosticReport?identifier=A-1")
    settle(console)

    first = tab.get(f"{ACCESSES}?act=search").body.decode()
    found = re.search(r'href="([^"]+)">Older accesses', first)
    assert found is not None
    older = tab.get(unescape(found[1])).body.decode()

    assert first.count("<tr><td>") == 50
    assert 0 < older.count("<tr><td>") < 50
