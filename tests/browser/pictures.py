"""Take the pictures of the documentation: python -m tests.browser.pictures FOLDER."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from fhirpub.testing.service import RunningService
from tests.browser.chromium import launch
from tests.browser.stage import Stage, staged
from tests.browser.visits import View, visiting
from tests.console.tabs import SETTINGS, open_operator, open_tab

LIGHT, DARK = View(), View(theme="dark")


def take_all(folder: Path, browser: Browser, stage: Stage) -> None:
    """Write the pictures into a folder."""
    pages = stage.pages
    take(folder / "console-report.png", pages["report"], browser, stage, LIGHT)
    take(folder / "console-delivery.png", pages["delivery"], browser, stage, LIGHT)
    take(folder / "console-endpoint.png", pages["endpoint"], browser, stage, DARK)
    take(folder / "console-overview.png", "", browser, stage, LIGHT, is_operator=True)


def take(
    file: Path, path: str, browser: Browser, stage: Stage, view: View, *, is_operator: bool = False
) -> None:
    """Write a picture of the first screen of a page."""
    tab = open_operator(stage.service) if is_operator else open_tab(stage.lab)
    with visiting(browser) as visit:
        visited = visit(stage.service.base_url, view)
        visited.use(tab.cookie)
        visited.open(f"/console/{path}")
        visited.page.screenshot(path=file)


def main() -> None:
    """Take the pictures."""
    folder = Path(sys.argv[1])
    with (
        tempfile.TemporaryDirectory() as home,
        RunningService(Path(home), config=SETTINGS) as service,
        staged(service) as stage,
        sync_playwright() as playwright,
    ):
        browser = launch(playwright)
        take_all(folder, browser, stage)
        browser.close()


if __name__ == "__main__":
    main()
