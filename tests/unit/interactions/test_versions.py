"""Which documents a version holds, and which have a record of their own (ADR 30)."""

from __future__ import annotations

from dataclasses import replace

from fhirpub.interactions.versions import attach, still_attached
from fhirpub.storage.contract import SMALL_BYTES
from fhirpub.testing.samples import a_version
from fhirpub.testing.store_contract import a_blob


def test_a_small_document_is_held() -> None:
    blob = a_blob(bytes(SMALL_BYTES))

    assert attach([blob]) == ((blob,), ())


def test_a_large_document_is_not_held() -> None:
    blob = a_blob(bytes(SMALL_BYTES + 1))

    assert attach([blob]) == ((), (blob,))


def test_small_documents_are_held_as_long_as_they_have_room_together() -> None:
    first, second, third = (a_blob(size * b"x") for size in (40_000, 30_000, 25_000))

    assert attach([first, second, third]) == ((first, third), (second,))


def test_no_version_holds_more_than_sixteen_documents() -> None:
    blobs = tuple(a_blob(b"%d" % number) for number in range(20))

    assert attach(blobs) == (blobs[:16], blobs[16:])


def test_the_next_version_holds_the_documents_that_it_still_names() -> None:
    kept, dropped = a_blob(), a_blob()
    latest = replace(a_version(), attached=(kept, dropped))

    assert still_attached(latest, [kept.sha256, a_blob().sha256]) == (kept,)
