"""What the members of a set said of elections, of their states and of whom they copy from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from tests.mongod.server import Mongod

_TOLD_BY = {"ELECTION", "REPL", "ROLLBACK"}
_LATEST = 400
_LONGEST = 240


def story(members: Iterable[Mongod], *, since: int) -> str:
    """Return the latest of it, a line each, in the order of time.

    ``since`` is in milliseconds since 1970.
    """
    told = sorted(item for member in members for item in _told(member, since))
    return "\n".join(line for _moment, line in told[-_LATEST:])


def _told(member: Mongod, since: int) -> Iterator[tuple[str, str]]:
    if not member.log.exists():
        return
    begin = datetime.fromtimestamp(since / 1000, tz=UTC).isoformat(timespec="milliseconds")
    last = ""
    for line in member.log.read_text(errors="replace").splitlines():
        entry = _entry(line)
        moment = entry.get("t", {}).get("$date", "")
        if moment < begin or entry["c"] not in _TOLD_BY or entry["msg"] == last:
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
