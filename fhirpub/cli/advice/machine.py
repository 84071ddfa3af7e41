"""Whether the limits of this process and of its machine fit the settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fhirpub.cli.advice.finding import Finding, warning
from fhirpub.config.settings import Config
from fhirpub.runtime.descriptors import (
    RESERVED_DESCRIPTORS,
    raise_descriptor_limit,
    usable_connections,
)

_MIB = 1024 * 1024
_WORKER_BYTES = 512 * _MIB
"""What the guide for operators says to plan for each."""
_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Of cgroups of version 2 and 1, as a container sees its own."""


def advise_on_machine(config: Config, *, memory: int | None = None) -> Iterator[Finding]:
    """Yield warnings about open files, and about ``memory`` in bytes, by default as it is here."""
    yield from _descriptors(config)
    found = memory_bytes() if memory is None else memory
    needed = config.server.workers * _WORKER_BYTES
    if found < needed:
        text = (
            f"[server] workers = {config.server.workers}: {needed // _MIB} MiB should be planned"
            f" for them, and this machine or its control group has {found // _MIB} MiB: give it"
            " more, or lower the setting"
        )
        yield warning("configuration", text)


def memory_bytes(limits: tuple[Path, ...] = _CGROUP_LIMITS) -> int:
    """Return the memory of this machine, or the limit of its control group if that is less."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in limits:
        try:
            found.append(int(path.read_text()))
        except (OSError, ValueError):  # it is not there, or says "max"
            continue
    return min(found)


def _descriptors(config: Config) -> Iterator[Finding]:
    """Compare the connections with the limit of open files, raised as the service raises it."""
    limit, wanted = raise_descriptor_limit(), config.limits.connections
    usable = usable_connections(wanted)
    if usable < wanted:
        needed = wanted + RESERVED_DESCRIPTORS
        text = (
            f"[limits] connections = {wanted}, but the limit of open files ({limit}) allows"
            f" {usable}: set LimitNOFILE={needed} in the unit of systemd, or `ulimit -Hn {needed}`"
            " (a service may have another limit than this shell), or lower the setting"
        )
        yield warning("configuration", text)
