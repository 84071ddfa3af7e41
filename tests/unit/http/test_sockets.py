"""Listening sockets that clients can reach."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from fhirpub.config.settings import Config
from fhirpub.http.sockets import bind

_MOST = int(Path("/proc/sys/net/core/somaxconn").read_text())
_SOONER_THAN_A_SECOND_TRY = 0.5


def test_a_host_that_is_no_valid_name_is_reported(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fhirpub", "serve", "--host", "a..b"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    message = "Error: cannot listen on a..b port 8080: the host has no valid name; "
    assert (done.returncode, done.stderr) == (1, f"{message}choose another with --host\n")


def test_hundreds_of_clients_may_connect_while_none_is_served() -> None:
    config = Config()
    config, sockets = bind(replace(config, server=replace(config.server, port=0)))
    address = (config.server.host, config.server.port)

    with ExitStack() as stack:
        for item in sockets:
            stack.enter_context(item)
        for _ in range(min(500, _MOST)):
            client = socket.create_connection(address, timeout=_SOONER_THAN_A_SECOND_TRY)
            stack.enter_context(client)
