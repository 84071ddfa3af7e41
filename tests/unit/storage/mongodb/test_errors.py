"""What an error of the driver becomes."""

from __future__ import annotations

import asyncio

import pymongo
import pytest
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WaitQueueTimeoutError,
)
from pymongo.errors import ConfigurationError as DriverRefusal

from fhirpub.errors import ConfigurationError, SearchTooCostly, StoreUnavailable
from fhirpub.storage.mongodb import errors
from fhirpub.storage.mongodb.errors import (
    end_by_server,
    raise_configuration_errors,
    reason,
    was_not_executed,
    within,
)

NO_SERVER = "no server that could be written to was found in time"


def failure(code: int | None, *labels: str) -> OperationFailure:
    """Return an error of the server, whose text has a value in it."""
    return OperationFailure("key { value: 'secret' }", code, {"errorLabels": [*labels]})


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ServerSelectionTimeoutError("secret"), NO_SERVER),
        (failure(91), "OperationFailure 91"),
        (failure(None), "OperationFailure"),
        (failure(91, "RetryableWriteError", "NoWritesPerformed"), None),
        (AutoReconnect("secret"), "AutoReconnect"),
        (WaitQueueTimeoutError("secret"), "WaitQueueTimeoutError"),
        (PyMongoError("secret", ["B", "A"]), "PyMongoError A B"),
        (BulkWriteError({"writeErrors": [], "errmsg": "secret"}), "BulkWriteError 65"),
    ],
    ids=repr,
)
def test_a_reason_is_the_class_the_code_and_the_labels_and_no_text(
    error: PyMongoError, expected: str | None
) -> None:
    in_order = "OperationFailure 91 NoWritesPerformed RetryableWriteError"

    assert reason(error) == (expected or in_order)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ServerSelectionTimeoutError(), True),
        (failure(91, "NoWritesPerformed"), True),
        (PyMongoError("", ["NoWritesPerformed"]), True),
        (failure(91, "RetryableWriteError"), False),
        (failure(91), False),
        (WaitQueueTimeoutError(), False),
        (AutoReconnect(), False),
    ],
    ids=repr,
)
def test_an_operation_did_nothing_only_if_that_is_certain(
    error: PyMongoError, *, expected: bool
) -> None:
    assert was_not_executed(error) is expected


async def test_what_ends_within_its_time_is_left_alone() -> None:
    async with within(60):
        await asyncio.sleep(0)


async def test_the_driver_has_the_deadline_that_was_given() -> None:
    begun = asyncio.get_running_loop().time()

    async with within(60):
        until = pymongo._csot.get_deadline()

    assert begun + 59 < until < begun + 90


async def test_what_the_driver_itself_delays_ends_a_little_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(errors, "_SOONER_SECONDS", 0.01)

    with pytest.raises(StoreUnavailable) as refused:
        async with within(0):
            await asyncio.sleep(60)

    assert refused.value.reason == "deadline exceeded"
    assert refused.value.__suppress_context__


async def test_an_error_of_the_driver_is_a_matter_of_the_store() -> None:
    with pytest.raises(StoreUnavailable) as refused:
        async with within(60):
            raise failure(91)

    assert refused.value.reason == "OperationFailure 91"
    assert refused.value.__suppress_context__


async def test_another_error_is_not_a_matter_of_the_store() -> None:
    with pytest.raises(KeyError):
        async with within(60):
            raise KeyError


def test_a_search_that_the_server_has_ended_is_too_costly() -> None:
    with pytest.raises(SearchTooCostly) as refused, end_by_server():
        raise failure(50)

    assert refused.value.__suppress_context__


@pytest.mark.parametrize("error", [failure(49), failure(51), failure(None), AutoReconnect()])
def test_a_search_that_failed_otherwise_is_not_too_costly(error: PyMongoError) -> None:
    with pytest.raises(PyMongoError) as raised, end_by_server():
        raise error

    assert raised.value is error


def test_a_search_has_no_deadline_of_the_driver() -> None:
    with end_by_server():
        assert pymongo._csot.get_deadline() == float("inf")
        assert pymongo._csot.get_timeout() == 0  # so that none of the URL is taken


def test_a_search_has_none_of_the_deadline_around_it() -> None:
    with pymongo.timeout(1_000), end_by_server():
        assert pymongo._csot.remaining() is None


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (DriverRefusal("secret"), "[storage] url: the driver cannot work with this server"),
        (
            ServerSelectionTimeoutError("db: [SSL: CERTIFICATE_VERIFY_FAILED]"),
            (
                "[storage] url: no server could be spoken to over TLS; its certificate must name "
                "the host and be signed by an authority that the machine or tlsCAFile knows"
            ),
        ),
        (
            failure(13),
            (
                "[storage] url: the server refuses this user, or allows it too little "
                "(OperationFailure 13)"
            ),
        ),
        (
            failure(18),
            (
                "[storage] url: the server refuses this user, or allows it too little "
                "(OperationFailure 18)"
            ),
        ),
        (failure(2), "[storage] url: the server keeps no journal"),
    ],
    ids=repr,
)
def test_what_a_retry_cannot_fix_is_a_wrong_configuration(error: PyMongoError, text: str) -> None:
    with pytest.raises(ConfigurationError) as refused, raise_configuration_errors():
        raise error

    assert str(refused.value) == text
    assert refused.value.__suppress_context__


@pytest.mark.parametrize(
    "error",
    [
        ServerSelectionTimeoutError("SSL"),
        ServerSelectionTimeoutError("connection refused"),
        failure(11),
        failure(91),
        failure(None),
        AutoReconnect("[SSL: x]"),
    ],
    ids=repr,
)
def test_what_a_retry_may_fix_stays_an_error_of_the_driver(error: PyMongoError) -> None:
    with pytest.raises(PyMongoError) as raised, raise_configuration_errors():
        raise error

    assert raised.value is error
