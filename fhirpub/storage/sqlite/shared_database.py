"""An open SQLite file on a second event loop of the process."""

from __future__ import annotations

from fhirpub.storage.sqlite.database import Database, R, as_unavailable
from fhirpub.storage.sqlite.readers import Work


class SharedDatabase(Database):
    """A file that is open on another event loop, which closes it after this one.

    The threads and their connections are shared: commits of the two loops take turns on the one
    writer.
    """

    def __init__(self, owner: Database) -> None:
        self.__dict__.update(vars(owner))
        self._at_once = self._connect_inline()
        self._group = self._new_group()

    async def read_for(
        self,
        tenant: str,  # noqa: ARG002
        work: Work[R],
        *,
        max_seconds: float | None = None,
    ) -> R:
        """Return what ``work`` finds; tenants share threads on the loop of the owner only."""
        with as_unavailable():
            return await self._readers.read(work, max_seconds=max_seconds)

    async def close(self) -> None:
        """Finish what was handed in."""
        await self._group.drain()
