"""Pages of resources: lists, a report with its results, its documents, its versions."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import PDF, document
from tests.console.tabs import Tab, open_tab, text_of
from tests.panels import panel, result
from tests.waiting import wait_until

REPORTS = "/console/resources/DiagnosticReport"
POLICY = "sandbox; default-src 'none'; frame-ancestors 'self'"
HIGH = [{"coding": [{"system": "urn:flags", "code": "H"}], "text": "High"}]


def publish(lab: Integrator, value: str, **changes: Any) -> str:
    """Register a report with a result that is too high; return its id."""
    hemoglobin = result(
        "Hemoglobin", 17.5, interpretation=HIGH, referenceRange=[{"text": "12 to 16 g/dL"}]
    )
    body = panel(value, hemoglobin, **{"presentedForm": [document()]} | changes)
    answer = lab.request("POST", "/fhir/r4/DiagnosticReport/$register", body)
    assert answer.status == 201, answer.body
    id_: str = answer.json["parameter"][0]["resource"]["id"]
    return id_


def test_a_report_is_found_by_its_identifier(lab: Integrator, tab: Tab) -> None:
    publish(lab, "A-1")
    publish(lab, "A-2")

    page = tab.get(f"{REPORTS}?identifier=A-2")

    assert page.status == 200
    assert "A-2" in text_of(page)
    assert "A-1" not in text_of(page)


def test_a_report_is_found_by_the_identifier_of_its_patient(lab: Integrator, tab: Tab) -> None:
    publish(lab, "A-1")

    assert "A-1" in text_of(tab.get(f"{REPORTS}?patient=AAB123456"))
    assert "A-1" not in text_of(tab.get(f"{REPORTS}?patient=AAB123457"))


def test_reports_are_found_by_their_date(lab: Integrator, tab: Tab) -> None:
    publish(lab, "A-1")

    assert "A-1" in text_of(tab.get(f"{REPORTS}?since=2020-01-01"))
    assert "A-1" not in text_of(tab.get(f"{REPORTS}?until=2020-01-01"))


def test_a_list_goes_on_with_the_next_page(lab: Integrator, tab: Tab) -> None:
    for number in range(26):
        publish(lab, f"P-{number:02}")

    first = tab.get(REPORTS).body.decode()
    following = first.partition('class="pages"><a href="')[2].partition('"')[0]
    second = text_of(tab.get(following.replace("&amp;", "&")))

    assert "P-25" in first
    assert "P-00" not in first
    assert "P-00" in second


def test_a_report_is_shown_with_its_results(lab: Integrator, tab: Tab) -> None:
    page = text_of(tab.get(f"{REPORTS}/{publish(lab, 'A-1')}"))

    assert "Hemoglobin 17.5 g/dL High 12 to 16 g/dL final" in page


def test_the_results_are_in_the_order_of_the_report(lab: Integrator, tab: Tab) -> None:
    names = ["Sodium", "Albumin", "Potassium", "Chloride", "Calcium"]
    body = panel("A-1", *(result(name, 4.1) for name in names))
    answer = lab.request("POST", "/fhir/r4/DiagnosticReport/$register", body)
    id_ = answer.json["parameter"][0]["resource"]["id"]

    text = text_of(tab.get(f"{REPORTS}/{id_}")).partition("Elements")[0]

    assert sorted(names, key=text.index) == names


def test_a_report_has_its_document_in_a_frame(lab: Integrator, tab: Tab) -> None:
    page = tab.get(f"{REPORTS}/{publish(lab, 'A-1')}").body.decode()
    source = page.partition("<iframe")[2].partition('src="')[2].partition('"')[0]

    shown = tab.get(source)

    assert shown.body == PDF
    assert shown.headers["content-type"] == "application/pdf"
    assert shown.headers["content-security-policy"] == POLICY
    assert shown.headers["x-content-type-options"] == "nosniff"


def test_a_document_that_is_no_pdf_is_not_framed(lab: Integrator, tab: Tab) -> None:
    html = document(b"<script>alert(1)</script>", contentType="text/html")
    id_ = publish(lab, "A-1", presentedForm=[html])
    page = tab.get(f"{REPORTS}/{id_}").body.decode()
    source = page.partition('href="/console/documents/')[2].partition('"')[0]

    shown = tab.get(f"/console/documents/{source}")

    assert "<iframe" not in page
    assert shown.headers["cache-control"] == "no-store"
    assert shown.headers["content-security-policy"] == POLICY


def test_a_document_needs_a_session(lab: Integrator, tab: Tab) -> None:
    page = tab.get(f"{REPORTS}/{publish(lab, 'A-1')}").body.decode()
    source = page.partition('href="/console/documents/')[2].partition('"')[0]
    tab.cookie = ""

    assert tab.get(f"/console/documents/{source}").status == 403


def test_the_versions_show_what_changed(lab: Integrator, tab: Tab) -> None:
    id_ = publish(lab, "A-1", status="preliminary")
    change = {"resourceType": "DiagnosticReport", "status": "final"}
    answer = lab.request(
        "PATCH",
        f"/fhir/r4/DiagnosticReport/{id_}",
        change,
        headers={"Content-Type": "application/merge-patch+json", "If-Match": 'W/"1"'},
    )
    assert answer.status == 204, answer.body

    page = text_of(tab.get(f"{REPORTS}/{id_}/history"))

    assert "status preliminary final" in page
    assert "The first version." in page


def test_a_resource_of_another_tenant_is_not_there(
    console: RunningService, lab: Integrator
) -> None:
    id_ = publish(lab, "A-1")
    other = open_tab(console.integrator("Other"))

    pages = [other.get(f"{REPORTS}/{id_}"), other.get(f"{REPORTS}/{id_}/history")]

    assert [page.status for page in pages] == [404, 404]
    assert "A-1" not in text_of(other.get(f"{REPORTS}?identifier=A-1"))


def test_a_page_is_in_the_audit_trail_as_the_read_that_it_makes(
    console: RunningService,
) -> None:
    lab = console.integrator(scopes=("system/*.cruds", "system/AuditEvent.rs"))
    id_ = publish(lab, "A-1")
    page = open_tab(lab).get(f"{REPORTS}/{id_}", **{"X-Request-Id": "page-of-ada"})
    assert page.status == 200

    def found() -> list[Any]:
        events = lab.get("/fhir/r4/AuditEvent?entity:identifier=page-of-ada").json
        entries: list[Any] = events.get("entry", [])
        return entries

    assert wait_until(lambda: bool(found()))
    (event,) = found()
    assert event["resource"]["subtype"][0]["code"] == "search-type"
    assert f"DiagnosticReport/{id_}" in str(event["resource"]["entity"])


def test_a_type_that_is_not_served_has_no_page(tab: Tab) -> None:
    assert tab.get("/console/resources/Medication").status == 404


SCRIPT = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>"


@pytest.mark.parametrize("path", ["", "/history"])
def test_content_of_reports_is_escaped(path: str, lab: Integrator, tab: Tab) -> None:
    id_ = publish(
        lab,
        "A-1",
        code={"text": SCRIPT},
        conclusion=SCRIPT,
        presentedForm=[document(title=SCRIPT)],
    )

    for page in (tab.get(f"{REPORTS}/{id_}{path}"), tab.get(REPORTS)):
        assert page.status == 200
        text = page.body.decode()
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "\"'><img" not in text


@pytest.mark.parametrize("smuggled", ["%2F_history%2F1%3F", "%2F_history%3Fx%3D", "%3F_count%3D1"])
def test_an_id_asks_for_nothing_else(smuggled: str, lab: Integrator, tab: Tab) -> None:
    id_ = publish(lab, "A-1")

    assert tab.get(f"{REPORTS}/{id_}{smuggled}/history").status == 404
    assert tab.get(f"{REPORTS}/{id_}{smuggled}").status == 404


@pytest.mark.parametrize("purpose", ["script", "style", "worker", "serviceworker"])
def test_a_document_is_no_code_of_a_page(purpose: str, lab: Integrator, tab: Tab) -> None:
    script = document(b"alert(1)", contentType="text/javascript")
    id_ = publish(lab, "A-1", presentedForm=[script])
    page = tab.get(f"{REPORTS}/{id_}").body.decode()
    source = page.partition('href="/console/documents/')[2].partition('"')[0]
    path = f"/console/documents/{source}"

    assert tab.get(path, **{"Sec-Fetch-Dest": purpose}).status == 403
    assert tab.get(path, **{"Sec-Fetch-Dest": "document"}).status == 200
