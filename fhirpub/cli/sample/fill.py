"""Registers reports in a store, and what happens to them later, as the service would do it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from fhirpub.cli.sample.reports import Plan, Step
from fhirpub.interactions.context import Context
from fhirpub.interactions.erased import is_tombstone
from fhirpub.interactions.read import read_whole
from fhirpub.interactions.register import (
    Candidate,
    Prepared,
    Received,
    Rejected,
    find_first,
    receive_registration,
    register,
    repeats,
    validate_registration,
)
from fhirpub.interactions.revision.comparison import Revision, Stored, compare, prepare_revision
from fhirpub.interactions.revision.revise import revise
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.update import Update, prepare, update
from fhirpub.runtime.stages import run_to_completion
from fhirpub.storage.contract import Version
from fhirpub.tenant import Tenant

TYPE = "DiagnosticReport"
_AT_ONCE = 32
"""So many reports are on their way: what they add is committed together."""


@dataclass(slots=True)
class Filling:
    """Publishes the reports of a plan; ``counts`` is what became of them.

    The words are those of the command's output: ``registered``, ``revised`` and ``updated``, and
    ``there already``, ``of other content`` and ``erased`` for reports that were left as they are.
    """

    tenant: Tenant
    context: Context
    plan: Plan
    counts: Counter[str] = field(default_factory=Counter)
    done: int = 0

    async def run(self, reports: int, *, show: Callable[[], None]) -> None:
        """Publish this number of reports; ``show`` is called after each.

        Raises what the interactions raise: InvalidContent, StoreUnavailable.
        """
        numbers = iter(range(reports))
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(min(reports, _AT_ONCE)):
                    tasks.create_task(self._publish_each(numbers, show))
        except ExceptionGroup as problems:  # most likely all the same: a full disk
            raise problems.exceptions[0] from None

    async def _publish_each(self, numbers: Iterator[int], show: Callable[[], None]) -> None:
        for number in numbers:
            await self._publish(self.plan.steps(number))
            self.done += 1
            show()

    async def _publish(self, steps: Sequence[Step]) -> None:
        """Make the versions of a report that are not there yet."""
        first, *following = steps
        resource_id = await self._register(first.body)
        if resource_id is None:
            return
        newest = await self._newest(resource_id)
        for step in following[newest.version - 1 :]:
            if step.action == "revise":
                await self._revise(resource_id, step.body)
                self.counts["revised"] += 1
            else:
                await self._update(resource_id, step.body)
                self.counts["updated"] += 1

    async def _register(self, body: bytes) -> str | None:
        """Return the id of a report that is there now; None if it is not the one of this body."""
        tenant, context = self.tenant, self.context
        received = _received(context, body)
        first = await find_first(received.key, tenant=tenant, context=context)
        if first is not None:
            same = repeats(first, received.submission.digest)
            other = "erased" if is_tombstone(first) else "of other content"
            self.counts["there already" if same else other] += 1
            return first.id if same else None
        prepared = run_to_completion(validate_registration(context, received, tenant=tenant))
        candidate = _accepted(prepared)
        registration = await register(candidate, None, tenant=tenant, context=context)
        self.counts["registered" if registration.created else "there already"] += 1
        return registration.first.id

    async def _revise(self, resource_id: str, body: bytes) -> None:
        tenant, context = self.tenant, self.context
        candidate = _accepted(
            run_to_completion(
                prepare_revision(context, body, is_xml=False, type_name=TYPE, tenant=tenant)
            )
        )
        await revise(
            candidate,
            newest_of=partial(self._newest, resource_id),
            check=_accept_any,
            compare=partial(_compare, context),
            tenant=tenant,
            context=context,
        )

    async def _update(self, resource_id: str, body: bytes) -> None:
        tenant, context = self.tenant, self.context

        async def prepared(latest: Version) -> Update:
            return run_to_completion(
                prepare(context, body, form="fhir", is_xml=False, latest=latest, tenant=tenant)
            )

        await update(
            newest_of=partial(self._newest, resource_id),
            check=_accept_any,
            resource_type=context.types[TYPE],
            tenant=tenant,
            context=context,
            prepared=prepared,
        )

    def _newest(self, resource_id: str) -> Awaitable[Version]:
        tenant, context = self.tenant, self.context
        return read_whole(TYPE, resource_id, tenant=tenant, context=context)


def _received(context: Context, body: bytes) -> Received:
    return run_to_completion(
        receive_registration(
            context, body, is_xml=False, read_body=from_parameters, type_name=TYPE
        )
    )


def _accepted(prepared: Prepared) -> Candidate:
    """Return what is to be stored; raises what refuses it."""
    if isinstance(prepared, Rejected):
        raise prepared.error()
    return prepared


def _accept_any(_newest: Version) -> None:
    """Accept every version: no other client changes what this command has published."""


async def _compare(context: Context, candidate: Version, stored: Stored) -> Revision:
    return compare(context, candidate, stored)
