"""A connection of one entry's request."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from tornado.iostream import IOStream


@pytest.fixture
def stream() -> Iterator[IOStream]:
    ours, theirs = socket.socketpair()
    made = IOStream(ours)
    yield made
    made.close()
    theirs.close()
