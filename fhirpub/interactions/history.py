"""History of one resource or of all of a type: versions, newest first (R4 http, history)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from itertools import takewhile

from fhirpub.errors import InvalidSearch, Issue
from fhirpub.fhir.date_value import TIME_RULE, TimeRange, parse_range
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.times import instant
from fhirpub.interactions.context import Context
from fhirpub.interactions.cursors import CURSOR, Parameters, link_to, seal, unseal
from fhirpub.interactions.erased import is_tombstone
from fhirpub.interactions.read import read
from fhirpub.interactions.versions import MAX_COUNTED, Listing, Shown, without_documents
from fhirpub.plugin_api import ResourceType
from fhirpub.problems import OperationProblem
from fhirpub.storage.contract import MAX_PAGE_BYTES, SearchQuery, Version
from fhirpub.storage.criteria import LAST_UPDATED, Criterion, SortKey, TimeMatch, sort_key
from fhirpub.storage.erasure.tombstones import is_erased, tombstone_of
from fhirpub.tenant import Tenant, is_member_id

BELOW = "_below"
"""Our own paging parameter: only versions lower than this one."""
_BOTH = ("_count", "_since", "_at")
PARAMETERS = (*_BOTH, BELOW, CURSOR)
_TYPES = "history:"
_LOOKUP_BATCH_SIZE = 100
"""Versions that are read together where many may be passed over."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The parameters as they were understood. ``given`` are those that the caller wrote."""

    given: tuple[tuple[str, str], ...]
    limit: int
    since: int | None
    at: TimeRange | None
    below: int | None
    cursor: str


async def history(
    resource_id: str,
    parameters: Mapping[str, str],
    *,
    resource_type: ResourceType,
    tenant: Tenant,
    context: Context,
) -> Listing:
    """Return a history Bundle, to be made; documents are shown by their address.

    ``parameters`` are those of ``PARAMETERS``, empty if absent. Raises NoSuchResource,
    InvalidSearch.
    """
    latest = await read(resource_type.name, resource_id, tenant=tenant, context=context)
    asked = read_parameters(parameters, (*_BOTH, BELOW), context)
    page, more = await _matching(asked, latest, tenant=tenant, context=context)
    address = f"{context.fhir_url}/{resource_type.name}/{resource_id}/_history"
    links = [{"relation": "self", "url": link_to(address, asked.given)}]
    if page and more:
        kept = [item for item in asked.given if item[0] != BELOW]
        following = link_to(address, [*kept, (BELOW, str(page[-1].version))])
        links.append({"relation": "next", "url": following})
    # How many there are of a time would have to be counted.
    total = None
    if asked.since is None and asked.at is None:
        total = await _count_versions(latest, tenant=tenant, context=context)
    return listing_of(page, links, total)


async def history_of_type(
    parameters: Mapping[str, str],
    *,
    resource_type: ResourceType,
    tenant: Tenant,
    context: Context,
) -> Listing:
    """Return a history Bundle of all resources of a type, to be made; raises InvalidSearch."""
    asked = read_parameters(parameters, (*_BOTH, CURSOR), context)
    if asked.at is not None:
        raise InvalidSearch.because(
            "goes with the history of one resource",
            expression="_at",
            details=OperationProblem.PARAMETER_INVALID,
        )
    kind = _TYPES + resource_type.name
    kept = [item for item in asked.given if item[0] != CURSOR]
    after = place_after(asked.cursor, tenant, kind, kept)
    since = () if asked.since is None else (TimeMatch(from_=asked.since),)
    query = SearchQuery(
        type=resource_type.name,
        criteria=(Criterion(LAST_UPDATED, since),) if since else (),
        after=after,
        limit=asked.limit,
        count_up_to=MAX_COUNTED,
        every_version=True,
        has_members=context.searched[resource_type.name].member is not None,
        max_seconds=context.config.limits.search_seconds,
    )
    page = await context.resources.search(tenant.id, query)
    address = f"{context.fhir_url}/{resource_type.name}/_history"
    links = [{"relation": "self", "url": link_to(address, asked.given)}]
    if page.more:
        cursor = seal(sort_key(query.order, page.versions[-1]), tenant, kind, kept)
        links.append({"relation": "next", "url": link_to(address, [*kept, (CURSOR, cursor)])})
    return listing_of(page.versions, links, page.total)


def place_after(cursor: str, tenant: Tenant, kind: str, kept: Parameters) -> SortKey | None:
    """Return the place behind which a page begins; None for the first page.

    Raises InvalidSearch for a cursor that is not of this history.
    """
    after = unseal(cursor, tenant, kind, kept) if cursor else None
    if cursor and after is None:
        raise InvalidSearch.because(
            "is not a link of this history",
            expression=CURSOR,
            details=OperationProblem.PAGE_LINK_INVALID,
        )
    return after


def read_parameters(
    parameters: Mapping[str, str], names: Sequence[str], context: Context
) -> Asked:
    """Read the parameters; raises InvalidSearch with everything that is wrong with them."""
    issues: list[Issue] = []
    count = _whole(parameters, "_count", issues)
    since = _stretch(parameters["_since"], "_since", issues, context.default_zone)
    # R4 refers to the dates of searches, where "eq" says what no prefix says.
    moment = parameters["_at"].removeprefix("eq") or parameters["_at"]
    at = _stretch(moment, "_at", issues, context.default_zone)
    below = _whole(parameters, BELOW, issues)
    if issues:
        raise InvalidSearch(issues)
    limit = context.config.fhir.page_size if count is None else count
    return Asked(
        given=tuple((name, parameters[name]) for name in names if parameters[name]),
        limit=min(limit, context.config.fhir.page_size_max),
        since=None if since is None else since[0],
        at=at,
        below=below,
        cursor=parameters[CURSOR],
    )


async def _matching(
    asked: Asked, latest: Version, *, tenant: Tenant, context: Context
) -> tuple[Sequence[Version], bool]:
    """Return the versions of a page, and whether there may be more."""
    resources, resource_id = context.resources, latest.id
    below = latest.version + 1 if asked.below is None else asked.below
    above = await resources.version(tenant.id, resource_id, below)
    if is_tombstone(above):
        return [], False
    until = above.updated if above is not None else None
    found: list[Version] = []
    size = asked.limit + 1
    while len(found) <= asked.limit and _bytes_of(found) < MAX_PAGE_BYTES:
        every = await resources.history(tenant.id, resource_id, below=below, limit=size)
        versions = [*takewhile(lambda one: not is_erased(one), every)]
        found += _current_during(versions, asked, until)
        if not versions or versions[-1].is_first or _is_before(versions[-1], asked):
            return found[: asked.limit], len(found) > asked.limit
        below, until = versions[-1].version, versions[-1].updated
        size = max(size, _LOOKUP_BATCH_SIZE)
    return found[: asked.limit], True


async def _count_versions(latest: Version, *, tenant: Tenant, context: Context) -> int | None:
    """Return the number of versions since the registration, or since the last tombstone.

    None if it would have to be counted: a result may be new in a resource that was erased before.
    """
    if latest.is_first:
        return 1
    first = await context.resources.version(tenant.id, latest.id, 1)
    if first is None:
        return None
    return latest.version - (tombstone_of(first).version if is_tombstone(first) else 0)


def _current_during(
    versions: Sequence[Version], asked: Asked, until: int | None
) -> Iterator[Version]:
    """Return those that were made since a moment, and were current at some point of a time.

    ``until`` is when the first of them, which is the newest, was followed by another.
    """
    for version in versions:
        current = asked.at is None or (
            version.updated < asked.at[1] and (until is None or until > asked.at[0])
        )
        if current and (asked.since is None or version.updated >= asked.since):
            yield version
        until = version.updated


def _is_before(version: Version, asked: Asked) -> bool:
    """Return whether nothing older than a version can match."""
    earliest = [number for number in (asked.since, asked.at[0] if asked.at else None) if number]
    return any(version.updated <= number for number in earliest)


def listing_of(
    versions: Sequence[Version],
    links: Sequence[JsonObject],
    total: int | None,
) -> Listing:
    """Return a history Bundle, to be made, of versions of any types."""
    bundle: JsonObject = {"resourceType": "Bundle", "type": "history"}
    if total is not None:
        bundle["total"] = total
    bundle["link"] = links

    return Listing(
        [version.body for version in versions], partial(_bundle, head=bundle, versions=versions)
    )


def _bundle(context: Context, *, head: JsonObject, versions: Sequence[Version]) -> JsonObject:
    entries = [_entry(version, context) for version in versions]
    return head | {"entry": entries} if entries else head


def _bytes_of(versions: Sequence[Version]) -> int:
    return sum(len(version.body) for version in versions)


def _entry(version: Version, context: Context) -> JsonObject:
    address = f"{version.type}/{version.id}"
    method, url, status = _request_for(version, address)
    return {
        "fullUrl": f"{context.fhir_url}/{address}",
        "resource": without_documents(Shown.of(version), context=context),
        "request": {"method": method, "url": url},
        "response": {
            "status": status,
            "etag": f'W/"{version.tag}"',
            "lastModified": instant(version.updated),
        },
    }


def _request_for(version: Version, address: str) -> tuple[str, str, str]:
    """Return the method and the URL of the request that made a version, and its status."""
    if version.is_first:
        return "POST", version.type, "201"
    if is_member_id(version.id):  # the request was for what it came with (ADR 24)
        return "PUT", address, "200"
    if version.digest:
        return "POST", f"{address}/$revise", "200"
    return "PATCH", address, "204"


def _whole(parameters: Mapping[str, str], name: str, issues: list[Issue]) -> int | None:
    text = parameters[name]
    if not text:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return int(text)
    rule = "must be a whole number of at least 0"
    issues.append(Issue.error(OperationProblem.PARAMETER_INVALID, rule, name))
    return None


def _stretch(text: str, name: str, issues: list[Issue], zone: tzinfo) -> TimeRange | None:
    # An unescaped plus sign in a URL has been decoded as a blank.
    found = parse_range(text.replace(" ", "+"), default_zone=zone) if text else None
    if text and found is None:
        rule = f"{TIME_RULE}, without a prefix"
        issues.append(Issue.error(OperationProblem.PARAMETER_INVALID, rule, name))
    return found
