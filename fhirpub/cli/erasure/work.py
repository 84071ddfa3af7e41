"""What the commands of erasure have in common: orders that are carried out one by one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import click

from fhirpub.app.changes import recorded
from fhirpub.app.console import TenantConsole
from fhirpub.cli.printing import Record
from fhirpub.cli.progress_line import ProgressLine
from fhirpub.config.settings import Config
from fhirpub.interactions.erasure.erase import Begun, Erased, Eraser
from fhirpub.interactions.erasure.extent import NotErasable
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.erasure.contract import Erasure
from fhirpub.webhooks.transport.envelope import without_details

_PAGE = 100
_AT_ONCE = 50
"""So many orders are finished together."""
_Act = Callable[[Erasure], Awaitable[Begun]]


@dataclass(frozen=True, slots=True)
class Note:
    """Who orders an erasure, and why."""

    operator: str
    reason: str
    allows_reuse: bool


class Work:
    """Erases resources of a tenant, with a line that shows how far it is."""

    def __init__(self, config: Config, console: TenantConsole) -> None:
        self._config = config
        self._console = console
        self._line = ProgressLine(at_once=False)
        self._done, self._total = 0, 0
        self.refused: list[str] = []
        """Why resources were not erased."""
        self._eraser = Eraser(
            tenant=console.tenant,
            store=console.store,
            context=console.context,
            strip=without_details,
            on_progress=self._show,
        )

    async def plan(self, ids: Sequence[str], *, leaves_out_holds: bool = False) -> list[Erased]:
        """Return what would be erased. Raises NotErasable before anything is."""
        planned: list[Erased] = []
        for one in ids:
            with suppress(*[NotErasable] * leaves_out_holds):
                planned.append(await self._eraser.plan(one, besides=ids))
        return planned

    async def erase(self, planned: Sequence[Erased], note: Note) -> list[Erased]:
        """Erase resources, one after the other. Raises NotErasable, StoreUnavailable."""
        orders = [
            Erasure(
                tenant=self._console.tenant.id,
                type=one.type,
                id=one.id,
                ordered=now_ms(),
                operator=note.operator,
                reason=note.reason,
                allows_reuse=note.allows_reuse,
            )
            for one in planned
        ]
        return await self._carry_out(orders, self._eraser.begin)

    async def resume(self) -> list[Erased]:
        """Complete the orders of the tenant that were interrupted."""
        orders: list[Erasure] = []
        after = ("", "")
        while page := await self._console.store.erasures(
            tenant=self._console.tenant.id, unfinished=True, after=after, limit=_PAGE
        ):
            orders += page
            after = (page[-1].tenant, page[-1].id)
        return await self._carry_out(orders, self._eraser.resume)

    async def repeat(self, orders: Sequence[Erasure]) -> list[Erased]:
        """Carry out orders that were carried out before, on what a backup brought back."""
        return await self._carry_out(orders, self._eraser.forbid)

    async def _carry_out(self, orders: Sequence[Erasure], act: _Act) -> list[Erased]:
        self._done, self._total = 0, len(orders)
        erased: list[Erased] = []
        try:
            for start in range(0, len(orders), _AT_ONCE):
                begun: list[Begun] = []
                try:
                    for order in orders[start : start + _AT_ONCE]:
                        begun += await self._begin(order, act)
                finally:
                    await self._eraser.finish(begun)
                erased += [one.erased for one in begun]
        finally:
            self._line.end()
        return erased

    async def _begin(self, order: Erasure, act: _Act) -> list[Begun]:
        """Begin an order; one that is refused, since it is on hold by now, stops no other."""
        what, store = (order.type, order.id), self._console.store
        self._done += 1
        try:
            async with recorded(self._config, store, "erase", what, tenant=order.tenant):
                return [await act(order)]
        except NotErasable as refusal:
            self.refused.append(str(refusal))
            return []

    def _show(self, erased: Erased) -> None:
        self._line.show(
            lambda: (
                f"{self._done:,} of {self._total:,} resources, "
                f"{erased.versions:,} versions of {erased.type}/{erased.id}"
            )
        )


def records_of(erased: Sequence[Erased]) -> list[Record]:
    """Return what is shown of erasures, as rows of a table."""
    return [
        {
            "resource": f"{one.type}/{one.id}",
            "versions": one.versions,
            "results": one.members,
            "documents": one.documents,
            "documents kept": one.documents_kept,
            "bytes": one.bytes,
        }
        for one in erased
    ]


def rest_of(erased: Sequence[Erased]) -> Iterator[str]:
    """Yield what is left to know after erasures."""
    later = sum(one.documents_later for one in erased)
    if later:
        yield (
            f"{later:,} documents were added within the last hour: the sweep of a running "
            "service deletes them within two hours."
        )
    if any(not one.is_complete and not one.documents_later for one in erased):
        yield (
            "Something is left for now, since another process reads the store file, or sends an "
            "event: a running service tries again, and so does `fhirpub erase resume`."
        )


def report_refused(work: Work) -> None:
    """Raise ClickException if some resources were refused; the others are erased."""
    if work.refused:
        raise click.ClickException("; ".join(work.refused))
