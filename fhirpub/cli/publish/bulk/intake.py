"""Takes reports from their sources in small groups, and prepares them, in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fhirpub.cli.publish.bulk.items import Item, submission_of
from fhirpub.cli.publish.files import UnusableFile
from fhirpub.cli.publish.publisher import Registration
from fhirpub.cli.publish.service import Service

_GROUP = 4
_GROUP_BYTES = 262_144


@dataclass(frozen=True, slots=True)
class Taken:
    """An item with what to send; without that, ``problem`` is the reason."""

    item: Item
    registration: Registration | None = None
    problem: str = ""


@dataclass(slots=True)
class Intake:
    """Groups of prepared reports, for several threads.

    Items for which ``is_done`` are counted and left out. A group is small, so that not more is in
    memory than is sent soon.
    """

    items: Iterator[Item]
    service: Service
    stopped: threading.Event
    is_done: Callable[[Item], bool] = lambda _item: False
    skipped: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def take(self) -> list[Taken]:
        """Return the next group; an empty one at the end, and after ``stopped`` is set."""
        group: list[Taken] = []
        size = 0
        while len(group) < _GROUP and size < _GROUP_BYTES:
            item = self._next()
            if item is None:
                break
            taken = self._prepare(item)
            size += len(taken.registration.body) if taken.registration else 0
            group.append(taken)
        return group

    def _next(self) -> Item | None:
        with self._lock:
            for item in self.items:
                if self.stopped.is_set():  # a line may be incomplete
                    return None
                if not self.is_done(item):
                    return item
                self.skipped += 1
        return None

    def _prepare(self, item: Item) -> Taken:
        try:
            submission = submission_of(item, self.service)
        except UnusableFile as problem:
            return Taken(item, problem=str(problem))
        except OSError as problem:
            return Taken(item, problem=f"cannot be read: {problem.strerror}")
        return Taken(item, Registration(submission.type_name, submission.to_json()))
