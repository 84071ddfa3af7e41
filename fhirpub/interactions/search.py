"""Search: which resources, in which order, and where the next page begins (D-125 to D-138)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from fhirpub.errors import InvalidSearch, Issue, Severity
from fhirpub.fhir.outcome import outcome_of
from fhirpub.fhir.search_value import token_of, values_of
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.interactions.context import Context
from fhirpub.interactions.records import Listing, shown
from fhirpub.plugin_api import ResourceType
from fhirpub.storage.contract import IdentifierMatch, Page, SearchQuery
from fhirpub.tenant import Tenant, is_resource_id

CURSOR = "_cursor"
IGNORED = frozenset({"_format", "_pretty"})
_TAG_BYTES = 16
_PARAMETER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")

Parameters = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Search:
    """A search as it was understood, and what of it was not."""

    query: SearchQuery
    understood: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]
    cursor: str


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
    (``Prefer: handling=strict``, D-130).
    """
    wanted = understood(parameters, resource_type=resource_type, tenant=tenant, context=context)
    if strict and wanted.unknown:
        raise InvalidSearch(_unknown(wanted.unknown, "error"))
    page = await context.resources.search(tenant.id, wanted.query)
    return Listing(
        sum(len(each.body) for each in page.versions),
        lambda: _bundle(wanted, page, resource_type=resource_type, tenant=tenant, context=context),
    )


def understood(
    parameters: Parameters, *, resource_type: ResourceType, tenant: Tenant, context: Context
) -> Search:
    """Read the parameters; raises InvalidSearch with everything that is wrong with them."""
    reading = _Reading(resource_type, tenant, context)
    for name, value in parameters:
        reading.take(name, value)
    if reading.issues:
        raise InvalidSearch(reading.issues)
    cursor = reading.cursor
    after = _unseal(cursor, tenant, resource_type.name, reading.understood) if cursor else None
    if cursor and after is None:
        raise InvalidSearch.because("is not a link of this search", expression=CURSOR)
    query = SearchQuery(
        type=resource_type.name,
        ids=reading.ids,
        identifiers=tuple(reading.identifiers),
        after=after,
        limit=min(reading.count, context.config.fhir.page_size_max),
    )
    return Search(query, tuple(reading.understood), tuple(reading.unknown), cursor)


class _Reading:
    """What has been read of the parameters so far."""

    def __init__(self, resource_type: ResourceType, tenant: Tenant, context: Context) -> None:
        self.count = context.config.fhir.page_size
        self.cursor = ""
        self.ids: frozenset[str] | None = None
        self.identifiers: list[tuple[IdentifierMatch, ...]] = []
        self.understood: list[tuple[str, str]] = []
        self.unknown: list[str] = []
        self.issues: list[Issue] = []
        self._type = resource_type
        self._tenant = tenant

    def take(self, name: str, value: str) -> None:
        """Take one parameter: known, ignored, or unknown."""
        plain, _, modifier = name.partition(":")
        read = {"identifier": self._identifier, "_id": self._id, "_count": self._count}.get(plain)
        if name in IGNORED or not value:
            return
        if name == CURSOR:
            self.cursor = value
        elif read is None:
            self.unknown.append(name)
        elif modifier:
            self._wrong(plain, "does not support this modifier")
        else:
            read(value)
            self.understood.append((name, value))

    def _identifier(self, value: str) -> None:
        tokens = [token_of(each) for each in values_of(value) or [""]]
        if None in tokens:
            self._wrong("identifier", "must be value, system|value, system| or |value")
            return
        # Every identifier here has a system, so that "|value" never matches.
        matches = [each for each in tokens if each is not None and each.system != ""]
        if all(each.system and each.value for each in matches):
            # The id follows from system and value: no index is needed.
            self._narrow(
                self._tenant.resource_id(self._type.name, each.system or "", each.value or "")
                for each in matches
            )
        else:
            self.identifiers.append(
                tuple(IdentifierMatch(each.system, each.value) for each in matches)
            )

    def _id(self, value: str) -> None:
        ids = values_of(value)
        if ids is None:
            self._wrong("_id", "must be ids, separated by commas")
        else:
            self._narrow(each for each in ids if is_resource_id(each))

    def _narrow(self, ids: Iterable[str]) -> None:
        found = frozenset(ids)
        self.ids = found if self.ids is None else self.ids & found

    def _count(self, value: str) -> None:
        if value.isascii() and value.isdecimal() and len(value) < 10:
            self.count = int(value)
        else:
            self._wrong("_count", "must be a whole number of at least 0")

    def _wrong(self, name: str, rule: str) -> None:
        self.issues.append(Issue("error", "invalid", rule, name))


def _bundle(
    wanted: Search, page: Page, *, resource_type: ResourceType, tenant: Tenant, context: Context
) -> JsonObject:
    address = f"{context.fhir_url}/{resource_type.name}"
    here = [*wanted.understood, *([(CURSOR, wanted.cursor)] if wanted.cursor else [])]
    links = [{"relation": "self", "url": _link(address, here)}]
    if page.more:
        last = page.versions[-1]
        cursor = _seal((last.updated, last.id), tenant, resource_type.name, wanted.understood)
        following = _link(address, [*wanted.understood, (CURSOR, cursor)])
        links.append({"relation": "next", "url": following})
    entries: list[JsonObject] = [
        {
            "fullUrl": f"{address}/{version.id}",
            "resource": shown(version, context=context),
            "search": {"mode": "match"},
        }
        for version in page.versions
    ]
    if wanted.unknown:
        outcome = outcome_of(_unknown(wanted.unknown, "warning"))
        entries.append({"resource": outcome, "search": {"mode": "outcome"}})
    bundle: JsonObject = {
        "resourceType": "Bundle",
        "type": "searchset",
        "total": page.total,
        "link": links,
    }
    return bundle | {"entry": entries} if entries else bundle


def _unknown(names: Iterable[str], severity: Severity) -> list[Issue]:
    said = [each if _PARAMETER_NAME.fullmatch(each) else "(unknown)" for each in names]
    return [
        Issue(
            severity,
            "not-supported",
            f"the search parameter {name} is not supported and was not used",
        )
        for name in dict.fromkeys(said)
    ]


def _link(address: str, parameters: Parameters) -> str:
    return f"{address}?{urlencode(parameters, quote_via=quote)}" if parameters else address


def _seal(after: tuple[int, str], tenant: Tenant, type_name: str, parameters: Parameters) -> str:
    """Return a cursor that only this tenant can use, and only with this search."""
    text = json.dumps(after).encode()
    return (
        base64.urlsafe_b64encode(_signature(text, tenant, type_name, parameters) + text)
        .decode()
        .rstrip("=")
    )


def _unseal(
    cursor: str, tenant: Tenant, type_name: str, parameters: Parameters
) -> tuple[int, str] | None:
    try:
        sealed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    text = sealed[_TAG_BYTES:]
    if not hmac.compare_digest(
        sealed[:_TAG_BYTES], _signature(text, tenant, type_name, parameters)
    ):
        return None
    updated, resource_id = json.loads(text)
    return updated, resource_id


def _signature(text: bytes, tenant: Tenant, type_name: str, parameters: Parameters) -> bytes:
    filters = sorted(each for each in parameters if each[0] != "_count")
    message = json.dumps([text.decode("latin-1"), type_name, filters]).encode()
    return hmac.digest(tenant.salt, b"cursor:" + message, hashlib.sha256)[:_TAG_BYTES]
