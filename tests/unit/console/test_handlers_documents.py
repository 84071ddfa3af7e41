"""Documents in pages, and the files that pages use, as browsers get them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from fhirpub.auth.caller import Caller
from fhirpub.console.assets import ASSETS
from fhirpub.console.handlers import AssetHandler, DocumentHandler
from fhirpub.testing.service import Integrator
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.batch.exchange import EntryExchange
from tests.bodies import PDF, document, register_body
from tests.unit.console.test_handlers_answers import Sessions
from tests.unit.web.handlers.asking import Asked, id_of, on_request

OF_PAGES = {"Cookie": "fhirpub_session=right"}
NO_TOKEN = {"Authorization": "none"}


async def answered(handler: BaseHandler) -> EntryExchange:
    later = handler.begin()
    if later is not None:
        await later
    handler.run()
    exchange: EntryExchange = handler.request.connection
    await exchange.wait_ended()
    return exchange


def got(lab: Integrator, name: str, headers: dict[str, str]) -> EntryExchange:
    """Return what a browser with the session of a client gets of a document."""

    async def use(one: Asked) -> EntryExchange:
        session = SimpleNamespace(caller=Caller(lab.tenant, lab.client_id))
        console: Any = SimpleNamespace(sessions=Sessions(session), is_secure=False)
        arguments = (one.request, one.handler.services, "Binary", (name,))
        return await answered(DocumentHandler(console, *arguments))

    found: EntryExchange = on_request(lab, use, headers={**headers, **NO_TOKEN})
    return found


@pytest.fixture
def name(lab: Integrator) -> str:
    """The id of a document."""
    made = lab.register(register_body(uuid4().hex, presentedForm=[document()]))
    return f"{id_of(made)}.1.1"


def test_a_document_is_sent_to_a_frame_of_a_page_and_kept_out_of_caches(
    lab: Integrator, name: str
) -> None:
    found = got(lab, name, {**OF_PAGES, "Sec-Fetch-Dest": "iframe"})

    assert (found.status, found.body) == (200, PDF)
    assert found.headers["Content-Type"] == "application/pdf"
    assert found.headers["Cache-Control"] == "no-store"
    assert found.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert found.headers["Content-Security-Policy"] == (
        "sandbox; default-src 'none'; frame-ancestors 'self'"
    )


@pytest.mark.parametrize(
    "headers", [{}, {"Cookie": "fhirpub_session=wrong"}, {**OF_PAGES, "Sec-Fetch-Dest": "script"}]
)
def test_a_document_is_not_sent_without_a_session_or_as_code(
    lab: Integrator, name: str, headers: dict[str, str]
) -> None:
    found = got(lab, name, headers)

    assert found.status == 403
    assert PDF not in (found.body or b"")


def asset(lab: Integrator, name: str, **headers: str) -> EntryExchange:
    async def use(one: Asked) -> EntryExchange:
        return await answered(AssetHandler(one.request, one.handler.services, "", (name,)))

    found: EntryExchange = on_request(lab, use, headers={**headers, **NO_TOKEN})
    return found


@pytest.mark.parametrize("name", sorted(ASSETS))
def test_a_file_is_kept_for_a_year_under_its_address(lab: Integrator, name: str) -> None:
    found = asset(lab, name, Accept="image/png")

    assert found.status == 200
    assert found.body == ASSETS[name].content
    assert found.headers["Content-Type"] == ASSETS[name].media_type
    assert found.headers["Cache-Control"] == "public, max-age=31536000, immutable"


def test_a_file_that_there_is_not_is_not_found(lab: Integrator) -> None:
    assert asset(lab, "console.js.map").status == 404
