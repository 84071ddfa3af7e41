"""What is published according to the report of an earlier load, in few bytes for each."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fhirpub.cli.publish.bulk.items import Item
from fhirpub.fhir.times import parse_instant

_PUBLISHED = frozenset({"created", "replayed"})


@dataclass(slots=True)
class Done:
    """What is published according to an earlier report, in few bytes for each."""

    files: set[bytes] = field(default_factory=set)
    lines: dict[str, bytearray] = field(default_factory=dict)
    since_ms: float = float("inf")

    @classmethod
    def read(cls, file: Path) -> Done:
        """Read a report. A line that is none, such as an incomplete one, is ignored."""
        done = cls()
        with suppress(FileNotFoundError), file.open("rb") as lines:
            for line in lines:
                with suppress(ValueError, TypeError, KeyError):
                    done._add(json.loads(line))
        return done

    def has(self, item: Item) -> bool:
        """Return whether an item is published, and its file is as it was at that time."""
        name = str(item.file)
        if item.line:
            bits = self.lines.get(name, b"")
            byte, bit = divmod(item.line, 8)
            is_listed = byte < len(bits) and bool(bits[byte] >> bit & 1)
        else:
            is_listed = _key(name) in self.files
        return is_listed and self._is_older(item.file)

    def _is_older(self, file: Path) -> bool:
        if str(file) == "-":
            return True
        with suppress(OSError):
            about = file.stat()
            return max(about.st_mtime, about.st_ctime) * 1000 < self.since_ms
        return False

    def _add(self, record: dict[str, Any]) -> None:
        moment = parse_instant(record["at"])
        if moment is not None:
            self.since_ms = min(self.since_ms, moment)
        if record["result"] not in _PUBLISHED:
            return
        if record["line"] is None:
            self.files.add(_key(record["file"]))
            return
        bits = self.lines.setdefault(record["file"], bytearray())
        byte, bit = divmod(record["line"], 8)
        bits.extend(bytes(max(0, byte + 1 - len(bits))))
        bits[byte] |= 1 << bit


def _key(name: str) -> bytes:
    return hashlib.blake2b(name.encode(errors="surrogateescape"), digest_size=16).digest()
