"""What the forms of several pages have in common as searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fhirpub.console.visit import Visit, address


def common_criteria(visit: Visit) -> list[tuple[str, str]]:
    """Return the parameters for the days of a form, and for the page that is asked for."""
    days = [
        ("date", f"{prefix}{day}")
        for name, prefix in (("since", "ge"), ("until", "le"))
        if (day := visit.query.get(name, "").strip())
    ]
    return [*days, *page_asked_for(visit)]


def page_asked_for(visit: Visit) -> list[tuple[str, str]]:
    """Return the parameter for the page that is asked for; none for the first."""
    cursor = visit.query.get("cursor")
    return [("_cursor", cursor)] if cursor else []


def cursor_of_next(bundle: Mapping[str, Any]) -> str:
    """Return what asks for the page that follows one of a search; empty if there is none."""
    urls = [link["url"] for link in bundle.get("link", []) if link["relation"] == "next"]
    given = parse_qs(urlsplit(urls[0]).query) if urls else {}
    return next(iter(given.get("_cursor", [])), "")


def next_page(visit: Visit, bundle: Mapping[str, Any], *segments: str) -> str:
    """Return the path of the page of a search that follows this one; empty if there is none."""
    cursor = cursor_of_next(bundle)
    return address(*segments, **{**visit.query, "cursor": cursor}) if cursor else ""
