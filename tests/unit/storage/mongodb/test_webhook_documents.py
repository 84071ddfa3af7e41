"""Endpoints and deliveries as documents, and what is asked for of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from bson.objectid import ObjectId
from pymongo import UpdateOne

from fhirpub.storage.mongodb import webhook_documents as documents
from fhirpub.storage.webhook_contract import (
    Attempt,
    AttemptResult,
    Delivery,
    DeliveryQuery,
    DeliveryState,
    Endpoint,
    EndpointSecret,
    QueuedDelivery,
)

ENDPOINT = Endpoint(
    id="e1",
    tenant="t1",
    url="https://receiver.example/hook",
    created=1,
    events=("a.*", "b.c"),
    payload="id-only",
    ordering="strict",
    description="a receiver",
    state="disabled",
    why="exhausted",
    secrets=(EndpointSecret(b"new"), EndpointSecret(b"old", 9)),
    token=b"token",
    revision=4,
    condition=b'{"streak":1}',
    reopened=2,
)
ENDPOINT_DOCUMENT = {
    "_id": "e1",
    "tenant": "t1",
    "url": "https://receiver.example/hook",
    "created": 1,
    "events": ["a.*", "b.c"],
    "payload": "id-only",
    "ordering": "strict",
    "description": "a receiver",
    "state": "disabled",
    "why": "exhausted",
    "secrets": [{"sealed": b"new", "expires": None}, {"sealed": b"old", "expires": 9}],
    "token": b"token",
    "revision": 4,
    "condition": b'{"streak":1}',
    "reopened": 2,
}
FIRST = Attempt(number=1, begun=20, reason="timeout")
SECOND = Attempt(
    number=2,
    begun=30,
    ended=35,
    status=503,
    reason="",
    duration=5,
    dialled=("192.0.2.1", "192.0.2.2"),
    answer=b"busy",
)
SECOND_DOCUMENT = {
    "number": 2,
    "begun": 30,
    "ended": 35,
    "status": 503,
    "reason": "",
    "duration": 5,
    "dialled": ["192.0.2.1", "192.0.2.2"],
    "answer": b"busy",
}
DELIVERY = Delivery(
    endpoint="e1",
    tenant="t1",
    sequence=7,
    event_id="v1",
    event_type="report.created",
    resource="DiagnosticReport/1",
    created=10,
    body=b"body",
    state="retrying",
    due=40,
    number=2,
    leased=50,
    attempts=(FIRST, SECOND),
)


def test_an_endpoint_is_stored_under_its_id_with_all_that_is_known() -> None:
    assert documents.endpoint_document(ENDPOINT) == ENDPOINT_DOCUMENT
    assert documents.endpoint_of(ENDPOINT_DOCUMENT) == ENDPOINT


def test_a_change_replaces_the_revision_before_of_the_same_tenant() -> None:
    over, _change = documents.endpoint_change(ENDPOINT)

    assert over == {"_id": "e1", "tenant": "t1", "revision": 3}


def test_a_change_leaves_the_health_and_the_reopened_deliveries_as_they_are() -> None:
    _over, change = documents.endpoint_change(ENDPOINT)

    health = ("condition", "reopened")
    others = {name: item for name, item in ENDPOINT_DOCUMENT.items() if name not in health}
    assert change == {"$set": others}


def test_a_delivery_is_stored_under_its_key_with_all_that_is_known() -> None:
    assert documents.delivery_document(DELIVERY) == {
        "_id": "e1/v1",
        "endpoint": "e1",
        "sequence": 7,
        "event_id": "v1",
        "tenant": "t1",
        "event_type": "report.created",
        "resource": "DiagnosticReport/1",
        "created": 10,
        "state": "retrying",
        "due": 40,
        "number": 2,
        "begun": 30,
        "leased": 50,
        "attempts": [
            {
                "number": 1,
                "begun": 20,
                "ended": None,
                "status": 0,
                "reason": "timeout",
                "duration": 0,
                "dialled": [],
                "answer": b"",
            },
            SECOND_DOCUMENT,
        ],
        "body": b"body",
    }


@pytest.mark.parametrize(
    "delivery",
    [
        DELIVERY,
        replace(DELIVERY, attempts=()),
        replace(DELIVERY, state="delivered", ended=0),
        replace(DELIVERY, state="dead", ended=99),
    ],
    ids=["open", "not tried", "ended at once", "dead"],
)
def test_a_delivery_is_read_as_it_was_stored(delivery: Delivery) -> None:
    assert documents.delivery_of(documents.delivery_document(delivery)) == delivery


def test_a_delivery_that_was_never_tried_has_not_begun() -> None:
    assert documents.delivery_document(replace(DELIVERY, attempts=()))["begun"] == 0


def test_a_delivery_has_begun_with_its_latest_attempt() -> None:
    third = Attempt(number=3, begun=44)
    tried = replace(DELIVERY, attempts=(FIRST, SECOND, third))

    assert documents.delivery_document(tried)["begun"] == 44


def test_only_an_ended_delivery_has_an_end() -> None:
    assert "ended" not in documents.delivery_document(DELIVERY)
    assert documents.delivery_document(replace(DELIVERY, ended=0))["ended"] == 0


def test_the_log_of_a_delivery_is_read_with_its_key() -> None:
    stored = documents.delivery_document(DELIVERY)
    shown = {name: stored[name] for name, seen in documents.LOG_FIELDS.items() if seen}

    assert documents.log_of(shown) == (("e1", "v1"), (FIRST, SECOND))


def test_what_scheduling_needs_of_a_delivery_is_shown() -> None:
    stored = documents.delivery_document(DELIVERY)
    shown = {name: stored[name] for name, seen in documents.WAITING_FIELDS.items() if seen}

    assert documents.waiting_of(shown) == QueuedDelivery(
        endpoint="e1",
        sequence=7,
        event_id="v1",
        resource="DiagnosticReport/1",
        created=10,
        due=40,
        number=2,
        leased=50,
    )


def test_keys_are_looked_up_with_the_shards_of_their_endpoints() -> None:
    keys = [("e1", "v1"), ("e1", "v2"), ("e2", "v1")]

    found = documents.filter_by_keys(iter(keys))

    assert found["_id"] == {"$in": ["e1/v1", "e1/v2", "e2/v1"]}
    assert sorted(found["endpoint"]["$in"]) == ["e1", "e2"]
    assert [*found] == ["_id", "endpoint"]


def test_events_of_one_endpoint_are_looked_up_on_its_shard() -> None:
    assert documents.filter_by_endpoint("e1", ["v1", "v2"]) == {
        "_id": {"$in": ["e1/v1", "e1/v2"]},
        "endpoint": "e1",
    }


def test_an_attempt_begins_with_the_next_number_at_the_end_of_the_log() -> None:
    token = ObjectId()

    (stage,) = documents.beginning(token, now=60, until=90)

    number = {"$add": ["$number", 1]}
    attempt = {
        "number": number,
        "begun": 60,
        "ended": None,
        "status": 0,
        "reason": "",
        "duration": 0,
        "dialled": [],
        "answer": b"",
    }
    assert stage == {
        "$set": {
            "number": number,
            "begun": 60,
            "leased": 90,
            "taken": token,
            "attempts": {"$slice": [{"$concatArrays": ["$attempts", [attempt]]}, -30]},
        }
    }


def outcome(state: DeliveryState, due: int = 0) -> UpdateOne:
    """Return the update that notes the second attempt."""
    result = AttemptResult(key=("e1", "v1"), attempt=SECOND, state=state, due=due)
    return documents.ending(result)


def noted(**changed: Any) -> UpdateOne:
    """Return the update of the delivery, if its second attempt is the latest and it is open."""
    which = {"number": 2, "begun": 30}
    common = {"leased": 0, "attempts.$[latest]": SECOND_DOCUMENT}
    return UpdateOne(
        {
            "_id": {"$in": ["e1/v1"]},
            "endpoint": "e1",
            **which,
            "state": {"$in": ["pending", "retrying"]},
        },
        {"$set": {**common, **changed}},
        array_filters=[{"latest.number": 2, "latest.begun": 30}],
    )


@pytest.mark.parametrize("state", ["pending", "retrying"])
def test_an_attempt_that_leaves_its_delivery_open_has_no_end(state: DeliveryState) -> None:
    assert outcome(state, due=77) == noted(state=state, due=77)


@pytest.mark.parametrize("state", ["delivered", "dead"])
def test_a_delivery_ends_with_its_last_attempt(state: DeliveryState) -> None:
    assert outcome(state) == noted(state=state, due=0, ended=35)


EVERYTHING: dict[str, Any] = {"endpoint": "e1", "tenant": "t1", "sequence": {"$gt": 0}}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, {}),
        ({"after": 3}, {"sequence": {"$gt": 3}}),
        ({"after": 3, "before": 9}, {"sequence": {"$gt": 3, "$lt": 9}}),
        ({"before": 0}, {"sequence": {"$gt": 0, "$lt": 0}}),
        ({"event_type": "a"}, {"event_type": {"$eq": "a"}}),
        ({"event_type": ""}, {"event_type": {"$eq": ""}}),
        ({"since": 0}, {"created": {"$gte": 0}}),
        ({"until": 0}, {"created": {"$lt": 0}}),
        ({"since": 1, "until": 5}, {"created": {"$gte": 1, "$lt": 5}}),
        ({"states": frozenset({"dead"})}, {"state": {"$in": ["dead"]}}),
        ({"states": frozenset()}, {}),
        ({"event_ids": frozenset({"v1"})}, {"_id": {"$in": ["e1/v1"]}}),
        ({"event_ids": frozenset()}, {"_id": {"$in": []}}),
    ],
    ids=str,
)
def test_a_query_restricts_only_what_it_asks_for(
    query: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = documents.filter_by_query("t1", DeliveryQuery(endpoint="e1", **query))

    assert found == {**EVERYTHING, **expected}
