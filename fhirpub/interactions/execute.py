"""Search: which resources, in which order, and where the next page begins (D-125 to D-138)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from fhirpub.errors import InvalidSearch, Issue, SearchTooCostly
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored
from fhirpub.interactions.checks.search_names import (
    refuse_unknown,
    unused_empty,
    unused_unknown,
)
from fhirpub.interactions.context import Context
from fhirpub.interactions.cursors import CURSOR, Parameters, link_to, seal, unseal
from fhirpub.interactions.query_parser import MAX_CONDITIONS, TOO_MANY_CONDITIONS, Reading
from fhirpub.interactions.summary import is_subset, subset
from fhirpub.interactions.versions import Listing, without_documents
from fhirpub.plugin_api import ResourceType
from fhirpub.problems import OperationProblem
from fhirpub.storage.contract import MAX_PAGE_BYTES, Page, SearchQuery, Version
from fhirpub.storage.criteria import NEWEST_FIRST, sort_key
from fhirpub.tenant import Tenant

_FIRST_BATCH_SIZE = 4
_NARROW = (
    "the search takes more work than one search may: add a condition that few resources meet, "
    "such as a patient, an identifier, or a code with a range of dates"
)


@dataclass(frozen=True, slots=True)
class Search:
    """A search as it was understood, and what of it was not."""

    query: SearchQuery
    understood: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]
    empty: tuple[str, ...]
    cursor: str
    summary: str
    elements: str
    included: frozenset[str]
    longest: str
    """The parameter with the most values; empty if none has several."""


async def search(
    parameters: Parameters,
    *,
    resource_type: ResourceType,
    tenant: Tenant,
    context: Context,
    strict: bool,
) -> Listing:
    """Return a searchset Bundle, to be made.

    Raises InvalidSearch for what cannot be honoured; ``strict`` also for unknown parameters
    (``Prefer: handling=strict``). Raises SearchTooCostly with what can be narrowed.
    """
    wanted = understood(
        parameters, resource_type=resource_type, tenant=tenant, context=context, strict=strict
    )
    try:
        page = await context.resources.search(tenant.id, wanted.query)
    except SearchTooCostly:
        raise SearchTooCostly(_list_costs(wanted)) from None
    parts: list[bytes] = []
    if wanted.included:
        page, parts = await _with_parts(page, tenant=tenant, context=context)
    return Listing(
        [*(version.body for version in page.versions), *parts],
        partial(_bundle, wanted=wanted, page=page, parts=parts, tenant=tenant),
    )


def understood(
    parameters: Parameters,
    *,
    resource_type: ResourceType,
    tenant: Tenant,
    context: Context,
    strict: bool,
) -> Search:
    """Read the parameters; raises InvalidSearch with everything that is wrong with them.

    If ``strict``, a parameter that is not known is wrong too. Raises SearchTooCostly for too many.
    """
    searched = context.searched[resource_type.name]
    asked = (name.partition(":")[0] for name, value in parameters if value)
    conditions = [name for name in asked if name in searched.parameters]
    if len(conditions) > MAX_CONDITIONS:  # before each of them is read
        raise SearchTooCostly.because(
            TOO_MANY_CONDITIONS,
            expression=conditions[MAX_CONDITIONS],
            details=OperationProblem.SEARCH_TOO_COSTLY,
        )
    reading = Reading(searched, tenant, context)
    for name, value in parameters:
        reading.take(name, value)
    reading.finish()
    wrong = [*reading.issues, *(refuse_unknown(reading.unknown, searched) if strict else ())]
    if wrong:
        raise InvalidSearch(wrong)
    cursor = reading.cursor
    after = unseal(cursor, tenant, resource_type.name, reading.understood) if cursor else None
    if cursor and after is None:
        raise InvalidSearch.because(
            "is not a link of this search",
            expression=CURSOR,
            details=OperationProblem.PAGE_LINK_INVALID,
        )
    limit = 0 if reading.summary == "count" else reading.count
    query = SearchQuery(
        type=resource_type.name,
        ids=reading.ids,
        identifiers=tuple(reading.identifiers),
        criteria=tuple(reading.criteria),
        order=reading.order,
        after=after,
        limit=min(limit, context.config.fhir.page_size_max),
        count_up_to=None if limit == 0 else reading.count_up_to,
        max_seconds=context.config.limits.search_seconds,
    )
    return Search(
        query,
        tuple(reading.understood),
        tuple(reading.unknown),
        tuple(reading.empty),
        cursor,
        reading.summary,
        reading.elements,
        frozenset(reading.included),
        reading.longest,
    )


def _list_costs(wanted: Search) -> Iterator[Issue]:
    """Yield what can be narrowed of a search that takes too much work, by its parameters."""

    def issue(rule: str, name: str = "") -> Issue:
        return Issue.error(OperationProblem.SEARCH_TOO_COSTLY, rule, name)

    yield issue(_NARROW)
    query = wanted.query
    if query.count_up_to is None and query.limit:
        yield issue("all matches are counted: leave it out, or send none", "_total")
    elif query.count_up_to is None:
        counting = "_summary" if wanted.summary == "count" else "_count"
        yield issue("all matches are counted: leave it out", counting)
    if query.order != NEWEST_FIRST:
        yield issue("all matches are sorted: send fewer names, or leave it out", "_sort")
    if wanted.longest:
        yield issue("send fewer values", wanted.longest)


async def _with_parts(page: Page, *, tenant: Tenant, context: Context) -> tuple[Page, list[bytes]]:
    """Return a page with the parts that came with its resources, shorter if they are large."""

    async def first(version: Version) -> Version | None:
        if version.version == 1:
            return version
        return await context.resources.version(tenant.id, version.id, 1)

    parts: list[bytes] = []
    shown, size = 0, 0
    while shown < len(page.versions) and size < MAX_PAGE_BYTES:
        # A few together: of more the parts may be too large.
        few = page.versions[shown : shown + _FIRST_BATCH_SIZE]
        firsts = [
            result for result in await asyncio.gather(*map(first, few)) if result is not None
        ]
        parts += [item.parts for item in firsts]
        shown += len(few)
        size += sum(len(item.body) for item in few) + sum(len(item.parts) for item in firsts)
    more = page.more or shown < len(page.versions)
    return Page(page.versions[:shown], page.total, more=more), parts


def _bundle(
    context: Context, *, wanted: Search, page: Page, parts: Sequence[bytes], tenant: Tenant
) -> JsonObject:
    type_name = wanted.query.type
    address = f"{context.fhir_url}/{type_name}"
    here = [*wanted.understood, *([(CURSOR, wanted.cursor)] if wanted.cursor else [])]
    links = [{"relation": "self", "url": link_to(address, here)}]
    if page.more:
        place = sort_key(wanted.query.order, page.versions[-1])
        cursor = seal(place, tenant, type_name, wanted.understood)
        following = link_to(address, [*wanted.understood, (CURSOR, cursor)])
        links.append({"relation": "next", "url": following})
    entries: list[JsonObject] = [
        {
            "fullUrl": f"{address}/{version.id}",
            "resource": _entry_of(version, wanted, context),
            "search": {"mode": "match"},
        }
        for version in page.versions
    ]
    entries += [
        {
            "fullUrl": f"{context.fhir_url}/{part['resourceType']}/{part['id']}",
            "resource": part,
            "search": {"mode": "include"},
        }
        for part in _include(parts, wanted.included)
    ]
    searched = context.searched[type_name]
    if unused := [*unused_unknown(wanted.unknown, searched), *unused_empty(wanted.empty)]:
        entries.append(_outcome(unused, context))
    bundle: JsonObject = {"resourceType": "Bundle", "type": "searchset"}
    if page.total is not None:
        bundle["total"] = page.total
    bundle["link"] = links
    return bundle | {"entry": entries} if entries else bundle


def _outcome(issues: Sequence[Issue], context: Context) -> JsonObject:
    """Return an entry with an OperationOutcome, and the fullUrl that R4 requires."""
    outcome = outcome_of(issues, fhir_url=context.fhir_url)
    identity = uuid.uuid5(uuid.NAMESPACE_OID, dumps(outcome).decode())
    return {"fullUrl": identity.urn, "resource": outcome, "search": {"mode": "outcome"}}


def _include(parts: Iterable[bytes], names: Collection[str]) -> Iterator[JsonObject]:
    for item in map(loads_stored, parts):
        yield from (item[name] for name in sorted(item.keys() & names))


def _entry_of(version: Version, wanted: Search, context: Context) -> JsonObject:
    resource = without_documents(version, context=context)
    if not is_subset(wanted.summary, wanted.elements):
        return resource
    schema = context.schemas.document(version.type)
    return subset(resource, schema, summary=wanted.summary, elements=wanted.elements)
