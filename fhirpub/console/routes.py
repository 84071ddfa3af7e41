"""The one table of the pages of the console, and its routes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fhirpub.console.console import Console
from fhirpub.console.handlers import AssetHandler, DocumentHandler, PageHandler
from fhirpub.console.links import (
    LINKS,
    OPERATORS_LINKS,
    ClientLinkHandler,
    OperatorLinkHandler,
)
from fhirpub.console.operators import lists, operations, orders, records, trail
from fhirpub.console.pages import (
    accesses,
    deliveries,
    endpoints,
    passkeys,
    provider,
    resources,
    sign_in,
    start,
)
from fhirpub.console.visit import BASE, Page
from fhirpub.web.routes import Route

PAGES: Sequence[Page] = (
    *start.PAGES,
    *resources.PAGES,
    *endpoints.PAGES,
    *deliveries.PAGES,
    *accesses.PAGES,
    *sign_in.PAGES,
    *passkeys.PAGES,
    *provider.PAGES,
    *operations.PAGES,
    *lists.PAGES,
    *records.PAGES,
    *orders.PAGES,
    *trail.PAGES,
)


def console_routes(console: Console) -> list[Route]:
    """Return the routes of the console."""
    pages = [_route(console, page) for page in PAGES]
    documents = partial(DocumentHandler, console)
    return [
        *pages,
        Route("GET", f"{BASE}/documents/{{}}", DocumentHandler, "Binary", create=documents),
        Route("GET", f"{BASE}/assets/{{}}", AssetHandler),
        Route("POST", LINKS, ClientLinkHandler, create=partial(ClientLinkHandler, console)),
        Route(
            "POST",
            OPERATORS_LINKS,
            OperatorLinkHandler,
            create=partial(OperatorLinkHandler, console),
        ),
    ]


def _route(console: Console, page: Page) -> Route:
    create = partial(PageHandler, console, page)
    return Route(page.method, f"{BASE}{page.path}", PageHandler, create=create)
