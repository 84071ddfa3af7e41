"""A URL of a MongoDB is checked, and weakens no write or read."""

from __future__ import annotations

import asyncio
from typing import NoReturn

import pytest

from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage.mongodb import store as mongodb
from fhirpub.storage.mongodb.store import from_url
from fhirpub.testing.store_contract import (
    LAB,
    a_blob,
    a_key,
    a_version,
    query,
)
from tests.storage.mongodb.helpers import (
    COMMANDS,
    WEAK,
    store_of,
)


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://",
        "mongodb://host",
        "mongodb://host/",
        "mongodb://host/?replicaSet=rs0",
        "mongodb://host:port/x",
        "mongodb://host/a b",
        "mongodb://host/x?replicaSt=rs0",
        "mongodb://host/x?maxPoolSize=many",
        "mongodb+srv://host:27017/x",
        "mongodb://user:pass:word@host/x",
        "mongodb://user:pass@word@host/x",
    ],
)
def test_a_url_that_names_no_database_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^\[storage\] url: must be mongodb:") as refused:
        from_url(url, deadline_seconds=1, production=True)

    assert "word" not in str(refused.value)
    assert refused.value.__suppress_context__


@pytest.mark.parametrize(
    "option",
    ["tlsCAFile=/no/such/file", f"tlsCAFile={__file__}", "tlsCertificateKeyFile=/no/such/file"],
)
def test_a_file_of_a_url_that_cannot_be_used_is_said_to_be_the_fault(option: str) -> None:
    with pytest.raises(ConfigurationError, match=r"a file that tlsCAFile, .* cannot be read"):
        from_url(f"mongodb://host/x?tls=true&{option}", deadline_seconds=1, production=True)


async def test_no_url_weakens_what_is_sent(url: str) -> None:
    store, version, blob = store_of(f"{url}&{WEAK}"), a_version(), a_blob()
    await store.start()

    with COMMANDS.recorded() as sent:
        await store.add(LAB, version, [blob])
        await store.add(LAB, version)
        await store.latest(LAB, version.id)
        await store.search(LAB, query())
        await store.put_signing_key(a_key("a"))
        await store.check()

    await store.stop()

    writes = [document for document in sent if document["command"] in ("insert", "update")]
    reads = [document for document in sent if document["command"] in ("find", "aggregate")]
    assert len(writes) == 5
    # A search for all asks first whether some were registered again, a check for the schema.
    assert len(reads) == 7
    assert len(sent) == 12
    for write in writes:
        assert write["writeConcern"] == {"w": "majority", "j": True}
        assert "txnNumber" in write  # the driver's own retries count once
        assert "startTransaction" not in write  # its commit would have an outcome of its own
    levels = [read["readConcern"]["level"] for read in reads]
    assert levels == [*["majority"] * 3, "snapshot", *["majority"] * 3]
    for document in sent:
        assert document.get("$readPreference", {"mode": "primary"}) == {"mode": "primary"}
        assert document["maxTimeMS"] > 1_000


@pytest.mark.parametrize(
    ("options", "overruled"),
    [
        ("replicaSet=rs0&appName=w", []),
        ("W=Majority&journal=true&readpreference=PRIMARY", []),
        ("w=2", ["w"]),
        ("j=false", ["journal"]),
        ("serverMonitoringMode=poll", ["serverMonitoringMode"]),
        (
            WEAK,
            "w journal readConcernLevel readPreference retryWrites retryReads "
            "directConnection".split(),
        ),
    ],
)
def test_what_of_a_url_is_overruled_is_known(options: str, overruled: list[str]) -> None:
    assert mongodb._overruled_options(f"mongodb://host/x?{options}") == overruled


@pytest.mark.parametrize(("deadline", "milliseconds"), [(2.0, 1_000), (30.0, 15_000)])
async def test_the_driver_waits_for_an_answer_for_half_of_the_deadline(
    deadline: float, milliseconds: int
) -> None:
    store = from_url("mongodb://127.0.0.1:1/x", deadline_seconds=deadline, production=True)

    options = store._client.delegate.options.pool_options
    assert options.socket_timeout == milliseconds / 1000
    await store._close()


@pytest.mark.parametrize(
    ("deadline", "option", "seconds"),
    [
        (2.0, "", 10.0),
        (30.0, "", 30.0),
        (2.0, "?serverSelectionTimeoutMS=500", 2.0),
        (2.0, "?serverSelectionTimeoutMS=5000", 5.0),
        (0.1, "?serverSelectionTimeoutMS=500", 0.5),
        (2.0, "?serverSelectionTimeoutMS=60000", 10.0),
    ],
)
async def test_a_start_waits_ten_seconds_at_least_unless_the_url_asks_for_less(
    monkeypatch: pytest.MonkeyPatch, deadline: float, option: str, seconds: float
) -> None:
    given: list[float] = []

    def away(seconds: float) -> NoReturn:
        given.append(seconds)
        raise StoreUnavailable("away")

    monkeypatch.setattr(mongodb, "within", away)
    url = f"mongodb://127.0.0.1:1/x{option}"
    store = from_url(url, deadline_seconds=deadline, production=True)

    with pytest.raises(StoreUnavailable):
        await store.start()

    assert given == [seconds]


@pytest.mark.parametrize(
    "failure",
    [StoreUnavailable("away"), ConfigurationError("old"), asyncio.CancelledError()],
    ids=lambda it: type(it).__name__,
)
async def test_a_start_that_failed_leaves_no_client_behind(
    monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    store = from_url("mongodb://127.0.0.1:1/x", deadline_seconds=2, production=True)
    closed: list[str] = []
    close = store._close

    async def fail(*_arguments: object, **_named: object) -> None:
        raise failure

    async def closing() -> None:
        closed.append("closed")
        await close()

    monkeypatch.setattr(mongodb, "examine", fail)
    monkeypatch.setattr(store, "_close", closing)

    with pytest.raises(type(failure)):
        await store.start()

    assert closed == ["closed"]
