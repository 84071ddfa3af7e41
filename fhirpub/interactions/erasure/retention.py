"""Retention: resources that a policy names are erased like those of an order (ADR 36)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

from fhirpub.config.retention import Policy
from fhirpub.errors import ConfigurationError
from fhirpub.interactions.context import Context
from fhirpub.runtime.clock import DAY_MS
from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import (
    LAST_UPDATED,
    Criterion,
    Order,
    TimeMatch,
    TokenMatch,
    sort_key,
)
from fhirpub.tenant import Tenant

OPERATOR = "retention"
"""The operator of what a policy has erased."""
_PAGE = 100
_STATUS = "status"
_OLDEST_FIRST = (Order(LAST_UPDATED),)


def check_policies(policies: Iterable[Policy], context: Context) -> None:
    """Raise ConfigurationError for a policy of a type that is not served, or has no status."""
    problems = []
    for policy in policies:
        at = f"[retention] policies: {policy.text!r}: "
        if policy.type not in context.types:
            problems.append(f"{at}{policy.type} is no enabled type of resources")
            continue
        served = context.types[policy.type]
        known = served.create_statuses | served.update_statuses
        unknown = [status for status in policy.statuses if status not in known]
        if policy.statuses and _STATUS not in context.searched[policy.type].parameters:
            problems.append(f"{at}{policy.type} cannot be searched by status")
        elif unknown:
            problems.append(f"{at}{policy.type} is never {', '.join(unknown)}")
    if problems:
        raise ConfigurationError("\n".join(problems))


async def expired(
    policy: Policy, *, tenant: Tenant, context: Context
) -> AsyncGenerator[str, None]:
    """Yield the ids of the resources that a policy names now, those first that changed first."""
    until = context.clock() - policy.days * DAY_MS
    criteria = [Criterion(LAST_UPDATED, (TimeMatch(until=until),))]
    if policy.statuses:
        matches = tuple(TokenMatch(None, status) for status in policy.statuses)
        criteria.append(Criterion(_STATUS, matches))
    after, more = None, True
    while more:
        query = SearchQuery(
            type=policy.type,
            criteria=tuple(criteria),
            order=_OLDEST_FIRST,
            after=after,
            limit=_PAGE,
            count_up_to=0,
        )
        page = await context.resources.search(tenant.id, query)
        for version in page.versions:
            yield version.id
        more = page.more
        if page.versions:
            after = sort_key(query.order, page.versions[-1])
