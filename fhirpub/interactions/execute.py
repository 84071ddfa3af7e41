"""Search: which resources, in which order, and where the next page begins (D-125 to D-138)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from fhirpub.errors import InvalidSearch, Issue, SearchTooCostly
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.strict_json import JsonObject, dumps, loads_stored
from fhirpub.interactions.checks.search_names import (
    hint_of,
    refuse_unknown,
    unused_empty,
    unused_unknown,
)
from fhirpub.interactions.context import Context, May
from fhirpub.interactions.cursors import CURSOR, Parameters, link_to, seal, unseal
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.patients.search import place_of, search_patients
from fhirpub.interactions.query_parser import Reading
from fhirpub.interactions.search.followed_references import FollowedReferences
from fhirpub.interactions.search.includes import Include, Included
from fhirpub.interactions.search.inclusion import include
from fhirpub.interactions.summary import is_subset, subset
from fhirpub.interactions.value_parser import MAX_CONDITIONS, too_many_conditions
from fhirpub.interactions.versions import Listing, Shown, without_documents
from fhirpub.plugin_api import ResourceType
from fhirpub.problems import OperationProblem
from fhirpub.storage.contract import Page, SearchQuery
from fhirpub.storage.criteria import NEWEST_FIRST
from fhirpub.tenant import Tenant

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
    includes: tuple[Include, ...]
    longest: str
    """The parameter with the most values; empty if none has several."""


async def search(
    parameters: Parameters,
    *,
    resource_type: ResourceType,
    tenant: Tenant,
    context: Context,
    strict: bool,
    may: May,
) -> Listing:
    """Return a searchset Bundle, to be made. What it includes is only what ``may`` allows.

    Raises InvalidSearch for what cannot be honoured; ``strict`` also for unknown parameters
    (``Prefer: handling=strict``). Raises SearchTooCostly with what can be narrowed.
    """
    wanted = understood(
        parameters, resource_type=resource_type, tenant=tenant, context=context, strict=strict
    )
    included = Included()
    try:
        page = await _look(wanted, tenant, context, may)
        if wanted.includes:
            page, included = await include(
                page, wanted.includes, tenant=tenant, context=context, may=may
            )
    except SearchTooCostly:
        raise SearchTooCostly(_list_costs(wanted)) from None
    head: JsonObject = {"resourceType": "Bundle", "type": "searchset"}
    if page.total is not None:
        head["total"] = page.total
    head["link"] = _links(wanted, page, tenant=tenant, context=context)
    matches = [*map(Shown.of, page.versions)]
    return Listing(
        [*(match.body for match in matches), *included.bodies],
        partial(_bundle, head=head, wanted=wanted, matches=matches, included=included),
    )


def understood(
    parameters: Parameters,
    *,
    resource_type: ResourceType,
    tenant: Tenant,
    context: Context,
    strict: bool,
    alone: bool = False,
) -> Search:
    """Read the parameters; raises InvalidSearch with everything that is wrong with them.

    If ``strict``, a parameter that is not known is wrong too. If ``alone``, an identifier is that
    of a resource that was not registered with another. Raises SearchTooCostly for too many.
    """
    searched = context.searched[resource_type.name]
    asked = (name.partition(":")[0] for name, value in parameters if value)
    conditions = [name for name in asked if name in searched.parameters]
    if len(conditions) > MAX_CONDITIONS:  # before each of them is read
        raise too_many_conditions(conditions[MAX_CONDITIONS])
    reading = Reading(searched, tenant, context, alone=alone)
    for name, value in parameters:
        reading.take(name, value)
    reading.finish()
    hint = partial(hint_of, searched)
    wrong = [*reading.issues, *(refuse_unknown(reading.unknown, hint) if strict else ())]
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
        has_members=searched.member is not None,
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
        tuple(reading.included),
        reading.longest,
    )


async def _look(wanted: Search, tenant: Tenant, context: Context, may: May) -> Page:
    query = wanted.query
    if query.type == PATIENT and context.has_patients:
        return await search_patients(query, tenant=tenant, context=context, may=may)
    followed = FollowedReferences(context.searched[query.type], wanted.includes)
    needed = followed.names.union(one.name for one in query.order)
    return await context.resources.search(tenant.id, replace(query, needed_values=needed))


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


def _links(
    wanted: Search, page: Page, *, tenant: Tenant, context: Context
) -> Sequence[JsonObject]:
    type_name = wanted.query.type
    address = f"{context.fhir_url}/{type_name}"
    here = [*wanted.understood, *([(CURSOR, wanted.cursor)] if wanted.cursor else [])]
    links = [{"relation": "self", "url": link_to(address, here)}]
    if page.more:
        place = place_of(page.versions[-1], wanted.query.order)
        cursor = seal(place, tenant, type_name, wanted.understood)
        following = link_to(address, [*wanted.understood, (CURSOR, cursor)])
        links.append({"relation": "next", "url": following})
    return links


def _bundle(
    context: Context,
    *,
    head: JsonObject,
    wanted: Search,
    matches: Sequence[Shown],
    included: Included,
) -> JsonObject:
    type_name = wanted.query.type
    entries: list[JsonObject] = [
        {
            "fullUrl": f"{context.fhir_url}/{type_name}/{match.id}",
            "resource": _entry_of(match, wanted, context),
            "search": {"mode": "match"},
        }
        for match in matches
    ]
    entries += [
        {
            "fullUrl": f"{context.fhir_url}/{resource['resourceType']}/{resource['id']}",
            "resource": resource,
            "search": {"mode": "include"},
        }
        for resource in _resources_in(included, context)
    ]
    hint = partial(hint_of, context.searched[type_name])
    issues = [*unused_unknown(wanted.unknown, hint), *unused_empty(wanted.empty)]
    if issues := [*issues, *included.issues]:
        entries.append(outcome_entry(issues, context))
    return head | {"entry": entries} if entries else head


def outcome_entry(issues: Sequence[Issue], context: Context) -> JsonObject:
    """Return an entry with an OperationOutcome, and the fullUrl that R4 requires."""
    outcome = outcome_of(issues, fhir_url=context.fhir_url)
    identity = uuid.uuid5(uuid.NAMESPACE_OID, dumps(outcome).decode())
    return {"fullUrl": identity.urn, "resource": outcome, "search": {"mode": "outcome"}}


def _resources_in(included: Included, context: Context) -> Iterator[JsonObject]:
    for parts, names in included.parts:
        stored = loads_stored(parts)
        yield from (stored[name] for name in sorted(stored.keys() & names))
    for version in included.versions:
        yield without_documents(version, context=context)


def _entry_of(version: Shown, wanted: Search, context: Context) -> JsonObject:
    resource = without_documents(version, context=context)
    if not is_subset(wanted.summary, wanted.elements):
        return resource
    schema = context.schemas.document(version.type)
    return subset(resource, schema, summary=wanted.summary, elements=wanted.elements)
