"""Resources: found, shown with their results and documents, and compared over their versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from fhirpub.console.describe import documents_in, facts_of
from fhirpub.console.differences import differences
from fhirpub.console.summaries import results_of, summary_of
from fhirpub.console.visit import Html, Page, PageRefused, Result, Visit, address
from fhirpub.fhir.strict_json import pretty

_PER_PAGE = "25"
_VERSIONS = "20"
_MOST_JSON = 64 * 1024
_FILTERS = ("identifier", "patient", "status", "name", "birthdate")
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
    names = {row.path for row in in_table}
    documents = list(documents_in(resource))
    return {
        "resource": resource,
        "summary": summary_of(resource),
        "facts": list(facts_of(resource, without=frozenset(_referring(resource, others)))),
        "results": in_table,
        "documents": documents,
        "framed": next((one for one in documents if one.is_pdf), None),
        "others": [row for one in others if (row := summary_of(one)).path not in names],
        "json": _json(resource),
    }


async def show_history(visit: Visit) -> Result:
    """Show the versions of a resource, and what changed from each to the next."""
    type_name, id_ = _type(visit), visit.blanks[1]
    query = [("_count", _VERSIONS)]
    if cursor := visit.query.get("cursor"):
        query.append(("_cursor", cursor))
    found = await visit.get(f"{_path(type_name, id_)}/_history", query)
    versions = [entry["resource"] for entry in found.get("entry", []) if "resource" in entry]
    values = {
        "type_name": type_name,
        "id": id_,
        "rows": await visit.compute(partial(_compared, versions)),
        "following": _cursor(found),
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
        for one, older in zip(versions, [*versions[1:], None], strict=True)
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
    own = ("name", "birthdate") if not _has(visit, type_name, "patient") else ()
    return [
        name
        for name in _FILTERS
        if (_has(visit, type_name, name) or name == "identifier")
        and (name in own or name not in ("name", "birthdate"))
    ]


def _query(visit: Visit, type_name: str) -> list[tuple[str, str]]:
    """Return the search that the fields of the form stand for."""
    query = [("_count", _PER_PAGE), ("_sort", "-_lastUpdated"), ("_total", "accurate")]
    for name in _filters(visit, type_name):
        text = visit.query.get(name, "").strip()
        if text:
            query.append((_parameter(name, text), text))
    for name, prefix in (("since", "ge"), ("until", "le")):
        if day := visit.query.get(name, "").strip():
            query.append(("date", f"{prefix}{day}"))
    if cursor := visit.query.get("cursor"):
        query.append(("_cursor", cursor))
    return query


def _parameter(name: str, text: str) -> str:
    """Return the parameter for a text: a patient is known by an id, or by an identifier."""
    is_identifier = name == "patient" and (
        "|" in text
        or not all(one.isalnum() or one == "-" for one in text)
        or len(text) < _ID_LENGTH
    )
    return "patient.identifier" if is_identifier else name


_ID_LENGTH = 36


def _resources(bundle: Mapping[str, Any], mode: str) -> list[Mapping[str, Any]]:
    return [
        entry["resource"]
        for entry in bundle.get("entry", [])
        if entry.get("search", {}).get("mode") == mode
    ]


def _cursor(bundle: Mapping[str, Any]) -> str:
    urls = [link["url"] for link in bundle.get("link", []) if link["relation"] == "next"]
    given = parse_qs(urlsplit(urls[0]).query) if urls else {}
    return next(iter(given.get("_cursor", [])), "")


def next_page(visit: Visit, bundle: Mapping[str, Any], *segments: str) -> str:
    """Return the path of the page of a search that follows this one; empty if there is none."""
    cursor = _cursor(bundle)
    return address(*segments, **{**visit.query, "cursor": cursor}) if cursor else ""


def _referring(resource: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the elements that do no more than list what the table of results shows."""
    shown = {f"{one['resourceType']}/{one['id']}" for one in others if results_of([one])}
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
