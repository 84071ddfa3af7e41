"""History of one resource: every version, newest first (R4 http, history; D-7)."""

from __future__ import annotations

from fhirpub.errors import InvalidSearch
from fhirpub.fhir.strict_json import JsonObject
from fhirpub.fhir.times import instant
from fhirpub.interactions.context import Context
from fhirpub.interactions.read import read
from fhirpub.interactions.records import Listing, shown
from fhirpub.plugin_api import ResourceType
from fhirpub.storage.contract import Version
from fhirpub.tenant import Tenant

BELOW = "_below"
"""Our own paging parameter: only versions lower than this one."""


async def history(
    resource_id: str,
    *,
    count: str,
    below: str,
    resource_type: ResourceType,
    tenant: Tenant,
    context: Context,
) -> Listing:
    """Return a history Bundle, to be made; documents are shown by their address (D-93).

    ``count`` and ``below`` are as in the URL, empty if absent. Raises NoSuchResource,
    InvalidSearch.
    """
    latest = await read(resource_type.name, resource_id, tenant=tenant, context=context)
    limit = _whole(count, "_count", default=context.config.fhir.page_size)
    limit = min(limit, context.config.fhir.page_size_max)
    highest = _whole(below, BELOW, default=latest.version + 1)
    versions = await context.resources.history(
        tenant.id, resource_id, below=highest, limit=limit + 1
    )
    address = f"{context.fhir_url}/{resource_type.name}/{resource_id}"
    links = [{"relation": "self", "url": _link(address, count, below)}]
    if limit and len(versions) > limit:
        following = _link(address, count, str(versions[limit - 1].version))
        links.append({"relation": "next", "url": following})
    bundle: JsonObject = {
        "resourceType": "Bundle",
        "type": "history",
        "total": latest.version,
        "link": links,
    }
    page = versions[:limit]

    def made() -> JsonObject:
        entries = [_entry(each, resource_type, address, context) for each in page]
        return bundle | {"entry": entries} if entries else bundle

    return Listing(sum(len(each.body) for each in page), made)


def _entry(
    version: Version, resource_type: ResourceType, address: str, context: Context
) -> JsonObject:
    first = version.version == 1
    return {
        "fullUrl": address,
        "resource": shown(version, context=context),
        "request": {
            "method": "POST" if first else "PATCH",
            "url": resource_type.name if first else f"{resource_type.name}/{version.id}",
        },
        "response": {
            "status": "201" if first else "204",
            "etag": f'W/"{version.version}"',
            "lastModified": instant(version.updated),
        },
    }


def _whole(text: str, name: str, *, default: int) -> int:
    if not text:
        return default
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return int(text)
    raise InvalidSearch.because("must be a whole number of at least 0", expression=name)


def _link(address: str, count: str, below: str) -> str:
    query = "&".join(f"{n}={v}" for n, v in (("_count", count), (BELOW, below)) if v)
    return f"{address}/_history?{query}" if query else f"{address}/_history"
