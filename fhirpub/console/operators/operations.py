"""Every operation as a page: a form of its parameters, a confirmation, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fhirpub.administration.erasure.work import MAX_AT_ONCE
from fhirpub.administration.operation import Operation
from fhirpub.console.operators import catalogue, running
from fhirpub.console.operators.fields import (
    FILLED,
    Field,
    Texts,
    fields_of,
    filled_with,
    read_given,
)
from fhirpub.console.operators.listing import ROWS, Listing, page_of
from fhirpub.console.operators.running import NONE, Problems, problems_of
from fhirpub.console.operators.shown import Shower, Table, is_table
from fhirpub.console.visit import Html, Page, PageRefused, Redirect, Result, Visit, address
from fhirpub.errors import FhirpubError

_CONFIRMED = "confirmed"
_PLACES = ("after", "from")
"""The parameters by which work goes on where the response before it ended."""


async def show_all(visit: Visit) -> Result:  # noqa: ARG001
    """Show every operation, and which have no page."""
    values = {"subjects": catalogue.subjects(), "left_out": catalogue.LEFT_OUT}
    return _page("operator_operations.html", "All operations", values)


async def show_operation(visit: Visit) -> Result:
    """Show the form of an operation; of one that reads, also what it returns."""
    operation = _meant(visit)
    if operation.method == "GET":
        return await _read(visit, operation)
    texts = {name: [text] for name, text in visit.query.items()}
    fields, problems = fields_of(operation, texts, {}), NONE
    shows = catalogue.shows_values_of(operation)
    blanks = {one.name: one.value for one in fields if one.parameter.place == "path"}
    if shows is not None and all(blanks.values()):
        try:
            record = await running.run_operation(visit, shows, blanks)
            fields = filled_with(fields, record)
        except FhirpubError as refusal:
            problems = problems_of(refusal, operation)
            fields = fields_of(operation, texts, problems.of_fields)
    return _form(operation, fields, problems)


async def run_operation(visit: Visit) -> Result:
    """Run an operation that changes something, or ask before it does."""
    operation = _meant(visit)
    if operation.method == "GET":
        return Redirect(path=address("operations", "run", operation.name))
    given = read_given(operation, visit.form)
    try:
        if catalogue.needs_confirmation(operation) and not visit.field(_CONFIRMED):
            return await _confirm(visit, operation, given)
        result = await running.run_operation(visit, operation, given)
    except FhirpubError as refusal:
        problems = problems_of(refusal, operation)
        return _form(operation, fields_of(operation, visit.form, problems.of_fields), problems)
    return _done(operation, result, visit.form)


async def _read(visit: Visit, operation: Operation) -> Result:
    answer = await running.ask(visit, operation)
    result, listing = await _paged(visit, answer.result)
    shower = Shower(subject=catalogue.subject_of(operation))
    following = result.get("following") if isinstance(result, dict) else None
    place = {} if following is None else {_place_of(operation): str(following)}
    values: dict[str, Any] = {
        "operation": operation,
        "fields": fields_of(operation, answer.texts, answer.problems.of_fields),
        "problems": answer.problems,
        "shown": None if result is None else shower.show(result),
        "listing": listing,
        "following": _at(operation, {**visit.query, **place}) if place else "",
    }
    section = catalogue.section_of(operation)
    return _page(
        "operator_read.html",
        operation.summary,
        values,
        section=section,
        status=answer.problems.status,
    )


async def _paged(visit: Visit, result: Any) -> tuple[Any, Listing | None]:
    """Return a result with a page of its list, or of the longest one in it, and that page."""
    if isinstance(result, list):
        listing = await page_of(visit, result)
        return listing.records, listing
    members = result or {}
    tables = [name for name, value in members.items() if is_table(value)]
    name = max(tables, key=lambda one: len(members[one]), default="")
    if not name or (len(members[name]) <= ROWS and not visit.query.get("find")):
        return result, None
    listing = await page_of(visit, members[name])
    return {**members, name: listing.records}, listing


def _at(operation: Operation, query: Mapping[str, str]) -> str:
    return address("operations", "run", operation.name, **query)


async def _confirm(visit: Visit, operation: Operation, given: Mapping[str, Any]) -> Result:
    """Show what will happen, once it is known to be possible. Raises FhirpubError."""
    operation.check(given)
    owner = await _owner(visit, operation, given)
    planned: Sequence[Table] = ()
    if operation.command == catalogue.ERASE:
        ids = [one.rpartition("/")[2] for one in given["resources"]]
        plan = await running.run(visit, catalogue.PLAN, tenant=given["tenant"], reports=ids)
        planned = Shower().show(plan).tables
    shown = {name: value for name, value in given.items() if name not in catalogue.SECRETS}
    values = {
        "operation": operation,
        "consequence": operation.summary[:1].lower() + operation.summary[1:],
        "facts": Shower().facts({**owner, **shown}),
        "planned": planned,
        "hidden": _hidden(operation, visit.form),
        "back": _at(operation, {name: str(given[name]) for name in operation.blanks}),
    }
    section = catalogue.section_of(operation)
    return _page("operator_confirm.html", "Go on?", values, section=section)


async def _owner(visit: Visit, operation: Operation, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the name of what an operation changes. Raises FhirpubError if it does not exist."""
    kind = next((one for one in operation.blanks if one in ("client", "endpoint", "tenant")), "")
    if not kind:
        return {}
    record = await running.run(visit, f"{kind} show", **{kind: given[kind]})
    return {"name": record.get("name") or record.get("description") or record.get("url", "")}


def _done(operation: Operation, result: Any, form: Texts) -> Html:
    secrets = catalogue.secrets_in(operation)
    shower = Shower(subject=catalogue.subject_of(operation), secrets=secrets)
    values: dict[str, Any] = {
        "operation": operation,
        "shown": shower.show(result),
        "back": _back(operation, result, form),
        "following": None,
        "erase": None,
    }
    following = result.get("following") if isinstance(result, dict) else None
    if following is not None:
        place = _place_of(operation)
        others = [one for one in _hidden(operation, form) if one[0] != place]
        values["following"] = [*others, (place, str(following)), (_CONFIRMED, "yes")]
    if operation.command == catalogue.PLAN and result["planned"]:
        values["erase"] = _erase_form(result["planned"], form)
    section = catalogue.section_of(operation)
    return _page("operator_done.html", operation.summary, values, section=section)


def _erase_form(planned: Sequence[Mapping[str, Any]], form: Texts) -> Mapping[str, Any]:
    """Return the form by which what was planned is erased, as many as one call takes."""
    operation = catalogue.by_command(catalogue.ERASE)
    resources = "\n".join(f"{one['type']}/{one['id']}" for one in planned[:MAX_AT_ONCE])
    texts = {"tenant": form.get("tenant", ()), "resources": [resources]}
    left = max(0, len(planned) - MAX_AT_ONCE)
    return {"operation": operation, "fields": fields_of(operation, texts, {}), "left": left}


def _back(operation: Operation, result: Any, form: Texts) -> str:
    """Return the page of what was changed, or else of its kind."""
    for name in ("client", "endpoint", "tenant"):
        if name in operation.blanks:
            return catalogue.home_of(name, next(iter(form.get(name, ())), ""))
    own = result.get("id", "") if isinstance(result, dict) else ""
    return catalogue.home_of("id", str(own), catalogue.subject_of(operation))


def _form(operation: Operation, fields: Sequence[Field], problems: Problems) -> Html:
    values = {
        "operation": operation,
        "fields": fields,
        "problems": problems,
        "asks": catalogue.needs_confirmation(operation),
    }
    return _page(
        "operator_form.html",
        operation.summary,
        values,
        section=catalogue.section_of(operation),
        status=problems.status,
    )


def _hidden(operation: Operation, form: Texts) -> list[tuple[str, str]]:
    """Return the fields of a form, to be sent once more."""
    names = {one.name for one in operation.parameters} | {FILLED}
    return [(name, text) for name, texts in form.items() if name in names for text in texts]


def _meant(visit: Visit) -> Operation:
    """Return the operation of a visit. Raises PageRefused."""
    operation = catalogue.OFFERED.get(visit.blanks[0])
    if operation is None:
        said = "There is no page for such an operation."
        raise PageRefused(said, status=HTTPStatus.NOT_FOUND)
    return operation


def _place_of(operation: Operation) -> str:
    return next(one.name for one in operation.parameters if one.name in _PLACES)


def _page(
    template: str,
    title: str,
    values: Mapping[str, Any],
    *,
    section: str = "operations",
    status: int = HTTPStatus.OK,
) -> Html:
    return Html(template=template, title=title, values=values, section=section, status=status)


PAGES = (
    Page(method="GET", path="/operations", run=show_all, audience="operator"),
    Page(method="GET", path="/operations/run/{}", run=show_operation, audience="operator"),
    Page(method="POST", path="/operations/run/{}", run=run_operation, audience="operator"),
)
