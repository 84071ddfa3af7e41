"""Fixtures for tests of pages in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from fhirpub.config.loader import variable
from tests.browser.chromium import launch
from tests.browser.visits import VIEWS, View, Visiting, visiting
from tests.node.packages import skipping_without_packages


# Playwright marks the event loop as running between its calls, in which asynchronous tests of the
# same process cannot start one of theirs: it is started for a file, not for all of them.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    with sync_playwright() as playwright:
        with skipping_without_packages():
            running = launch(playwright)
        yield running
        running.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visiting]:
    """A function that begins a visit; the test fails if something went wrong on one."""
    with visiting(browser) as begin:
        yield begin


_ALWAYS = {"360-dark", "1440-light-noscript"}
"""Of each width, of each theme, and with and without scripts."""
_RARELY = pytest.mark.skipif(
    not variable("FHIRPUB_TEST_FULL"), reason="scripts/test --full visits pages in all views"
)


@pytest.fixture(
    params=[
        pytest.param(view, marks=() if str(view) in _ALWAYS else _RARELY, id=str(view))
        for view in VIEWS
    ]
)
def view(request: pytest.FixtureRequest) -> View:
    """Each way to look at a page: narrow and wide, light and dark, with and without scripts."""
    found: View = request.param
    return found
