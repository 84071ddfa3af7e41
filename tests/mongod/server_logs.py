"""Log lines of replica set members about elections, states and sync sources."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from tests.mongod.server import Mongod

_COMPONENTS = {"ELECTION", "REPL", "ROLLBACK"}
_LATEST = 400
_LONGEST = 240


def story(members: Iterable[Mongod], *, since: int) -> str:
    """Return the latest of these log lines in the order of time.

    ``since`` is in milliseconds since 1970.
    """
    entries = sorted(item for member in members for item in _entries(member, since))
    return "\n".join(line for _moment, line in entries[-_LATEST:])


def _entries(member: Mongod, since: int) -> Iterator[tuple[str, str]]:
    if not member.log.exists():
        return
    begin = datetime.fromtimestamp(since / 1000, tz=UTC).isoformat(timespec="milliseconds")
    last = ""
    for line in member.log.read_text(errors="replace").splitlines():
        entry = _entry(line)
        moment = entry.get("t", {}).get("$date", "")
        if moment < begin or entry["c"] not in _COMPONENTS or entry["msg"] == last:
            continue
        last = entry["msg"]
        details = json.dumps(entry.get("attr", {}))
        yield moment, f"{moment} {member.port} {last} {details}"[:_LONGEST]


def _entry(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:  # the last line of a member that was killed
        return {}
    return entry if isinstance(entry, dict) else {}
