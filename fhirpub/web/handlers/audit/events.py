"""GET of AuditEvents: one, or those that a search finds (docs/behaviour/audit-events.md)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fhirpub.audit.event import AUDIT_EVENT, Origin, event_of
from fhirpub.audit.identity import place_of
from fhirpub.audit.pages import Found, Place, Scan, find_page, read_record
from fhirpub.audit.parameters import hint_of
from fhirpub.audit.record import Members
from fhirpub.audit.search import AuditSearch, Terms, read_parameters
from fhirpub.errors import InvalidSearch, NoSuchResource
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.checks.search_names import refuse_unknown
from fhirpub.interactions.cursors import CURSOR, link_to, seal, unseal
from fhirpub.interactions.versions import Listing
from fhirpub.problems import OperationProblem
from fhirpub.storage.contract import Version
from fhirpub.web.handlers.audit.bundle import make_bundle
from fhirpub.web.handlers.base import BaseHandler
from fhirpub.web.handlers.large_responses import read_version_within_budget, with_memory_budget
from fhirpub.web.handlers.placement import LARGE
from fhirpub.web.handlers.read import ReadHandler
from fhirpub.web.handlers.search import SearchFormHandler
from fhirpub.web.message.content_negotiation import preference


def _origin_of(handler: BaseHandler) -> Origin:
    config = handler.services.config
    return Origin(handler.caller.tenant.audit_prefix, config.base_url, config.issuer)


class AuditEventHandler(ReadHandler):
    """Read one event."""

    action = "audit.read"
    scope_is_always_needed = True

    async def get(self, resource_id: str) -> None:
        """Read."""
        await self.respond_with_found(
            await read_version_within_budget(self, lambda: self._read(resource_id))
        )

    async def _read(self, resource_id: str) -> Version:
        tenant, origin = self.caller.tenant, _origin_of(self)
        place = place_of(resource_id, origin.prefix)
        record = place and await read_record(self.services.store, tenant.id, place)
        if not place or not record:
            raise NoSuchResource(self.type_name, resource_id)
        block, position = place
        event = event_of(record, origin, block=block, place=position)
        return _version_of(event["id"], record, dumps(event))

    async def version_before(self, found: Version) -> Version | None:  # noqa: ARG002 - always
        """Return none: an event never changes."""
        return None


def _version_of(event_id: str, record: Members, body: bytes) -> Version:
    """Return an event as the only version of a resource."""
    return Version(
        id=event_id,
        version=1,
        type=AUDIT_EVENT,
        system="",
        value="",
        status="",
        created=record["at"],
        updated=record["at"],
        body=body,
    )


class AuditSearchHandler(BaseHandler):
    """Search by URL."""

    requires_token = True
    scope = "s"
    action = "audit.search"
    scope_is_always_needed = True

    async def get(self) -> None:
        """Search."""
        await _answer(self)

    async def note_stored(self, bodies: Sequence[bytes]) -> None:
        """Name no events that were found: the trail would grow by them with each reading."""


class AuditSearchFormHandler(SearchFormHandler):
    """Search by form."""

    action = "audit.search"
    scope_is_always_needed = True

    async def search(self) -> None:
        """Search."""
        await _answer(self)

    async def note_stored(self, bodies: Sequence[bytes]) -> None:
        """Name no events that were found."""


async def _answer(handler: BaseHandler) -> None:
    search = _understand(handler)
    after = _unsealed(handler, search)
    found = await with_memory_budget(
        handler, lambda: _find(handler, search, after), lambda listing: listing.size
    )
    await handler.respond_with_bundle(found)


def _understand(handler: BaseHandler) -> AuditSearch:
    """Read the parameters; raises InvalidSearch with everything that is wrong with them."""
    tenant, context = handler.caller.tenant, handler.services.context
    config = context.config
    search = read_parameters(
        handler.request.parameters,
        Terms(
            tenant=tenant.id,
            prefix=tenant.audit_prefix,
            fhir_url=context.fhir_url,
            issuer=config.issuer,
            zone=context.default_zone,
            now=context.clock(),
            page_size=config.fhir.page_size,
            page_size_max=config.fhir.page_size_max,
            max_values=config.limits.search_values,
            cursor=CURSOR,
        ),
    )
    strict = preference(handler.request.headers.get("Prefer", ""), "handling") == "strict"
    wrong = [*search.issues, *(refuse_unknown(search.unknown, hint_of) if strict else ())]
    if wrong:
        raise InvalidSearch(wrong)
    return search


def _unsealed(handler: BaseHandler, search: AuditSearch) -> Place | None:
    """Return where the page begins; raises InvalidSearch for a link of another search."""
    if not search.cursor:
        return None
    key = unseal(search.cursor, handler.caller.tenant, AUDIT_EVENT, search.understood)
    match key:
        case (int(first), int(number), int(left)):
            return first, number, left
    raise InvalidSearch.because(
        "is not a link of this search",
        expression=CURSOR,
        details=OperationProblem.PAGE_LINK_INVALID,
    )


async def _find(handler: BaseHandler, search: AuditSearch, after: Place | None) -> Listing:
    tenant, services = handler.caller.tenant, handler.services

    async def run(scan: Scan, size: int) -> Sequence[Found]:
        return scan() if size <= LARGE else await services.threads.run(tenant.id, scan)

    async with services.audit_turns.turn(tenant.id):
        page = await find_page(services.store, tenant.id, search, after=after, run=run)
        make = partial(_serialize, page.found, _origin_of(handler))
        size = sum(one.size for one in page.found)
        bodies = make() if size <= LARGE // 4 else await services.threads.run(tenant.id, make)
    return Listing(
        bodies,
        partial(
            make_bundle,
            bodies=bodies,
            links=_links(handler, search, page.next),
            search=(search.summary, search.elements),
            unused=(tuple(search.unknown), tuple(search.empty)),
        ),
    )


def _serialize(found: Sequence[Found], origin: Origin) -> list[bytes]:
    return [dumps(event_of(one.record, origin, block=one.block, place=one.place)) for one in found]


def _links(
    handler: BaseHandler, search: AuditSearch, following: Place | None
) -> list[tuple[str, str]]:
    address = f"{handler.services.context.fhir_url}/{AUDIT_EVENT}"
    here = [*search.understood, *([(CURSOR, search.cursor)] if search.cursor else [])]
    links = [("self", link_to(address, here))]
    if following:
        cursor = seal(following, handler.caller.tenant, AUDIT_EVENT, search.understood)
        links.append(("next", link_to(address, [*search.understood, (CURSOR, cursor)])))
    return links
