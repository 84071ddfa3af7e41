"""Conditions that are a search: which one resource a caller means (R4 http; D-183)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fhirpub.errors import InvalidSearch, Issue, SeveralMatch
from fhirpub.interactions.checks.search_names import expression_of
from fhirpub.interactions.context import Context
from fhirpub.interactions.execute import understood
from fhirpub.interactions.query_parser import IGNORED
from fhirpub.plugin_api import ResourceType
from fhirpub.problems import OperationProblem
from fhirpub.storage.contract import Version
from fhirpub.tenant import Tenant

ABOUT_THE_ANSWER = frozenset(
    "_count _elements _format _include _pretty _revinclude _sort _summary _total".split()
)
"""Parameters of a search that say nothing of what is meant."""


async def the_match(
    criteria: Sequence[tuple[str, str]],
    *,
    resource_type: ResourceType,
    tenant: Tenant,
    context: Context,
) -> Version | None:
    """Return the newest version of the one resource that matches, or None if there is none.

    An identifier with its system means the resource that was registered under it, not one that
    came with another (ADR 24). Raises SeveralMatch; InvalidSearch for criteria that are wrong, not
    known or empty: what is not understood must not widen what is changed.
    """
    rule = "has no value, and a condition must be understood as a whole"
    empty = [  # a search would leave them out
        Issue.error(OperationProblem.PARAMETER_EMPTY, rule, expression_of(name))
        for name, value in criteria
        if not value and name not in IGNORED
    ]
    try:
        wanted = understood(
            criteria,
            resource_type=resource_type,
            tenant=tenant,
            context=context,
            strict=True,
            alone=True,
        )
    except InvalidSearch as wrong:
        raise InvalidSearch([*empty, *wrong.issues]) from None
    if empty:
        raise InvalidSearch(empty)
    if all(name.partition(":")[0] in ABOUT_THE_ANSWER for name, _value in wanted.understood):
        raise InvalidSearch.because(
            "a condition needs a search parameter, such as identifier=<system>|<value>",
            details=OperationProblem.CONDITION_EMPTY,
        )
    page = await context.resources.search(tenant.id, replace(wanted.query, limit=2, after=None))
    if len(page.versions) > 1 or page.more:
        raise SeveralMatch(f"more than one {resource_type.name} matches the condition")
    return page.versions[0] if page.versions else None
