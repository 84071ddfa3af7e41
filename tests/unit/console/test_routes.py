"""The table of pages: each has a method, an audience, and a path of its own."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from fhirpub.console.handlers import AssetHandler, DocumentHandler, PageHandler
from fhirpub.console.links import ClientLinkHandler, OperatorLinkHandler
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
from fhirpub.console.routes import PAGES, console_routes

ANYONE = {
    ("GET", "/help"),
    ("GET", "/sign-in"),
    ("POST", "/sign-in/key"),
    ("GET", "/sign-in/link"),
    ("POST", "/sign-in/link"),
    ("GET", "/invitation"),
    ("POST", "/invitation"),
    ("POST", "/sign-in/passkey"),
    ("GET", "/sign-in/leave"),
    ("GET", "/sign-in/provider"),
}


def test_only_the_pages_before_the_sign_in_are_for_anyone() -> None:
    assert {(one.method, one.path) for one in PAGES if one.audience == "anyone"} == ANYONE


def test_the_pages_of_operators_are_those_of_operations() -> None:
    for one in PAGES:
        assert one.path.startswith("/operations") is (one.audience == "operator"), one.path


def test_the_first_page_and_the_sign_out_are_for_those_who_are_signed_in() -> None:
    signed_in = {(one.method, one.path) for one in PAGES if one.audience == "signed-in"}

    assert signed_in == {("GET", "/"), ("POST", "/sign-out")}


def test_no_two_pages_have_one_address() -> None:
    addresses = [(one.method, one.path) for one in PAGES]

    assert len({*addresses}) == len(addresses)


def test_pages_documents_files_and_links_have_routes() -> None:
    found = console_routes(cast("Any", None))

    others = [(one.method, one.path) for one in found[len(PAGES) :]]
    assert others == [
        ("GET", "/console/documents/{}"),
        ("GET", "/console/assets/{}"),
        ("POST", "/console/links"),
        ("POST", "/console/links/operators"),
    ]
    assert found[len(PAGES)].handler is DocumentHandler
    assert {one.path for one in found} >= {"/console/", "/console/endpoints/{}"}


def test_the_pages_of_each_module_are_in_the_table() -> None:
    people = (start, resources, endpoints, deliveries, accesses, sign_in, passkeys, provider)

    for module in (*people, operations, lists, records, orders, trail):
        assert {*map(id, module.PAGES)} <= {*map(id, PAGES)}, module.__name__


def test_each_handler_that_needs_the_console_is_created_with_it() -> None:
    console = cast("Any", object())

    found = console_routes(console)

    created = [cast("partial[Any]", one.create) for one in found if one.create is not None]
    assert [(one.func, one.args) for one in created] == [
        *((PageHandler, (console, page)) for page in PAGES),
        (DocumentHandler, (console,)),
        (ClientLinkHandler, (console,)),
        (OperatorLinkHandler, (console,)),
    ]
    assert [one.handler for one in found if one.create is None] == [AssetHandler]


def test_a_document_is_a_binary_for_scopes_and_records_and_pages_are_of_no_type() -> None:
    found = console_routes(cast("Any", None))

    named = {one.path: one.type_name for one in found if one.type_name}
    assert named == {"/console/documents/{}": "Binary"}
