"""The table of pages: each has a method, an audience, and a path of its own."""

from __future__ import annotations

from typing import Any, cast

from fhirpub.console.handlers import DocumentHandler
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
