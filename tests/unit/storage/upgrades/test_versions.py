"""Which releases may use a store, by the versions that its last upgrade has written."""

from __future__ import annotations

import pytest

from fhirpub.errors import ConfigurationError
from fhirpub.storage.upgrades.versions import SchemaVersion, UpgradeNeeded


@pytest.mark.parametrize(
    ("number", "usable_from", "own", "usable"),
    [
        (12, 12, 12, True),
        (11, 11, 12, True),
        (13, 12, 12, True),
        (13, 13, 12, False),
        (14, 12, 13, True),
        (14, 13, 12, False),
    ],
)
def test_a_release_uses_older_stores_and_newer_ones_that_say_so(
    number: int, usable_from: int, own: int, *, usable: bool
) -> None:
    assert (SchemaVersion(number, usable_from).problem_for(own) == "") == usable


def test_the_refusal_names_both_versions_and_what_to_do() -> None:
    with pytest.raises(ConfigurationError) as refusal:
        SchemaVersion(13, 13).require_use(12, upgrade=True)

    assert str(refusal.value) == (
        "[storage] url: the store has schema version 13 of a newer release, this release uses 12: "
        "start the newer release; only a backup leads back to this one"
    )


def test_an_older_store_needs_an_upgrade_and_a_new_or_newer_one_does_not() -> None:
    with pytest.raises(UpgradeNeeded, match="schema version 11, this release uses 12") as needed:
        SchemaVersion(11, 11).require_use(12, upgrade=False)
    assert (needed.value.found, needed.value.own) == (11, 12)
    with pytest.raises(UpgradeNeeded):
        SchemaVersion(1, 1).require_use(12, upgrade=False)
    SchemaVersion(12, 12).require_use(12, upgrade=False)
    SchemaVersion(0, 0).require_use(12, upgrade=False)
    SchemaVersion(13, 12).require_use(12, upgrade=False)


def test_an_older_store_may_be_upgraded_with_leave() -> None:
    SchemaVersion(11, 11).require_use(12, upgrade=True)
