"""Where a pure computation runs: on the event loop, in a thread or in another process (ADR 23)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from fhirpub.fhir.strict_json import count
from fhirpub.interactions.context import Context
from fhirpub.runtime.process_pool import ProcessUnavailable
from fhirpub.web.services import Services

T = TypeVar("T")

LARGE = 64 * 1024
"""More bytes are parsed, validated and serialized in a thread, to keep the event loop free."""
VERY_LARGE = 2 * 1024 * 1024
"""Native functions hold the interpreter for milliseconds over so many bytes."""
LARGE_STORED = 256 * 1024
"""What is stored has no documents in it, so that so many bytes hold many values."""
DENSE = 2_000
"""So many values take four milliseconds if they are valid, and more to explain if they are not."""
_MARKS = (b",", b"{", b"[", b"<")
"""One of them is beside each value of JSON, and in each element of XML and of narratives."""
_MARKS_OF_XML = (*_MARKS, b'="')
"""One of them is in each attribute, too."""


async def compute(
    services: Services,
    owner: str,
    work: Callable[[Context, bytes], T],
    chunks: Sequence[bytes],
    *,
    size: int,
    is_dense: bool,
) -> T:
    """Run a pure function on some bytes, for a tenant.

    What is dense or very large goes to a process, what is large and takes few steps, such as a
    document, to a thread. ``work`` is a function of a module, or a partial of one.
    """
    if size > LARGE:
        services.trimmer.note_large_work()
    if services.processes is not None and is_dense:
        with suppress(ProcessUnavailable):
            return await services.processes.run(owner, work, chunks)
    context = services.context
    if size <= LARGE and not is_dense:
        return work(context, joined(chunks))
    return await services.threads.run(owner, lambda: work(context, joined(chunks)))


async def compute_with(
    services: Services,
    owner: str,
    work: Callable[[Context, bytes], T],
    stored: Sequence[bytes],
) -> T:
    """Run a pure function that brings stored JSON, where resources of this size are computed."""
    size = sum(map(len, stored))
    is_dense = size > LARGE_STORED or sum(map(count_values, stored)) > DENSE
    return await compute(services, owner, work, [b""], size=size, is_dense=is_dense)


def joined(chunks: Sequence[bytes]) -> bytes:
    """Return the chunks as one, without a copy if there is only one."""
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def count_values(piece: bytes, *, is_xml: bool = False) -> int:
    """Return about how many values there are; commas in texts count as well."""
    return sum(count(piece, mark) for mark in (_MARKS_OF_XML if is_xml else _MARKS))
