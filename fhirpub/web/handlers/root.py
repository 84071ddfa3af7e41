"""What a person gets at /: where to go from there. Machines get the refusal of any other path."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable
from html import escape
from importlib import resources

from fhirpub.config.console import console_base_url
from fhirpub.web.handlers.refusals import NotFoundHandler

_HTML = "text/html"
_MARK = "<!-- documentation -->"
_LINK = '<dt><a href="{}">Documentation</a></dt><dd>how to work with this service</dd>'


def _page(documentation: str) -> tuple[bytes, str]:
    """Return the page, and the digest by which its policy permits its one style."""
    text = resources.files("fhirpub.web").joinpath("root.html").read_text(encoding="utf-8")
    style = text.partition("<style>")[2].partition("</style>")[0]
    link = _LINK.format(escape(documentation)) if documentation else ""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return text.replace(_MARK, link).encode(), digest


class RootHandler(NotFoundHandler):
    """Show a person what this is, or lead to the console where that is served."""

    def ready(self) -> Awaitable[None] | None:
        """Refuse all but a browser, which names HTML among what it accepts."""
        accepted = ",".join(self.request.headers.get_list("Accept")).lower()
        if self.request.method not in ("GET", "HEAD") or _HTML not in accepted:
            return super().ready()
        return None

    def get(self) -> None:
        """Return the page."""
        self.headers["Cache-Control"] = "no-store"
        self.headers["Vary"] = "Accept"
        console = self.services.config.console
        if console.enabled:
            url = console_base_url(console, self.services.config.base_url)
            self.headers["Location"] = f"{url}/console/"
            self.respond_empty(status=303)
            return
        page, style = _page(console.documentation_url)
        self.headers["Content-Type"] = "text/html; charset=utf-8"
        self.headers["Content-Security-Policy"] = (
            f"default-src 'none'; style-src 'sha256-{style}'; frame-ancestors 'none'"
        )
        self.finish(page)
