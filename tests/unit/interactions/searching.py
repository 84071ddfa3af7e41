"""Searches of what people have in a real store, without HTTP."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from fhirpub.errors import SearchTooCostly
from fhirpub.interactions.execute import Search, search, understood
from tests.unit.interactions.patients.people import (
    NATIONAL,
    SYSTEMS,
    Ward,
    context_of,
    person,
)

REPORT = "DiagnosticReport"
BASE = "http://127.0.0.1:8080/fhir/r4/DiagnosticReport"
Given = tuple[str, str]


def may(*denied: str) -> Any:
    return lambda _letter, types: not any(one in denied for one in types)


def read(ward: Ward, *given: Given, strict: bool = False, type_name: str = REPORT) -> Search:
    return understood(given, resource_type=type_of(ward, type_name), strict=strict, **ward.named)


def type_of(ward: Ward, type_name: str) -> Any:
    return ward.context.searched[type_name].type


async def bundle(
    ward: Ward, *given: Given, type_name: str = REPORT, strict: bool = False, allowed: Any = None
) -> dict[str, Any]:
    found = await search(
        given,
        resource_type=type_of(ward, type_name),
        strict=strict,
        may=allowed or may(),
        **ward.named,
    )
    return found.bundle(ward.context)


def entries(of: dict[str, Any], mode: str = "match") -> list[dict[str, Any]]:
    return [one for one in of.get("entry", ()) if one["search"]["mode"] == mode]


def numbers(of: dict[str, Any]) -> list[str]:
    return [one["resource"]["identifier"][0]["value"] for one in entries(of)]


def links(of: dict[str, Any]) -> dict[str, str]:
    return {one["relation"]: one["url"] for one in of["link"]}


def query_of(url: str) -> list[Given]:
    return parse_qsl(urlsplit(url).query)


def remarks(of: dict[str, Any]) -> list[str]:
    return [
        issue["diagnostics"]
        for one in entries(of, "outcome")
        for issue in one["resource"]["issue"]
    ]


async def reports(ward: Ward, count: int) -> None:
    for number in range(count):
        await ward.report(f"R-{number}", person((NATIONAL, f"{number}")))


async def costs(ward: Ward, *given: Given) -> list[tuple[str, str]]:
    context = context_of(Costly(), *SYSTEMS)  # type: ignore[arg-type]
    with pytest.raises(SearchTooCostly) as refused:
        await search(
            given,
            resource_type=type_of(ward, REPORT),
            tenant=ward.tenant,
            context=context,
            strict=True,
            may=may(),
        )
    return [(issue.expression, issue.diagnostics) for issue in refused.value.issues]


class Costly:
    """A store in which every search takes too much."""

    async def search(self, *_arguments: Any) -> Any:
        raise SearchTooCostly.beyond_budget()
