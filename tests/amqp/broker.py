"""A RabbitMQ of our own: on free ports, with its files in a folder, stopped in the end."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import aio_pika

from tests.ports import free_port

_PROGRAM = "/usr/lib/rabbitmq/bin/rabbitmq-server"
_READY_SECONDS = 120.0
IS_INSTALLED = Path(_PROGRAM).exists() and shutil.which("epmd") is not None


class Broker:
    """RabbitMQ in the foreground, with its own port mapper; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port, self._names, self._nodes = free_port(), free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        mapper = shutil.which("epmd") or ""
        words = [mapper, "-port", str(self._names), "-address", "127.0.0.1"]
        self._processes.append(subprocess.Popen(words, env=self._environment))
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.kill()
        for process in self._processes:
            process.terminate()
            process.wait()

    def start(self) -> None:
        """Start it if it is not running, and wait until it takes connections."""
        if self._server is not None and self._server.poll() is None:
            return
        with (self._folder / "broker.txt").open("ab") as output:
            self._server = server = subprocess.Popen(
                [_PROGRAM],
                env=self._environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        until = time.monotonic() + _READY_SECONDS
        while not self._answers():
            if time.monotonic() > until or server.poll() is not None:
                raise RuntimeError((self._folder / "broker.txt").read_text())
            time.sleep(0.2)

    def kill(self) -> None:
        """Kill it with SIGKILL, in the middle of any work."""
        if self._server is not None and self._server.poll() is None:
            os.killpg(self._server.pid, signal.SIGKILL)
            self._server.wait()

    def _answers(self) -> bool:
        """Return whether it speaks AMQP: it answers a wrong protocol header with its own."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.sendall(b"AMQP\x00\x00\x00\x00")
                return connection.recv(8).startswith(b"AMQP")
        except OSError:
            return False

    @property
    def _environment(self) -> dict[str, str]:
        folder = str(self._folder)
        return {
            "PATH": os.defpath + ":/usr/sbin",
            "HOME": folder,
            "ERL_EPMD_PORT": str(self._names),
            "RABBITMQ_NODENAME": "fhirpub@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._nodes),
            "RABBITMQ_MNESIA_BASE": folder,
            "RABBITMQ_LOG_BASE": folder,
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
            "RABBITMQ_CONF_ENV_FILE": f"{folder}/none",
        }


class Queue:
    """A durable queue that takes all events of an exchange: the receiver of a sink."""

    def __init__(self, broker: Broker, exchange: str) -> None:
        self._broker = broker
        self._exchange = exchange
        self.messages: list[aio_pika.abc.AbstractIncomingMessage] = []

    async def bind(self) -> None:
        """Create the queue and the exchange."""
        connection = await aio_pika.connect(self._broker.url)
        async with connection:
            channel = await connection.channel()
            exchange = await channel.declare_exchange(
                self._exchange, aio_pika.ExchangeType.TOPIC, durable=True
            )
            queue = await channel.declare_queue(self._exchange, durable=True)
            await queue.bind(exchange, "#")

    async def arrived(self) -> Sequence[bytes]:
        """Take all messages out of the queue; return the bodies of all that were taken."""
        connection = await aio_pika.connect(self._broker.url)
        async with connection:
            channel = await connection.channel()
            queue = await channel.get_queue(self._exchange)
            while message := await queue.get(no_ack=True, fail=False):
                self.messages.append(message)
        return [message.body for message in self.messages]

    async def break_down(self) -> None:
        """Kill the broker."""
        self._broker.kill()

    async def recover(self) -> None:
        """Start it again, with its files."""
        self._broker.start()
