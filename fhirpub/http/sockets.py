"""The address that a service listens on, for one process or for several that share it."""

from __future__ import annotations

import errno
import socket
from dataclasses import replace

from tornado.netutil import bind_sockets

from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError

_BACKLOG = 4_096
"""The backlog of connections while the loop is busy; further clients retry a second later."""
REFUSALS = (OSError, UnicodeError)
"""Errors of an address that cannot be listened on, or of a name that cannot be resolved."""


def bind(config: Config, *, reuse_port: bool = False) -> tuple[Config, list[socket.socket]]:
    """Listen on the address of the configuration; return it with the port that it became."""
    host, port = config.server.host, config.server.port
    try:
        sockets = bind_sockets(port, address=host, reuse_port=reuse_port, backlog=_BACKLOG)
    except REFUSALS as problem:
        raise _cannot_listen(config, problem) from None
    port = sockets[0].getsockname()[1]
    return replace(config, server=replace(config.server, port=port)), sockets


def reserve(config: Config) -> socket.socket:
    """Bind the port for the workers to share; this socket never listens."""
    try:
        return reserve_address(config.server.host, config.server.port)
    except REFUSALS as problem:
        raise _cannot_listen(config, problem) from None


def reserve_address(host: str, port: int) -> socket.socket:
    """Bind an address for processes to share, unless another service has it.

    Raises one of :data:`REFUSALS`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as alone:
        # Without SO_REUSEPORT, with which another service's workers would share theirs.
        alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        alone.bind((host, port))
    reserved = socket.socket(family, socket.SOCK_STREAM)
    try:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind((host, port))
    except REFUSALS:
        reserved.close()
        raise
    return reserved


def why_not(problem: Exception) -> str:
    """Return in words why an address cannot be listened on."""
    return str(problem.strerror) if isinstance(problem, OSError) else "the host has no valid name"


def _cannot_listen(config: Config, problem: Exception) -> ConfigurationError:
    address = f"{config.server.host} port {config.server.port}"
    of_port = getattr(problem, "errno", 0) in (errno.EADDRINUSE, errno.EACCES)
    option = "--port" if of_port else "--host"
    return ConfigurationError(
        f"cannot listen on {address}: {why_not(problem)}; choose another with {option}"
    )
