"""Fixtures for tests of pages in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from fhirpub.config.loader import variable
from tests.browser.chromium import launch
from tests.browser.visits import VIEWS, View, Visiting, visiting
from tests.node.packages import skipping_without_packages

_HERE = Path(__file__).parent
_ONLY_FULL = pytest.mark.skip(reason="scripts/test --full visits pages in a browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of this folder outside of the full round: they take a browser of 300 MB."""
    if variable("FHIRPUB_TEST_FULL"):
        return
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(_ONLY_FULL)


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


@pytest.fixture(params=VIEWS, ids=str)
def view(request: pytest.FixtureRequest) -> View:
    """Each way to look at a page: narrow and wide, light and dark, with and without scripts."""
    found: View = request.param
    return found
