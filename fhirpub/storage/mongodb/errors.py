"""What a driver's error says of the operation, in words that hold no value out of it.

The driver's own texts are never passed on: that of a duplicate key shows the key.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import pymongo
from pymongo.errors import ConfigurationError as DriverRefusal
from pymongo.errors import OperationFailure, PyMongoError, ServerSelectionTimeoutError

from fhirpub.errors import ConfigurationError, SearchTooCostly, StoreUnavailable

DUPLICATE_KEY = 11_000
_MAX_TIME_EXPIRED = 50
"""MaxTimeMSExpired: the server has ended an operation after the time that it was given."""
_SOONER_SECONDS = 1.0
"""The driver should be the one to say what it waited for, on a busy machine too."""
_ACCESS_REFUSED = (13, 18)
"""Unauthorized, AuthenticationFailed."""
_NO_JOURNAL = 2
"""BadValue: what a server without a journal says to ``j: true``."""
_NO_TLS = "[SSL: "
"""In the driver's text; there is no code for it."""


def reason(error: PyMongoError) -> str:
    """Return an error's class, code and labels."""
    if isinstance(error, ServerSelectionTimeoutError):
        return "no server that could be written to was found in time"
    code = error.code if isinstance(error, OperationFailure) else None
    labels = sorted(getattr(error, "_error_labels", ()))
    return " ".join(str(item) for item in (type(error).__name__, code, *labels) if item)


def was_not_executed(error: PyMongoError) -> bool:
    """Return whether it is certain that an operation did nothing.

    After a retry the driver raises these only if the first try did nothing either. That a
    connection was not to be had in time says nothing of the first try.
    """
    never_sent = isinstance(error, ServerSelectionTimeoutError)
    return never_sent or error.has_error_label("NoWritesPerformed")


@asynccontextmanager
async def within(seconds: float) -> AsyncGenerator[None, None]:
    """Give what is asked of the server so long, and raise StoreUnavailable for what goes wrong.

    Twice: the driver passes the deadline to the server; what delays the driver itself
    (looking up a name, its threads) is seen by the loop alone.
    """
    try:
        async with asyncio.timeout(seconds + _SOONER_SECONDS):
            with pymongo.timeout(seconds):
                yield
    except TimeoutError:
        raise StoreUnavailable("deadline exceeded") from None
    except PyMongoError as error:
        raise StoreUnavailable(reason(error)) from None


@contextmanager
def end_by_server() -> Generator[None]:
    """Leave it to the server to end a search (``maxTimeMS``), and raise SearchTooCostly if it did.

    The driver's own timeout would end at the same moment as the server's. It would then not be
    known whether the search took too long or the server has gone away. What the driver waits for
    the server is limited by ``socketTimeoutMS``.
    """
    try:
        with pymongo.timeout(0):  # none, whatever the URL says
            yield
    except OperationFailure as error:
        if error.code == _MAX_TIME_EXPIRED:
            raise SearchTooCostly.beyond_budget() from None
        raise


@contextmanager
def raise_configuration_errors() -> Generator[None]:
    """Raise ConfigurationError for errors at the start that a retry cannot fix."""
    try:
        yield
    except DriverRefusal:
        raise ConfigurationError(
            "[storage] url: the driver cannot work with this server"
        ) from None
    except ServerSelectionTimeoutError as error:
        if _NO_TLS not in str(error):
            raise
        raise ConfigurationError(
            "[storage] url: no server could be spoken to over TLS; its certificate must name the "
            "host and be signed by an authority that the machine or tlsCAFile knows"
        ) from None
    except OperationFailure as error:
        if error.code in _ACCESS_REFUSED:
            raise ConfigurationError(
                "[storage] url: the server refuses this user, or allows it too little "
                f"({reason(error)})"
            ) from None
        if error.code == _NO_JOURNAL:
            raise ConfigurationError("[storage] url: the server keeps no journal") from None
        raise
