"""What is wrong with a page fails the test that visits it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Browser

from fhirpub.config.loader import variable
from tests.browser.accessibility import check_accessibility
from tests.browser.pages import Served, page, serving
from tests.browser.visits import VIEWS, View, Visit, Visiting, visiting

WIDE = View()
SCRIPTS_ON_AND_OFF = pytest.mark.parametrize("view", [WIDE, View(javascript=False)], ids=str)
LAX = "default-src * data:"
GOOD = "<h1>Reports</h1><p>All is well.</p>"
PDF = b"%PDF-1.4\n"
CREATE_AND_GET = """async () => {
    const challenge = new Uint8Array(32), user = {id: challenge, name: "ada", displayName: "Ada"};
    const created = await navigator.credentials.create({publicKey: {
        challenge, user, rp: {name: "Reports", id: "localhost"},
        pubKeyCredParams: [{type: "public-key", alg: -7}],
        authenticatorSelection: {residentKey: "required", userVerification: "required"},
    }});
    const got = await navigator.credentials.get({publicKey: {challenge, rpId: "localhost"}});
    return got.id === created.id;
}"""
FONTS = {
    "sans-serif": "DejaVu Sans",
    "serif": "DejaVu Serif",
    "monospace": "DejaVu Sans Mono",
}
PATHS = {
    "/good": page(GOOD),
    "/long": page("<p>Long</p>" * 100),
    "/wide": page("<p>" + "wide" * 20 + "</p>"),
    "/themed": page(GOOD, style="/theme.css"),
    "/theme.css": Served(
        b"h1::after { content: 'light' }"
        b"@media (prefers-color-scheme: dark) {"
        b"body { color: white; background: black } h1::after { content: 'dark' } }",
        "text/css",
    ),
    "/scripted": page(GOOD + "<noscript>No scripts</noscript>", script="/script.js"),
    "/script.js": Served(b"document.documentElement.dataset.ran = 'yes'", "text/javascript"),
    "/inline-script": page(GOOD + "<script>document.title = ''</script>"),
    "/inline-style": page(GOOD + '<p style="color: red">Red</p>'),
    "/evaluated": page(GOOD, script="/eval.js"),
    "/eval.js": Served(b"eval('1')", "text/javascript"),
    "/raising": page(GOOD, script="/raise.js"),
    "/raise.js": Served(b"throw new Error('out of order')", "text/javascript"),
    "/logging": page(GOOD, script="/log.js"),
    "/log.js": Served(b"console.error('not so good'); console.log('fine')", "text/javascript"),
    "/opening": page('<a target="_blank" href="/logging">Open</a>'),
    "/no-image": page(GOOD + '<img alt="" src="/missing.png">'),
    "/refused": page(GOOD + '<img alt="" src="http://localhost:1/refused.png">', policy=LAX),
    "/external": page(GOOD + '<img alt="" src="http://example.org/a.png">', policy=LAX),
    "/external-blocked": page(GOOD + '<img alt="" src="http://example.org/a.png">'),
    "/away": page(GOOD, script="/away.js"),
    "/away.js": Served(b"location = 'http://example.org/'", "text/javascript"),
    "/saved": page('<a href="/a.pdf" download>Save</a>'),
    "/framed": page(GOOD + '<iframe title="PDF" src="/a.pdf"></iframe>', policy=LAX),
    "/sandboxed": page(GOOD + '<iframe title="PDF" src="/a.pdf" sandbox></iframe>', policy=LAX),
    "/a.pdf": Served(PDF, "application/pdf"),
    "/unlabelled": page('<input name="name">'),
    "/pale": page(GOOD, style="/pale.css"),
    "/pale.css": Served(b"p { color: #ccc; background: #fff }", "text/css"),
    "/fonts": page("".join(f'<p id="{family}">Text</p>' for family in FONTS), style="/fonts.css"),
    "/fonts.css": Served(
        "".join(f"#{family} {{ font-family: {family} }}" for family in FONTS).encode(), "text/css"
    ),
    "/untitled": Served(b'<!doctype html><html lang="en"><p>Nameless</p>'),
}


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with serving(PATHS) as address:
        yield address


@pytest.fixture
def opened(browser: Browser, origin: str) -> Iterator[Callable[..., Visit]]:
    """A visit of a path. It is not checked at the end, unlike those of ``visit``."""
    visits: list[Visit] = []

    def open_path(path: str, view: View = WIDE) -> Visit:
        visits.append(Visit(browser, origin, view))
        visits[-1].open(path)
        return visits[-1]

    yield open_path
    for each in visits:
        each.context.close()


def test_a_good_page_passes_and_sees_the_view(visit: Visiting, origin: str, view: View) -> None:
    visited = visit(origin, view)
    visited.open("/themed")

    check_accessibility(visited.page)
    visited.check()
    theme = "getComputedStyle(document.querySelector('h1'), '::after').content"
    assert visited.page.evaluate(f"[innerWidth, {theme}]") == [view.width, f'"{view.theme}"']


def test_the_views_are_narrow_and_wide_light_and_dark_with_and_without_scripts() -> None:
    assert [str(view) for view in VIEWS] == [
        *("360-light", "360-light-noscript", "360-dark", "360-dark-noscript"),
        *("1440-light", "1440-light-noscript", "1440-dark", "1440-dark-noscript"),
    ]


@SCRIPTS_ON_AND_OFF
def test_scripts_run_only_where_there_are_some(visit: Visiting, origin: str, view: View) -> None:
    visited = visit(origin, view)
    visited.open("/scripted")

    ran = visited.page.locator("html").get_attribute("data-ran") == "yes"
    assert ran is view.javascript
    assert visited.page.locator("noscript").is_visible() is not view.javascript


def test_a_screenshot_is_of_the_whole_page(visit: Visiting, origin: str) -> None:
    visited = visit(origin, View(360, "dark"))
    visited.open("/long")

    picture = visited.capture("long")

    assert picture.name == "long-360-dark.png"
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    assert width == 360
    assert height > 2000


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/inline-script", "console: .*inline script.*Content Security Policy"),
        ("/inline-style", "console: .*inline style.*Content Security Policy"),
        ("/evaluated", "Content Security Policy"),
        ("/logging", "^console: not so good "),
        ("/raising", "^exception: .*out of order"),
        ("/no-image", "^console: .*404.*/missing.png"),
        ("/missing", "^console: .*404.*/missing"),
        ("/refused", "^request failed: .*/refused.png"),
        ("/external", "^request to another origin: http://example.org/a.png"),
        ("/external-blocked", "console: .*example.org.*Content Security Policy"),
        ("/away", "^request to another origin: http://example.org/"),
        ("/sandboxed", "^request failed: .*/a.pdf"),
    ],
)
def test_what_goes_wrong_fails_the_visit(
    opened: Callable[[str], Visit], path: str, problem: str
) -> None:
    visited = opened(path)

    with pytest.raises(AssertionError, match=f"(?m){problem}"):
        visited.check()


def test_what_goes_wrong_fails_a_screenshot(opened: Callable[[str], Visit]) -> None:
    with pytest.raises(AssertionError, match="not so good"):
        opened("/logging").capture("bad")


def test_what_goes_wrong_in_a_window_that_a_page_opens_fails_the_visit(
    opened: Callable[[str], Visit],
) -> None:
    visited = opened("/opening")

    with visited.context.expect_page() as opening:
        visited.page.get_by_role("link").click()
    opening.value.wait_for_load_state()

    with pytest.raises(AssertionError, match="not so good"):
        visited.check()


@SCRIPTS_ON_AND_OFF
def test_a_page_that_scrolls_sideways_fails_where_it_does_not_fit(
    opened: Callable[[str, View], Visit], view: View
) -> None:
    opened("/wide", view).check()

    with pytest.raises(AssertionError, match=r"/wide \(360-light.*\) scrolls sideways by "):
        opened("/wide", replace(view, width=360)).check()


def test_a_problem_that_is_expected_fails_nothing(visit: Visiting, origin: str) -> None:
    visited = visit(origin)
    assert visited.open("/missing").status == 404

    visited.expect("status of 404")

    visited.check()


def test_an_expected_problem_that_does_not_occur_fails(visit: Visiting, origin: str) -> None:
    visited = visit(origin)
    visited.open("/good")

    with pytest.raises(AssertionError, match="no problem is like 'status of 404'"):
        visited.expect("status of 404")


def test_a_visit_that_no_test_checks_is_checked_at_its_end(browser: Browser, origin: str) -> None:
    with (
        pytest.raises(AssertionError, match="not so good"),
        visiting(browser) as visit,
    ):
        visit(origin).open("/logging")


def test_a_page_can_save_a_file(visit: Visiting, origin: str) -> None:
    visited = visit(origin)
    visited.open("/saved")

    with visited.page.expect_download() as saving:
        visited.page.get_by_role("link").click()

    assert saving.value.path().read_bytes() == PDF


def test_a_page_can_frame_a_file_that_the_browser_shows_or_saves(
    visit: Visiting, origin: str
) -> None:
    visited = visit(origin)
    visited.open("/framed")

    visited.check()


@SCRIPTS_ON_AND_OFF
@pytest.mark.parametrize(
    ("path", "violation"),
    [
        ("/unlabelled", r"label \(critical\) at input: .*label"),
        ("/pale", r"color-contrast \(serious\) at p: .*contrast of 1\.6"),
        ("/untitled", r"document-title \(serious\) at html"),
    ],
)
def test_a_violation_of_accessibility_is_found(
    opened: Callable[[str, View], Visit], path: str, violation: str, view: View
) -> None:
    visited = opened(path, view)

    with pytest.raises(AssertionError, match=violation):
        check_accessibility(visited.page)


def test_scripts_stay_off_after_a_check_of_accessibility(visit: Visiting, origin: str) -> None:
    visited = visit(origin, View(javascript=False))
    visited.open("/good")
    check_accessibility(visited.page)

    visited.open("/scripted")

    assert visited.page.locator("html").get_attribute("data-ran") is None


def test_checking_accessibility_leaves_no_trace_in_the_page(visit: Visiting, origin: str) -> None:
    visited = visit(origin)
    visited.open("/good")

    check_accessibility(visited.page)

    assert visited.page.evaluate("typeof axe") == "undefined"


def test_a_page_creates_and_uses_a_passkey(visit: Visiting, origin: str) -> None:
    visited = visit(origin)
    visited.open("/good")
    visited.add_authenticator()

    assert visited.page.evaluate(CREATE_AND_GET) is True


@pytest.mark.skipif(bool(variable("FHIRPUB_TEST_CHROMIUM")), reason="it has fonts of its own")
@pytest.mark.parametrize(("family", "font"), FONTS.items())
def test_text_has_the_same_fonts_on_each_machine(
    visit: Visiting, origin: str, family: str, font: str
) -> None:
    visited = visit(origin)
    visited.open("/fonts")
    session = visited.context.new_cdp_session(visited.page)
    session.send("DOM.enable")
    session.send("CSS.enable")

    root = session.send("DOM.getDocument")["root"]["nodeId"]
    node = session.send("DOM.querySelector", {"nodeId": root, "selector": f"#{family}"})["nodeId"]
    used = session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]

    assert [each["familyName"] for each in used] == [font]
