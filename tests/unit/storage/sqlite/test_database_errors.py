"""What of SQLite's errors is unavailable, repeated or undone."""

from __future__ import annotations

import sqlite3
import time

import pytest

from fhirpub.errors import StoreUnavailable
from fhirpub.storage.sqlite.database import _retry, as_unavailable, transaction


@pytest.fixture
def memory() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t (x)")
    return connection


def an_error(code: int | None = None, name: str = "SQLITE_SOMETHING") -> sqlite3.Error:
    """Return an error with a value of a row in its words."""
    error = sqlite3.OperationalError("patient Ana")
    if code is not None:
        error.sqlite_errorcode, error.sqlite_errorname = code, name
    return error


def test_a_deadline_is_unavailable_by_its_name() -> None:
    with pytest.raises(StoreUnavailable) as failed, as_unavailable():
        raise TimeoutError

    assert failed.value.reason == "deadline exceeded"
    assert failed.value.__cause__ is None


def test_an_error_of_sqlite_is_unavailable_by_its_name_alone() -> None:
    with pytest.raises(StoreUnavailable) as failed, as_unavailable():
        raise an_error(sqlite3.SQLITE_FULL, "SQLITE_FULL")

    assert failed.value.reason == "SQLITE_FULL"
    assert failed.value.__suppress_context__


def test_an_error_without_a_name_is_that_of_its_class() -> None:
    with pytest.raises(StoreUnavailable) as failed, as_unavailable():
        raise an_error()

    assert failed.value.reason == "OperationalError"


def test_other_errors_are_what_they_are() -> None:
    with pytest.raises(ValueError, match="ours"), as_unavailable():
        raise ValueError("ours")


def test_what_is_done_in_a_transaction_is_committed(memory: sqlite3.Connection) -> None:
    with transaction(memory, "BEGIN"):
        memory.execute("INSERT INTO t VALUES (1)")

    assert not memory.in_transaction
    assert memory.execute("SELECT x FROM t").fetchall() == [(1,)]


def test_what_fails_in_a_transaction_is_undone(memory: sqlite3.Connection) -> None:
    def fail() -> None:
        with transaction(memory, "BEGIN IMMEDIATE"):
            memory.execute("INSERT INTO t VALUES (1)")
            memory.execute("SELECT nothing")

    with pytest.raises(sqlite3.OperationalError):
        fail()

    assert not memory.in_transaction
    assert memory.execute("SELECT x FROM t").fetchall() == []


def test_a_transaction_begins_as_it_is_asked_to(memory: sqlite3.Connection) -> None:
    statements: list[str] = []
    memory.set_trace_callback(statements.append)

    with transaction(memory, "BEGIN IMMEDIATE"):
        pass

    assert statements == ["BEGIN IMMEDIATE", "COMMIT"]


class _Work:
    """Work that fails with each of some errors before it succeeds."""

    def __init__(self, *errors: sqlite3.Error) -> None:
        self._errors = [*errors]
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1
        if self._errors:
            raise self._errors.pop(0)


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_SNAPSHOT])
def test_work_is_repeated_while_the_file_is_busy(code: int) -> None:
    work = _Work(an_error(code), an_error(code))

    _retry(time.monotonic() + 60, work)

    assert work.calls == 3


def test_work_on_a_busy_file_is_given_up_after_its_moment() -> None:
    work = _Work(an_error(sqlite3.SQLITE_BUSY))

    with pytest.raises(sqlite3.OperationalError):
        _retry(time.monotonic() - 1, work)

    assert work.calls == 1


def test_work_that_fails_otherwise_is_not_repeated() -> None:
    work = _Work(an_error(sqlite3.SQLITE_READONLY))

    with pytest.raises(sqlite3.OperationalError):
        _retry(time.monotonic() + 60, work)

    assert work.calls == 1
