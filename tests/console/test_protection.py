"""What every page of the console keeps: sessions, origins, headers, audiences."""

from __future__ import annotations

import re

import pytest

from fhirpub.console.assets import ASSETS
from fhirpub.console.routes import PAGES
from fhirpub.console.visit import BASE, Page
from fhirpub.testing.service import Answer, RunningService
from tests.console.tabs import Tab

FORMS = [page for page in PAGES if page.method == "POST"]
WITH_SESSION = [page for page in PAGES if page.audience != "anyone"]
FOR_OTHERS = [page for page in PAGES if page.audience in ("integrator", "operator")]


def path_of(page: Page) -> str:
    return f"{BASE}{page.path}".replace("{}", "x")


def send(tab: Tab, page: Page) -> Answer:
    return tab.get(path_of(page)) if page.method == "GET" else tab.post(path_of(page))


def name_of(page: Page) -> str:
    return f"{page.method} {page.path}"


@pytest.mark.parametrize("page", WITH_SESSION, ids=name_of)
def test_without_a_session_a_page_leads_to_the_sign_in(
    page: Page, console: RunningService
) -> None:
    tab = Tab(console)
    answer = tab.get(path_of(page)) if page.method == "GET" else tab.post(path_of(page))

    assert answer.status == 303
    assert answer.headers["location"].startswith("/console/sign-in?next=%2Fconsole%2F")


@pytest.mark.parametrize("page", FORMS, ids=name_of)
@pytest.mark.parametrize("origin", ["https://evil.example", "null", ""])
def test_a_form_that_another_site_sends_is_refused(
    origin: str, page: Page, tab: Tab, operator: Tab
) -> None:
    sender = operator if page.audience == "operator" else tab

    assert sender.post(path_of(page), Origin=origin).status == 403


@pytest.mark.parametrize("page", [one for one in FORMS if one.audience != "anyone"], ids=name_of)
def test_a_form_without_the_proof_of_the_session_is_refused(
    page: Page, tab: Tab, operator: Tab
) -> None:
    sender, other = (operator, tab) if page.audience == "operator" else (tab, operator)
    proofs = ("", other.proof)

    assert [sender.post(path_of(page), {"proof": proof}).status for proof in proofs] == [403, 403]


@pytest.mark.parametrize("page", FOR_OTHERS, ids=name_of)
def test_a_page_is_for_its_audience_alone(page: Page, tab: Tab, operator: Tab) -> None:
    stranger = tab if page.audience == "operator" else operator

    assert send(stranger, page).status == 403


@pytest.mark.parametrize("path", ["/console/", "/console/sign-in", "/console/resources/Patient"])
def test_pages_have_a_strict_policy_and_stay_out_of_caches(path: str, tab: Tab) -> None:
    headers = tab.get(path).headers

    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "strict-origin"
    assert headers["x-content-type-options"] == "nosniff"


def test_no_page_has_inline_scripts_or_styles(tab: Tab) -> None:
    for path in ("/console/", "/console/endpoints", "/console/help"):
        text = tab.get(path).body.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)", text)
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text)
        assert not re.search(r'(src|href)="(https?:)?//', text)


def test_the_assets_are_small_together() -> None:
    assert sum(len(one.content) for one in ASSETS.values()) < 100_000


@pytest.mark.parametrize("name", ASSETS)
def test_an_asset_is_kept_by_browsers_under_a_name_of_its_content(
    name: str, console: RunningService
) -> None:
    answer = console.request("GET", f"/console/assets/{name}?v={ASSETS[name].digest}")

    assert (answer.status, answer.body) == (200, ASSETS[name].content)
    assert "immutable" in answer.headers["cache-control"]


def test_other_files_are_no_assets(console: RunningService) -> None:
    for name in ("console.py", "..%2Fconsole.py", "%2e%2e%2fvisit.py"):
        assert console.request("GET", f"/console/assets/{name}").status == 404


def test_a_refusal_is_a_page(tab: Tab) -> None:
    answer = tab.get("/console/endpoints/none")

    assert answer.status == 404
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "Request id" in answer.body.decode()


def test_a_form_that_is_too_large_is_refused_as_a_page(tab: Tab) -> None:
    answer = tab.post("/console/add-endpoint", {"url": "x" * 70_000})

    assert answer.status == 413
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_a_fault_of_a_page_is_answered_with_a_page(
    tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise RuntimeError("López, Ana")

    monkeypatch.setattr("fhirpub.console.navigation._of_integrators", fail)

    answer = tab.get("/console/")

    assert answer.status == 500
    assert "Request id" in answer.body.decode()
    assert "López" not in answer.body.decode()
