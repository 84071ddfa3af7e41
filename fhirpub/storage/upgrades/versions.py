"""The version of a store's schema, and which releases may use the store (D-382)."""

from __future__ import annotations

from dataclasses import dataclass

from fhirpub.errors import ConfigurationError


class UpgradeNeeded(ConfigurationError):
    """A store of an older release was opened by a command that does not upgrade it."""

    def __init__(self, *, found: int, own: int) -> None:
        super().__init__(
            f"[storage] url: the store has schema version {found}, this release uses {own}: its "
            "first start upgrades the store"
        )
        self.found = found
        self.own = own


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The version of a schema, and the oldest version whose releases may use such a store.

    Both are written by the upgrade: an older release cannot know what a newer one has changed.
    """

    number: int
    usable_from: int

    def problem_for(self, own: int) -> str:
        """Return why a release that makes schemas of the version ``own`` must not use the store.

        Empty if it may: the store is older and can be upgraded, or newer and is usable as it is.
        """
        if own >= self.usable_from:
            return ""
        return (
            f"the store has schema version {self.number} of a newer release, this release uses "
            f"{own}: start the newer release; only a backup leads back to this one"
        )

    def require_use(self, own: int, *, upgrade: bool) -> None:
        """Raise ConfigurationError if a release must not use the store.

        Raises UpgradeNeeded if it could after an upgrade, but is not to ``upgrade`` the store.
        """
        if problem := self.problem_for(own):
            raise ConfigurationError(f"[storage] url: {problem}")
        if 0 < self.number < own and not upgrade:
            raise UpgradeNeeded(found=self.number, own=own)
