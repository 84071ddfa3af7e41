"""From one store into another, whatever the engines: safe to interrupt and to repeat.

A version never changes, and adding one that is there changes nothing: so a copy that was cut off
is simply made again, and what is there already is compared instead of written. Tenants, clients
and signing keys do change. A later copy brings them up to date, but undoes no refusal: what either
store has disabled or retired stays so (D-165). So with endpoints: a change of the target's own
stays (D-224).

Deliveries come last: by then all versions that were found relayed have theirs (D-225). Whatever is
relayed between these two looks is unrelayed in the target and has its deliveries all the same,
which shows the target's workers that it was published.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TypeVar

from fhirpub.config.settings import ENVIRONMENTS
from fhirpub.errors import ConfigurationError, Refused, StoreUnavailable
from fhirpub.sealed import is_sealed
from fhirpub.storage.contract import Client, SigningKey, Version
from fhirpub.storage.erasure.tombstones import is_emptied, is_erased
from fhirpub.storage.store import Store
from fhirpub.storage.transfer_orders import copy_erasures, copy_quotas, copy_uses, rules_of_keys
from fhirpub.storage.webhook_contract import Delivery, DeliveryQuery, Endpoint
from fhirpub.tenant import Tenant

T = TypeVar("T")
Put = Callable[[T], Awaitable[None]]

_PAGE = 200
_NO_EVENTS = b"[]"
_NO_RULES = "{}"
"""Not empty, as what a new store says: the next run must not take the target for one."""
_SIDE_BY_SIDE = 16
"""Resources copied concurrently, except those with large documents."""
_FEW_SIDE_BY_SIDE = 2
_LARGE_BYTES = 1024 * 1024
"""A version whose documents have more than this takes memory several times over."""


@dataclass(slots=True)
class Progress:
    """How far a copy has come, in versions. ``total`` was counted at its beginning.

    Members are copied with the version that brought them, and not counted. ``kept`` names the
    tenants, clients, signing keys, endpoints and quotas that the target goes on having in another
    state than the source, such as disabled. ``deliveries`` are those that were written.
    """

    total: int
    copied: int = 0
    there: int = 0
    deliveries: int = 0
    kept: list[str] = field(default_factory=list)

    @property
    def seen(self) -> int:
        """How many are in the target now."""
        return self.copied + self.there


async def transfer(
    source: Store,
    target: Store,
    *,
    on_progress: Callable[[Progress], None] = lambda _progress: None,
) -> Progress:
    """Copy tenants, clients, keys, quotas, every version with its documents, and webhooks.

    ``on_progress`` is called after every page. What is written to the source during the copy may
    be missed: another run copies it. Raises ConfigurationError if the source is empty, if the
    target is the source, cannot keep a version, or holds reports or tenants that are not those of
    the source; StoreUnavailable.
    """
    identity = await source.identity()
    if identity and identity == await target.identity():
        raise ConfigurationError("the target is the store that is to be copied")
    progress = Progress(await source.count())
    if not progress.total and not await source.tenants():
        raise ConfigurationError("the store that is to be copied is empty; is it the right one?")
    await _copy_access(source, target)
    await _say_search_rules(source, target)
    await _copy_versions(source, target, progress, on_progress)
    await _say_search_rules(source, target)
    # Again: tenants that were added since have brought reports, and a refusal must not be missed.
    progress.kept = await _copy_access(source, target) + await _copy_endpoints(source, target)
    progress.kept += await copy_quotas(source, target)
    await copy_erasures(source, target)
    await _copy_deliveries(source, target, progress)
    return progress


async def _copy_versions(
    source: Store, target: Store, progress: Progress, on_progress: Callable[[Progress], None]
) -> None:
    places, for_large = asyncio.Semaphore(_SIDE_BY_SIDE), asyncio.Semaphore(_FEW_SIDE_BY_SIDE)

    async def copy(versions: Sequence[tuple[str, Version]]) -> None:
        async with places:
            for tenant, item in versions:
                if await _copy_version(tenant, item, source, target, for_large):
                    progress.copied += 1
                else:
                    progress.there += 1

    after = ("", 0)
    while page := await source.scan(after=after, limit=_PAGE):
        resources = [
            list(iterator) for _id, iterator in groupby(page, key=lambda each: each[1].id)
        ]
        await asyncio.gather(*map(copy, resources))
        await _mark_relayed([version for _tenant, version in page], source, target)
        after = (page[-1][1].id, page[-1][1].version)
        on_progress(progress)


async def _copy_version(
    tenant: str, version: Version, source: Store, target: Store, for_large: asyncio.Semaphore
) -> bool:
    """Return whether the version had to be copied.

    The record of its write is not copied: it is in the audit trail once it is sealed.
    """
    version = replace(version, audit=b"")
    known = await target.version(tenant, version.id, version.version)
    if known is None:
        held = {blob.sha256 for blob in version.attached}
        apart = [name for name in version.documents if name not in held]
        kept = await source.blobs(tenant, apart)
        if len(kept) < len(apart):
            raise StoreUnavailable(f"a document of {version.type}/{version.id} is missing")
        is_large = sum(blob.size for blob in kept.values()) > _LARGE_BYTES
        try:
            async with for_large if is_large else nullcontext():
                blobs = [await source.whole_blob(tenant, blob) for blob in kept.values()]
                if await target.add(tenant, version, blobs):
                    return True
        except Refused as refusal:
            raise ConfigurationError(
                f"the target cannot keep {version.type}/{version.id} version {version.version}: "
                + "; ".join(issue.diagnostics for issue in refusal.issues)
            ) from None
        known = await target.version(tenant, version.id, version.version)
    _compare(version, known)
    for member in version.members:
        _compare(member, await target.version(tenant, member.id, member.version))
    return False


def _compare(version: Version, known: Version | None) -> None:
    """Raise ConfigurationError unless ``known``, as the target reads it, is the same version."""
    if known is not None and (is_erased(known) or is_emptied(version)):
        return  # the target erases it afterwards
    if known is None or replace(known, search=version.search, audit=b"") != replace(
        version, members=(), audit=b""
    ):
        raise ConfigurationError(
            f"the target holds another {version.type}/{version.id} version {version.version}: "
            "it is not a copy of this store"
        )


async def _say_search_rules(source: Store, target: Store) -> None:
    """Report the rules by which the target's values are taken; none if there are two.

    Before the first is copied, since a copy may end anywhere, and again after the last, since the
    source may have reindexed its own in the meantime.
    """
    rules, there = await source.search_rules() or _NO_RULES, await target.search_rules()
    said = rules if there in ("", rules) else rules_of_keys(rules, there)
    if said != there:
        await target.put_search_rules(said)


async def _mark_relayed(versions: Sequence[Version], source: Store, target: Store) -> None:
    """Mark those as relayed that the source has relayed: the target began with all unrelayed."""
    keys = {(version.id, version.version) for version in versions if version.events != _NO_EVENTS}
    await target.mark_published(keys - await source.outbox_contains(keys))


async def _copy_endpoints(source: Store, target: Store) -> list[str]:
    """Return the ids of those that were changed in the target, and stay so."""
    kept = []
    for tenant in await source.tenants():
        for endpoint in await source.endpoints(tenant.id):
            kept += await _settle_endpoint(endpoint, target)
    return kept


async def _settle_endpoint(endpoint: Endpoint, target: Store) -> list[str]:
    """Update an endpoint, even under concurrent changes; return its id if it stays as it is."""
    while True:
        there = await target.endpoint(endpoint.tenant, endpoint.id)
        if there is None:
            wanted = endpoint
        elif _follows(endpoint, there):
            wanted = replace(endpoint, reopened=max(endpoint.reopened, there.reopened))
        else:
            return [endpoint.id]
        if wanted == there or await target.copy_endpoint(wanted, over=there):
            return []


def _follows(endpoint: Endpoint, there: Endpoint) -> bool:
    """Return whether it is a later one, or the same but for what its sender notes of it.

    What was deleted in the target stays so, however often it was changed in the source.
    """
    if there.state == "deleted" != endpoint.state:
        return False
    noted = replace(endpoint, condition=there.condition, reopened=there.reopened)
    return endpoint.revision > there.revision or noted == there


async def _copy_deliveries(source: Store, target: Store, progress: Progress) -> None:
    after = ("", 0)
    while page := await source.scan_deliveries(after=after, limit=_PAGE):
        for endpoint, queue in groupby(page, key=lambda each: each.endpoint):
            changed = await _endpoints_to_copy(endpoint, list(queue), target)
            await target.put_deliveries(changed)
            progress.deliveries += len(changed)
        after = (page[-1].endpoint, page[-1].sequence)


async def _endpoints_to_copy(
    endpoint: str, queue: Sequence[Delivery], target: Store
) -> list[Delivery]:
    """Return those that are not in the target as they are; but where that is ahead."""
    first, last = queue[0].sequence, queue[-1].sequence
    places = DeliveryQuery(
        endpoint=endpoint, after=first - 1, before=last + 1, limit=last + 1 - first
    )
    there = {
        delivery.sequence: delivery
        for delivery in await target.deliveries(queue[0].tenant, places)
    }
    changed = []
    for delivery in queue:
        known = there.get(delivery.sequence, delivery)
        if known.event_id != delivery.event_id:
            raise ConfigurationError(
                f"the target has sent events of its own to the endpoint {endpoint}: "
                "it is not a copy of this store"
            )
        if delivery.sequence not in there or (
            known != delivery and not _is_ahead(known, delivery)
        ):
            changed.append(delivery)
    return changed


def _is_ahead(there: Delivery, delivery: Delivery) -> bool:
    """Return whether the target has tried a delivery later, or has opened it again."""
    if there.attempts == delivery.attempts:
        return there.ended is None and delivery.ended is not None
    # The lengths of the logs say nothing: each log holds the latest attempts only.
    return _last_tried(there) > _last_tried(delivery)


def _last_tried(delivery: Delivery) -> int:
    return delivery.attempts[-1].begun if delivery.attempts else 0


async def _copy_access(source: Store, target: Store) -> list[str]:
    """Return the names of what the target goes on having in another state."""
    kept = []
    for tenant in await source.tenants():
        kept += await _settle(
            tenant, await target.tenant(tenant.id), _tenant, target.put_tenant, name=tenant.id
        )
    for client in await source.clients():
        kept += await _settle_client(client, target)
        for token in await source.revoked_tokens(client.id):
            await target.revoke_token(token, most=sys.maxsize)
    await copy_uses(source, target)
    for environment in ENVIRONMENTS:
        kept += await _copy_signing_keys(environment, source, target)
    return kept


async def _copy_signing_keys(environment: str, source: Store, target: Store) -> list[str]:
    kept = []
    known = {item.kid: item for item in await target.signing_keys(environment)}
    for key in await source.signing_keys(environment):
        kept += await _settle(key, known.get(key.kid), _key, target.put_signing_key, name=key.kid)
    return kept


async def _settle(
    record: T, there: T | None, merged: Callable[[T, T], T], put: Put[T], *, name: str
) -> list[str]:
    """Bring a record of the target up to date; return its name if it is not as in the source."""
    wanted = record if there is None else merged(record, there)
    if wanted != there:
        await put(wanted)
    return [name] if wanted != record else []


async def _settle_client(client: Client, target: Store) -> list[str]:
    """Update a client as :func:`_settle` does, even under concurrent changes."""
    while (there := await target.client(client.id)) is not None:
        wanted = _client(client, there)
        if wanted == there or await target.replace_client(wanted, over=there):
            return [client.id] if wanted != client else []
    await target.put_client(client)
    return []


def _tenant(tenant: Tenant, there: Tenant) -> Tenant:
    if there.salt != tenant.salt:
        if is_sealed(there.salt) or is_sealed(tenant.salt):
            raise ConfigurationError(
                f"the tenant {tenant.id} cannot be compared, since its salt cannot be decrypted: "
                "name the file of its key in [storage] keys_file"
            )
        raise ConfigurationError(f"the target has another tenant with the id {tenant.id}")
    return replace(tenant, disabled=tenant.disabled or there.disabled)


def _client(client: Client, there: Client) -> Client:
    # A new secret stands last and the one before it stays for a while: so a target that knows
    # the source's newest one is as far, or further.
    known = {secret.digest for secret in there.secrets}
    newest = {secret.digest for secret in client.secrets[-1:]}
    secrets = there.secrets if newest <= known else client.secrets
    disabled = client.disabled or there.disabled
    # Nothing shows which were set later, so the operator decides: differences are listed.
    scopes, networks = there.scopes or client.scopes, there.networks or client.networks
    merged = replace(client, secrets=secrets, disabled=disabled)
    # Keys are either a set or a URL: those of one side stay together.
    keys = there if there.jwks or there.jwks_url else client
    return replace(
        merged, scopes=scopes, networks=networks, jwks=keys.jwks, jwks_url=keys.jwks_url
    )


def _key(key: SigningKey, there: SigningKey) -> SigningKey:
    retired = [number for number in (key.retired, there.retired) if number is not None]
    return replace(key, retired=min(retired, default=None))
