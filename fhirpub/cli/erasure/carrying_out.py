"""Carries out orders to erase, some at a time, with a line that shows how far it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from fhirpub.administration.erasure import operations
from fhirpub.administration.erasure.work import MAX_AT_ONCE
from fhirpub.cli.administration.target import Caller
from fhirpub.cli.printing import Record
from fhirpub.cli.progress_line import ProgressLine

Order = TypeVar("Order")


async def carry_out(
    orders: Sequence[Order], act: Callable[[Sequence[Order]], Awaitable[Record]]
) -> tuple[list[Record], list[str]]:
    """Carry out all orders; return what was erased, and why some were refused."""
    erased: list[Record] = []
    refused: list[str] = []
    line = ProgressLine(at_once=False)
    try:
        for start in range(0, len(orders), MAX_AT_ONCE):
            line.show(partial("{:,} of {:,} resources".format, start, len(orders)))
            done = await act(orders[start : start + MAX_AT_ONCE])
            erased += done["erased"]
            refused += done["refused"]
    finally:
        line.end()
    return erased, refused


async def complete(call: Caller, tenant_id: str) -> list[Record]:
    """Complete the orders of a tenant that were interrupted; return what was erased."""
    erased: list[Record] = []
    following: str | None = ""
    while following is not None:
        done = await call(operations.RESUME, tenant=tenant_id, after=following)
        erased += done["erased"]
        following = done["following"]
    return erased
