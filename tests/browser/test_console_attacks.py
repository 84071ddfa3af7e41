"""Content that attacks who looks at it: shown as text, run nowhere, and kept out of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import document
from tests.browser.test_console import WIDE
from tests.browser.visits import View, Visit, Visiting
from tests.console.tabs import SETTINGS, open_tab
from tests.panels import panel, result

MARK = "was-run"
HOSTILE = (
    f'"><img src=x onerror="document.title=`{MARK}`" hx-get="/console/help" hx-trigger="load">'
    f"</title></textarea><script>document.title='{MARK}'</script>"
    f'<a href="javascript:document.title=`{MARK}`">{"x" * 300}</a>'
)
SCRIPT = f"document.title='{MARK}'; fetch('/console/');"
NARROW = View(width=360)


@pytest.fixture(scope="module")
def lab(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Integrator]:
    """A client of a service with a console."""
    folder = tmp_path_factory.mktemp("attacks")
    with RunningService(folder, config=SETTINGS, store_url=store_url("attacks")) as running:
        yield running.integrator()


@pytest.fixture(scope="module")
def report(lab: Integrator) -> str:
    """The path of a report whose texts and documents attack who looks at them."""
    documents = [
        document(f"<script>{SCRIPT}</script>".encode(), contentType="text/html", title=HOSTILE),
        document(
            f"<svg xmlns='http://www.w3.org/2000/svg' onload=\"{SCRIPT}\"/>".encode(),
            contentType="image/svg+xml",
        ),
        document(SCRIPT.encode(), contentType="text/javascript"),
    ]
    hostile = result("o1", code={"text": HOSTILE}, interpretation=[{"text": HOSTILE}])
    body = panel("A-1", hostile, conclusion=HOSTILE, presentedForm=documents)
    answer = lab.request("POST", "/fhir/r4/DiagnosticReport/$register", body)
    assert answer.status == 201, answer.body
    added = {"url": "http://127.0.0.1:9/", "description": HOSTILE[:200]}
    assert lab.request("POST", "/webhooks/v1/endpoints", added).status == 201
    return f"/console/resources/DiagnosticReport/{answer.json['parameter'][0]['resource']['id']}"


def begin(visit: Visiting, lab: Integrator, view: View = WIDE) -> Visit:
    """Begin a visit of a person who is signed in."""
    visited = visit(lab.service.base_url, view)
    visited.use(open_tab(lab).cookie)
    return visited


def places(visited: Visit, report: str) -> list[str]:
    """Return the paths of the documents of a report."""
    visited.open(report)
    links = visited.page.locator('a[href^="/console/documents/"]').all()
    return [str(link.get_attribute("href")) for link in links]


@pytest.mark.parametrize("view", [WIDE, NARROW], ids=str)
@pytest.mark.parametrize("path", ["", "/console/resources/Observation", "/console/endpoints"])
def test_hostile_texts_are_shown_as_they_are(
    path: str, view: View, visit: Visiting, lab: Integrator, report: str
) -> None:
    visited = begin(visit, lab, view)

    visited.open(path or report)

    expect(visited.page.get_by_text("<img src=x").first).to_be_visible()
    assert visited.page.title() != MARK


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_hostile_document_runs_nothing(
    number: int, visit: Visiting, lab: Integrator, report: str
) -> None:
    visited = begin(visit, lab)
    path = places(visited, report)[number]

    assert visited.open(path).status == 200

    assert visited.page.title() != MARK
    if number < 2:
        visited.expect("sandbox|Content Security Policy")


def test_a_document_is_no_script_of_a_page(visit: Visiting, lab: Integrator, report: str) -> None:
    visited = begin(visit, lab)
    path = places(visited, report)[2]

    came = visited.page.evaluate(
        """(path) => new Promise((resolve) => {
          const script = document.createElement("script");
          script.onload = () => resolve("run");
          script.onerror = () => resolve("refused");
          script.src = path;
          document.head.append(script);
        })""",
        path,
    )

    assert came == "refused"
    assert visited.page.title() != MARK
    visited.expect("MIME type|403|request failed")


def test_a_frame_of_another_origin_shows_no_page(
    visit: Visiting, lab: Integrator, report: str
) -> None:
    visited = begin(visit, lab)
    url = f"{lab.service.base_url}{report}"
    visited.page.set_content(f'<iframe src="{url}"></iframe>')

    visited.page.wait_for_timeout(300)

    frames = [one.url for one in visited.page.frames if one.parent_frame is not None]
    assert url not in frames
    visited.expect("frame-ancestors")
    visited.problems.clear()  # the request that was given up as well
