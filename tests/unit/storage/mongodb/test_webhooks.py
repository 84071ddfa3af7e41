"""What refused writes mean, and the order of endpoints."""

from __future__ import annotations

import pytest
from pymongo.errors import BulkWriteError

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.mongodb.webhook_documents import endpoint_document
from fhirpub.storage.mongodb.webhooks import _OF_UNTOLD, _conflicting_writes, _oldest_first
from fhirpub.testing.contracts.webhooks.records import an_endpoint
from tests.unit.storage.mongodb.answers import refused


def test_writes_that_meet_at_a_key_are_returned_by_their_places() -> None:
    assert _conflicting_writes(refused(11_000, 11_000, first=1)) == {1, 2}


@pytest.mark.parametrize(
    "error",
    [
        refused(11_000, 121, first=1),
        refused(121, first=1),
        refused(11_000, durable=False, first=1),
        refused(durable=False),
    ],
)
def test_writes_that_were_refused_otherwise_or_may_be_undone_are_unavailable(
    error: BulkWriteError,
) -> None:
    with pytest.raises(StoreUnavailable) as failed:
        _conflicting_writes(error)

    assert failed.value.reason == "BulkWriteError 65"
    assert failed.value.__cause__ is None


def test_endpoints_come_in_the_order_of_their_creation_and_their_ids() -> None:
    first, second, third = (
        an_endpoint(created=created, id=id_) for created, id_ in ((1, "c"), (2, "a"), (2, "b"))
    )

    found = [endpoint_document(endpoint) for endpoint in (third, first, second)]

    assert _oldest_first(found) == [first, second, third]


def test_an_entry_of_the_outbox_is_read_with_all_of_its_fields() -> None:
    assert {*_OF_UNTOLD} == {"id", "version", "type", "updated", "events"}
