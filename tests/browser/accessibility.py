"""Accessibility as axe-core checks it: WCAG 2.0, 2.1 and 2.2, levels A and AA."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import CDPSession, Page

from tests.browser.chromium import HERE
from tests.node.packages import packages_of

TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
_RUN = f"""
axe.run(document, {{
    iframes: false,
    resultTypes: ["violations"],
    runOnly: {{type: "tag", values: {json.dumps(TAGS)}}},
}}).then((found) => found.violations)
"""


def check_accessibility(page: Page) -> None:
    """Fail unless the page, as it is now, satisfies all rules.

    Frames in it are not entered, and axe passes over what is in ``noscript``.
    """
    found = violations(page)
    assert not found, f"{page.url} is not accessible:\n" + "\n".join(found)


def violations(page: Page) -> list[str]:
    """Return what the page violates: the rule, where, and what to do.

    axe runs in a world of its own, as extensions do: neither the page nor its
    Content-Security-Policy notices.
    """
    axe = packages_of(HERE) / "node_modules" / "axe-core" / "axe.min.js"
    session = page.context.new_cdp_session(page)
    frame = session.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
    world = session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "axe"})
    context = world["executionContextId"]
    if page.evaluate("matchMedia('(scripting: none)').matches"):
        _run_scripts(session)
    _evaluate(session, axe.read_text(encoding="utf-8"), context)
    found = _evaluate(session, _RUN, context)
    session.detach()
    return [_line(rule, node) for rule in found for node in rule["nodes"]]


def _run_scripts(session: CDPSession) -> None:
    """Let axe wait for its timers in a page without scripts; the next page has none, either."""
    for disabled in (True, False):  # a session can revoke only what it has said
        session.send("Emulation.setScriptExecutionDisabled", {"value": disabled})


def _evaluate(session: CDPSession, script: str, context: int) -> Any:
    arguments = {
        "expression": script,
        "contextId": context,
        "awaitPromise": True,
        "returnByValue": True,
    }
    done = session.send("Runtime.evaluate", arguments)
    assert "exceptionDetails" not in done, done
    return done["result"].get("value")


def _line(rule: dict[str, Any], node: dict[str, Any]) -> str:
    place = " ".join(str(each) for each in node["target"])
    advice = " ".join(node["failureSummary"].split())
    return f"{rule['id']} ({node['impact']}) at {place}: {advice}"
