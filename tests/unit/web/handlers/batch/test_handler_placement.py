"""Where the entries of a batch are found: on the event loop, in a thread or in a process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from fhirpub.errors import TooLarge
from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.service import Integrator
from fhirpub.web.handlers.batch import handler as module
from fhirpub.web.handlers.placement import DENSE, LARGE, VERY_LARGE
from tests.batches import BASE, TYPE, bundle, entry
from tests.unit.web.handlers.asking import Places, asked, running

SMALL = dumps(bundle(*[entry("GET", f"{TYPE}?code={'x' * 1_000}")] * 100))
"""More than is parsed on the event loop at once, in entries that are small."""


def with_one_entry(size: int) -> bytes:
    """Return a batch with one entry of about so many bytes, and few values."""
    return dumps(bundle(entry("POST", TYPE, {"conclusion": "x" * size})))


def read(lab: Integrator, body: bytes, *, values: int | None = None) -> tuple[int, list[Any]]:
    """Return how many entries are found, and where they are looked for."""

    async def found() -> tuple[int, list[Any]]:
        services = running(lab).services
        places: Any = Places(services.context)
        services = replace(services, threads=places, processes=places)
        async with asked(lab, "POST", BASE, services=services) as one:
            handler = cast("Any", one.handler)
            handler.data_received(body)
            if values is not None:
                handler._values = values
            entries = await handler._read()
            return len(entries), places.seen

    return running(lab).call(found())


def test_entries_that_are_small_are_found_on_the_event_loop(lab: Integrator) -> None:
    assert len(SMALL) > LARGE
    assert read(lab, SMALL) == (100, [])


def test_an_entry_that_is_large_is_found_in_a_thread_for_its_tenant(lab: Integrator) -> None:
    assert read(lab, with_one_entry(2 * LARGE)) == (1, [("thread", lab.tenant.id)])


@pytest.mark.parametrize(("values", "place"), [(DENSE, "thread"), (DENSE + 1, "process")])
def test_a_large_entry_of_many_values_is_found_in_a_process(
    lab: Integrator, values: int, place: str
) -> None:
    body = with_one_entry(2 * LARGE)

    assert read(lab, body, values=values) == (1, [(place, lab.tenant.id)])


def test_an_entry_that_is_very_large_is_found_in_a_process(lab: Integrator) -> None:
    assert read(lab, with_one_entry(VERY_LARGE)) == (1, [("process", lab.tenant.id)])


@pytest.mark.parametrize(("most", "places"), [(len(SMALL), 0), (len(SMALL) - 1, 1)])
def test_a_batch_that_is_too_long_to_be_joined_at_once_is_read_elsewhere(
    lab: Integrator, monkeypatch: pytest.MonkeyPatch, most: int, places: int
) -> None:
    monkeypatch.setattr(module, "_JOINED", most)

    count, seen = read(lab, SMALL)

    assert (count, len(seen)) == (100, places)


@pytest.mark.parametrize(("most", "found"), [(100, 100), (99, 0)])
def test_a_batch_has_as_many_entries_as_the_settings_allow(
    lab: Integrator, most: int, found: int
) -> None:
    async def count() -> int:
        services = running(lab).services
        batch = replace(services.config.batch, entries=most)
        services = replace(services, config=replace(services.config, batch=batch))
        async with asked(lab, "POST", BASE, services=services) as one:
            handler = cast("Any", one.handler)
            handler.data_received(SMALL)
            try:
                return len(await handler._read())
            except TooLarge:
                return 0

    assert running(lab).call(count()) == found
