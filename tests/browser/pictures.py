"""Take the pictures of the documentation: python -m tests.browser.pictures FOLDER."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from fhirpub.config.administration import AdminConfig
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.testing.service import RunningService
from tests.browser.chromium import launch
from tests.browser.stage import Stage, staged
from tests.browser.visits import View, visiting
from tests.console.tabs import open_operator, open_tab

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
    name, _, value = tab.cookie.partition("=")
    with visiting(browser) as visit:
        visited = visit(stage.service.base_url, view)
        visited.context.add_cookies(
            [{"name": name, "value": value, "url": stage.service.base_url}]
        )
        visited.open(f"/console/{path}")
        visited.page.screenshot(path=file)


def main() -> None:
    """Take the pictures."""
    folder = Path(sys.argv[1])
    config = Config(
        console=ConsoleConfig(enabled=True),
        admin=AdminConfig(bootstrap_key_hash=hashlib.sha256(b"pictures").hexdigest()),
        plugins=PluginsConfig(enabled=["diagnosticreport", "observation"]),
        webhooks=WebhooksConfig(allow_networks=["127.0.0.0/8"]),
    )
    with (
        tempfile.TemporaryDirectory() as home,
        RunningService(Path(home), config=config) as service,
        staged(service) as stage,
        sync_playwright() as playwright,
    ):
        browser = launch(playwright)
        take_all(folder, browser, stage)
        browser.close()


if __name__ == "__main__":
    main()
