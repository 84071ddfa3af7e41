"""Ports beside that of the service: of metrics, administration and the console."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from tornado.netutil import bind_sockets

from fhirpub.errors import ConfigurationError
from fhirpub.http.sockets import REFUSALS, reserve_address, why_not


class OwnPort(Protocol):
    """The settings of what may have a port of its own; 0: it has none."""

    @property
    def host(self) -> str:
        """The address to listen on."""

    @property
    def port(self) -> int:
        """The port to listen on."""


def bind_own_port(group: str, config: OwnPort, *, reuse_port: bool = False) -> list[socket.socket]:
    """Listen on the port that a group of settings names. Raises ConfigurationError.

    ``reuse_port`` lets several workers share it.
    """
    try:
        return bind_sockets(config.port, address=config.host, reuse_port=reuse_port)
    except REFUSALS as problem:
        raise _cannot_listen(group, config, problem) from None


@contextmanager
def reserve_own_port(group: str, config: OwnPort) -> Iterator[None]:
    """Reserve a port for workers to share, until the block ends. Raises ConfigurationError."""
    if not config.port:
        yield
        return
    try:
        reserved = reserve_address(config.host, config.port)
    except REFUSALS as problem:
        raise _cannot_listen(group, config, problem) from None
    with reserved:
        yield


def _cannot_listen(group: str, config: OwnPort, problem: Exception) -> ConfigurationError:
    address = f"{config.host} port {config.port}"
    return ConfigurationError(f"[{group}] port: cannot listen on {address}: {why_not(problem)}")
