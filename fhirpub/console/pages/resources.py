"""Resources: found, shown with their results and documents, and compared over their versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from itertools import zip_longest
from typing import Any
from urllib.parse import quote

from fhirpub.console.describe import documents_in, facts_of
from fhirpub.console.differences import differences
from fhirpub.console.pages.searches import (
    common_criteria,
    cursor_of_next,
    next_page,
    page_asked_for,
)
from fhirpub.console.summaries import reference_to, results_of, summary_of
from fhirpub.console.visit import Html, Page, PageRefused, Result, Visit
from fhirpub.fhir.strict_json import pretty

_PER_PAGE = "25"
_VERSIONS = "20"
_MOST_JSON = 64 * 1024
_OF_PERSONS = ("name", "birthdate")
_FILTERS = ("identifier", "patient", "status", *_OF_PERSONS)
_ID_LENGTH = 36
_BASE = "/fhir/r4"


async def show_list(visit: Visit) -> Result:
    """Find resources of a type."""
    type_name = _type(visit)
    fields = _filters(visit, type_name)
    found = await visit.get(f"{_BASE}/{type_name}", _query(visit, type_name))
    rows = await visit.compute(lambda: [*map(summary_of, _resources(found, "match"))])
    values = {
        "type_name": type_name,
        "fields": fields,
        "has_date": _has(visit, type_name, "date"),
        "query": visit.query,
        "rows": rows,
        "columns": [
            name
            for name in _COLUMNS
            if name == "identifier" or any(getattr(row, name) for row in rows)
        ],
        "titles": _COLUMNS,
        "total": found.get("total"),
        "following": next_page(visit, found, "resources", type_name),
    }
    return Html(template="resources.html", title=type_name, section=type_name, values=values)


async def show_resource(visit: Visit) -> Result:
    """Show a resource with what came with it."""
    type_name, id_ = _type(visit), visit.blanks[1]
    found = await visit.get(f"{_BASE}/{type_name}", [("_id", id_), ("_include", "*")])
    matches = _resources(found, "match")
    if not matches:  # the service says whether it was erased, or never was
        await visit.get(_path(type_name, id_), [("_summary", "true")])
        raise PageRefused("It cannot be found now: load the page again.")
    values = await visit.compute(partial(_described, matches[0], _resources(found, "include")))
    title = f"{type_name} {values['summary'].identifier}".strip()
    return Html(
        template="resource.html",
        title=title,
        section=type_name,
        values={"type_name": type_name, **values},
    )


def _described(
    resource: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    in_table = results_of([resource, *others])
    paths = {row.path for row in in_table}
    rows = [*map(summary_of, others)]
    shown = {reference_to(one) for one, row in zip(others, rows, strict=True) if row.path in paths}
    documents = list(documents_in(resource))
    return {
        "resource": resource,
        "summary": summary_of(resource),
        "facts": list(facts_of(resource, without=frozenset(_referring(resource, shown)))),
        "results": in_table,
        "documents": documents,
        "framed": next((one for one in documents if one.is_pdf), None),
        "others": [row for row in rows if row.path not in paths],
        "json": _json(resource),
    }


async def show_history(visit: Visit) -> Result:
    """Show the versions of a resource, and what changed from each to the next."""
    type_name, id_ = _type(visit), visit.blanks[1]
    query = [("_count", _VERSIONS), *page_asked_for(visit)]
    found = await visit.get(f"{_path(type_name, id_)}/_history", query)
    versions = [entry["resource"] for entry in found.get("entry", []) if "resource" in entry]
    values = {
        "type_name": type_name,
        "id": id_,
        "rows": await visit.compute(partial(_compared, versions)),
        "following": cursor_of_next(found),
    }
    title = f"Versions of {type_name} {id_}"
    return Html(template="history.html", title=title, section=type_name, values=values)


def _compared(versions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return versions as rows, each with what differs from the one before it."""
    return [
        {
            "number": one["meta"]["versionId"],
            "updated": one["meta"]["lastUpdated"],
            "status": one.get("status", ""),
            "is_first": one["meta"]["versionId"] == "1",
            "differences": differences(older, one) if older is not None else None,
        }
        for one, older in zip_longest(versions, versions[1:])
    ]


def _type(visit: Visit) -> str:
    """Return the type that the path names. Raises PageRefused."""
    name = visit.blanks[0]
    if name not in visit.console.services.context.searched:
        raise PageRefused("The service has no such type.", status=HTTPStatus.NOT_FOUND)
    return name


def _path(type_name: str, id_: str) -> str:
    return f"{_BASE}/{type_name}/{quote(id_, safe='')}"


def _has(visit: Visit, type_name: str, parameter: str) -> bool:
    return parameter in visit.console.services.context.searched[type_name].parameters


def _filters(visit: Visit, type_name: str) -> list[str]:
    # What has a patient is found by that one, not by a name.
    left_out = _OF_PERSONS if _has(visit, type_name, "patient") else ()
    return [
        name
        for name in _FILTERS
        if name not in left_out and (name == "identifier" or _has(visit, type_name, name))
    ]


def _query(visit: Visit, type_name: str) -> list[tuple[str, str]]:
    """Return the search that the fields of the form stand for."""
    query = [("_count", _PER_PAGE), ("_sort", "-_lastUpdated"), ("_total", "accurate")]
    for name in _filters(visit, type_name):
        text = visit.query.get(name, "").strip()
        if text:
            query.append((_parameter(name, text), text))
    return [*query, *common_criteria(visit)]


def _parameter(name: str, text: str) -> str:
    """Return the parameter for a text: a patient is known by an id, or by an identifier."""
    is_identifier = name == "patient" and (
        "|" in text
        or not all(one.isalnum() or one == "-" for one in text)
        or len(text) < _ID_LENGTH
    )
    return "patient.identifier" if is_identifier else name


def _resources(bundle: Mapping[str, Any], mode: str) -> list[Mapping[str, Any]]:
    return [
        entry["resource"]
        for entry in bundle.get("entry", [])
        if entry.get("search", {}).get("mode") == mode
    ]


def _referring(resource: Mapping[str, Any], shown: Collection[str]) -> list[str]:
    """Return the elements that do no more than list what the table of results shows."""
    return [
        name
        for name, element in resource.items()
        if isinstance(element, list)
        and element
        and all(isinstance(one, Mapping) and one.get("reference") in shown for one in element)
    ]


def _json(resource: Mapping[str, Any]) -> str:
    """Return a resource as JSON in lines; nothing for one that is too long to be read."""
    text = pretty(resource)
    return text.decode() if len(text) <= _MOST_JSON else ""


_COLUMNS = {
    "identifier": "Identifier",
    "what": "What",
    "person": "Patient",
    "status": "Status",
    "date": "Date",
    "updated": "Stored",
}

PAGES = (
    Page(method="GET", path="/resources/{}", run=show_list, audience="integrator"),
    Page(method="GET", path="/resources/{}/{}", run=show_resource, audience="integrator"),
    Page(method="GET", path="/resources/{}/{}/history", run=show_history, audience="integrator"),
)
