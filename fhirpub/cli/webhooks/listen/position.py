"""Where the command stopped: a small file, so that the next run continues there."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fhirpub.config.loader import variable


def usual_file(name: str, base: str, client_id: str) -> Path:
    """Return the file of a name at a service; it is in the user's folder for such files."""
    home = variable("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    digest = hashlib.sha256(f"{base} {client_id}".encode()).hexdigest()[:12]
    return Path(home) / "fhirpub" / f"listen-{name}-{digest}.json"


@dataclass(slots=True)
class Position:
    """The last event that was handled, of which endpoint; 0: none."""

    file: Path
    endpoint: str = ""
    sequence: int = 0

    @classmethod
    @contextmanager
    def locked(cls, file: Path) -> Iterator[Position]:
        """Read the position, and keep other runs away until the block ends.

        Raises ClickException if another run has it, or the file cannot be used.
        """
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            lock = file.with_name(f"{file.name}.lock").open("ab")
        except OSError as problem:
            raise click.ClickException(f"{file} cannot be used: {problem.strerror}") from problem
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                other = "another run listens under this name; give this one another --name"
                raise click.ClickException(other) from None
            yield cls(file, **_read(file))

    def move(self, endpoint: str, sequence: int) -> None:
        """Store that an event of an endpoint was handled."""
        self.endpoint, self.sequence = endpoint, sequence
        draft = self.file.with_name(f"{self.file.name}.tmp")
        draft.write_text(json.dumps({"endpoint": endpoint, "sequence": sequence}))
        draft.rename(self.file)


def _read(file: Path) -> dict[str, Any]:
    """Return what a file holds, nothing if there is none. Raises ClickException."""
    try:
        found = json.loads(file.read_bytes())
        return {"endpoint": str(found["endpoint"]), "sequence": int(found["sequence"])}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        wrong = f"{file} holds no position; remove it to begin with the next event"
        raise click.ClickException(wrong) from problem
