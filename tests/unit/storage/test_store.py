"""What an engine does that does not override it."""

from __future__ import annotations

from fhirpub.storage.store import Store


def test_a_start_upgrades_a_store_unless_it_is_asked_not_to() -> None:
    assert Store.upgrades is True


def test_an_engine_has_no_store_for_another_loop_unless_it_makes_one() -> None:
    assert Store.for_other_loop(object()) is None  # type: ignore[arg-type]
