"""What becomes of a batch whose inserts are refused, or whose outcome is not known."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pymongo
import pytest
from pymongo.errors import AutoReconnect, OperationFailure
from structlog.testing import capture_logs

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.contract import Blob
from fhirpub.storage.mongodb.documents import PIECE_BYTES, Addition, encode_addition
from fhirpub.storage.mongodb.writes import Additions
from fhirpub.testing.contracts.store.records import a_blob
from fhirpub.testing.samples import LAB, a_version
from tests.unit.storage.mongodb.answers import refused

_SECONDS = 40.0
_LOST = AutoReconnect("a value")
_NEVER = OperationFailure("a value", 91, {"errorLabels": ["NoWritesPerformed"]})


class Collection:
    """A collection that answers as a test wants, which no server does at a given write."""

    def __init__(self) -> None:
        self.inserted: list[list[Any]] = []
        self.refreshed: list[list[Any]] = []
        self.looked: list[Any] = []
        self.failures: list[Exception | None] = []
        self.refresh_failures: list[Exception] = []
        self.look_failures: list[Exception] = []
        self.found: list[list[Addition]] = []
        self.seconds: list[float] = []

    async def insert_many(self, documents: Sequence[Any], *, ordered: bool) -> None:
        assert not ordered
        self._note()
        self.inserted.append([*documents])
        failure = self.failures.pop(0) if self.failures else None
        if failure:
            raise failure

    async def bulk_write(self, writes: Sequence[Any], *, ordered: bool) -> None:
        assert not ordered
        self._note()
        self.refreshed.append([*writes])
        if self.refresh_failures:
            raise self.refresh_failures.pop(0)

    def find(self, wanted: Any, _shown: Any, *, hint: str) -> Collection:
        assert hint == "version_key"
        self._note()
        self.looked.append(wanted["$or"])
        return self

    async def to_list(self, _most: None) -> list[dict[str, Any]]:
        if self.look_failures:
            raise self.look_failures.pop(0)
        found = self.found.pop(0) if self.found else []
        return [{"_id": each.nonce, "id": each.key[0], "version": each.key[1]} for each in found]

    def _note(self) -> None:
        self.seconds.append(pymongo._csot.get_deadline() - time.monotonic())


class Stored:
    """What is counted."""

    def __init__(self) -> None:
        self.counted: list[tuple[str, int]] = []

    def add_all(self, counts: Any) -> None:
        self.counted += counts


class Batch:
    """What a batch is written into."""

    def __init__(self) -> None:
        self.versions, self.certain = Collection(), Collection()
        self.blobs, self.pieces = Collection(), Collection()
        self.stored = Stored()

    def additions(self, seconds: float = _SECONDS) -> Additions:
        return Additions(
            self.versions,  # type: ignore[arg-type]
            self.certain,  # type: ignore[arg-type]
            blobs=self.blobs,  # type: ignore[arg-type]
            pieces=self.pieces,  # type: ignore[arg-type]
            stored=self.stored,  # type: ignore[arg-type]
            seconds=seconds,
        )

    async def commit(self, *additions: Addition) -> list[Any]:
        """Return what came of additions: reasons in place of errors."""
        found = await self.additions().commit(additions)
        return [each.reason if isinstance(each, StoreUnavailable) else each for each in found]


@pytest.fixture
def batch() -> Batch:
    return Batch()


def an_addition(*blobs: Blob, **changes: Any) -> Addition:
    return encode_addition(LAB, a_version(**changes), blobs, now=5)


async def test_what_is_inserted_has_its_key_and_counts(batch: Batch) -> None:
    additions = an_addition(body=b"123"), an_addition()

    assert await batch.commit(*additions) == [True, True]
    assert batch.versions.inserted == [[each.document for each in additions]]
    assert batch.stored.counted == [(LAB, each.stored) for each in additions]
    assert batch.versions.looked == batch.certain.looked == []


async def test_each_write_has_half_of_what_is_left(batch: Batch) -> None:
    await batch.commit(an_addition(a_blob()))

    assert batch.blobs.seconds == [pytest.approx(_SECONDS / 2, abs=5)]
    assert batch.versions.seconds == [pytest.approx(_SECONDS / 2, abs=5)]


async def test_a_key_that_another_has_is_taken_and_counts_nothing(batch: Batch) -> None:
    ours, free = an_addition(), an_addition()
    theirs = replace(an_addition(), key=ours.key)
    batch.versions.failures = [refused(11_000)]
    batch.versions.found = [[theirs]]

    assert await batch.commit(ours, free) == [False, True]
    assert batch.versions.looked == [[{"id": ours.key[0], "version": 1}]]
    assert batch.stored.counted == [(LAB, free.stored)]


async def test_a_key_that_has_our_nonce_is_ours(batch: Batch) -> None:
    ours = an_addition()
    batch.versions.failures = [_LOST]
    batch.versions.found = [[ours]]

    assert await batch.commit(ours) == [True]
    assert batch.certain.looked == []
    assert len(batch.versions.inserted) == 1


@pytest.mark.parametrize("failure", [_LOST, refused(durable=False)])
async def test_what_nothing_is_found_of_is_looked_for_certainly_and_sent_again(
    batch: Batch, failure: Exception
) -> None:
    ours = an_addition()
    batch.versions.failures = [failure]

    assert await batch.commit(ours) == [True]
    assert len(batch.certain.looked) == 1
    assert batch.versions.inserted == [[ours.document]] * 2


async def test_what_is_unknown_twice_is_unavailable(batch: Batch) -> None:
    batch.versions.failures = [_LOST, _LOST]

    assert await batch.commit(an_addition()) == ["outcome unknown"]
    assert len(batch.versions.inserted) == 2
    assert batch.stored.counted == []


async def test_an_unsure_look_is_followed_by_a_certain_one(batch: Batch) -> None:
    ours = an_addition()
    batch.versions.failures, batch.versions.look_failures = [_LOST], [_LOST]
    batch.certain.look_failures, batch.certain.found = [_LOST], [[ours]]

    assert await batch.commit(ours) == [True]
    assert len(batch.certain.looked) == 2


async def test_what_certainly_did_not_happen_is_unavailable_at_once(batch: Batch) -> None:
    batch.versions.failures = [_NEVER]

    assert await batch.commit(an_addition()) == ["OperationFailure 91 NoWritesPerformed"]
    assert batch.versions.looked == []


async def test_of_the_refused_those_alone_are_looked_for(batch: Batch) -> None:
    taken, free = an_addition(), an_addition()
    batch.versions.failures = [refused(11_000)]
    batch.versions.found = [[an_addition(), taken]]

    assert await batch.commit(taken, free) == [True, True]
    assert batch.versions.looked == [[{"id": taken.key[0], "version": 1}]]


async def test_documents_are_written_before_what_names_them(batch: Batch) -> None:
    blob = a_blob()

    assert await batch.commit(an_addition(blob)) == [True]
    assert [one["sha256"] for one in batch.blobs.inserted[0]] == [blob.sha256]
    assert (LAB, 100) in batch.stored.counted


async def test_documents_that_are_there_become_fresh_and_count_once(batch: Batch) -> None:
    one, other = a_blob(), a_blob(b"123")
    batch.blobs.failures = [refused(11_000)]

    assert await batch.commit(an_addition(one, other)) == [True]
    ((refresh,),) = batch.blobs.refreshed
    assert refresh._filter == {"_id": f"{LAB}/{one.sha256}"}
    assert batch.stored.counted[0] == (LAB, 3)


@pytest.mark.parametrize("failures", [[_NEVER], [_LOST, _LOST]])
async def test_what_names_documents_that_are_not_kept_is_unavailable_alone(
    batch: Batch, failures: list[Exception]
) -> None:
    batch.blobs.failures = [refused(11_000)]
    batch.blobs.refresh_failures = [*failures]
    alone = an_addition()

    found = await batch.commit(an_addition(a_blob()), alone)

    assert found[0].startswith(type(failures[0]).__name__)
    assert found[1] is True
    assert batch.versions.inserted == [[alone.document]]
    assert len(batch.blobs.refreshed) == len(failures)


async def test_documents_become_fresh_at_the_second_try(batch: Batch) -> None:
    batch.blobs.failures, batch.blobs.refresh_failures = [refused(11_000)], [_LOST]

    assert await batch.commit(an_addition(a_blob())) == [True]
    assert len(batch.blobs.refreshed) == 2


async def test_pieces_are_written_four_at_a_time_and_count_with_their_document(
    batch: Batch,
) -> None:
    addition = an_addition(a_blob(bytes(9 * PIECE_BYTES)))

    await batch.additions().write_pieces(addition)

    assert [len(some) for some in batch.pieces.inserted] == [4, 4, 1]
    assert [piece for some in batch.pieces.inserted for piece in some] == [*addition.pieces]
    assert batch.stored.counted == []


async def test_after_its_time_a_batch_is_unavailable(batch: Batch) -> None:
    (found,) = await batch.additions(seconds=0.01).commit([an_addition()])

    assert isinstance(found, StoreUnavailable)
    assert found.reason == "deadline exceeded"
    assert batch.versions.inserted == []


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (_LOST, {"event": "outcome unknown", "reason": "AutoReconnect", "documents": 1}),
        (
            refused(durable=False),
            {"event": "not yet durable", "reason": "BulkWriteError 65", "codes": "64"},
        ),
        (
            refused(121),
            {"event": "not written", "reason": "BulkWriteError 65", "codes": "121"},
        ),
    ],
)
async def test_a_doubt_is_logged_without_values(
    batch: Batch, failure: Exception, expected: dict[str, object]
) -> None:
    batch.versions.failures = [failure]

    with capture_logs() as logs:
        await batch.commit(an_addition())

    assert logs == [{**expected, "log_level": "warning"}]


async def test_keys_that_are_taken_are_no_news(batch: Batch) -> None:
    ours = an_addition()
    batch.versions.failures, batch.versions.found = [refused(11_000)], [[ours]]

    with capture_logs() as logs:
        await batch.commit(ours)

    assert logs == []


async def test_what_was_refused_for_another_reason_is_not_taken_for_added(batch: Batch) -> None:
    wrong, right = an_addition(), an_addition()
    batch.versions.failures = [refused(121), refused(121)]

    assert await batch.commit(wrong, right) == ["outcome unknown", True]
    assert batch.versions.looked == [[{"id": wrong.key[0], "version": 1}]] * 2
    assert batch.stored.counted == [(LAB, right.stored)]


async def test_of_keys_in_doubt_those_that_are_known_are_not_sent_again(batch: Batch) -> None:
    taken, ours = an_addition(), an_addition()
    theirs = replace(an_addition(), key=taken.key)
    batch.versions.failures = [_LOST]
    batch.versions.found, batch.certain.found = [[theirs]], [[ours]]

    assert await batch.commit(taken, ours) == [False, True]
    assert len(batch.versions.inserted) == 1
    assert batch.certain.looked == [[{"id": ours.key[0], "version": 1}]]
