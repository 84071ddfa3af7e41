"""The speed of webhooks: ``python -m bench.webhooks [URL with {name}] [parts]``.

Commits are inserts into the store, in the process that relays and sends; the receiver is a
separate process. It measures the time from a commit to the receiver's 204, the maximum number of
deliveries per second, and the effect of a dead and a dripping endpoint on a hundred others.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from fhirpub.app.stores import open_store
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.fhir.strict_json import dumps
from fhirpub.runtime.clock import now_ms
from fhirpub.runtime.logging import configure
from fhirpub.runtime.metrics import Metrics
from fhirpub.storage.contract import Version
from fhirpub.storage.store import Store
from fhirpub.storage.webhook_contract import Endpoint, EndpointSecret
from fhirpub.webhooks.dispatch.worker import WebhookWorker
from fhirpub.webhooks.transport.envelope import event_id
from fhirpub.webhooks.transport.sender import Sender
from fhirpub.webhooks.transport.signing import new_secret

TENANT = str(uuid.uuid4())
SEAL = SecretCipher([b"k" * 32])
SETTINGS = WebhooksConfig(allow_networks=["127.0.0.1/32"], rate_per_endpoint=100_000.0)
DATA = {
    "identifier": {"system": "https://lab.example/reports", "value": "2026-0001"},
    "status": "final",
}


@dataclass
class Bench:
    """A store, its webhook worker, and the times of the commits."""

    store: Store
    sending: WebhookWorker
    port: int
    committed: dict[str, int]

    async def endpoint(self, path: str, *, tenant: str = TENANT) -> None:
        name = str(uuid.uuid4())
        endpoint = Endpoint(
            id=name,
            tenant=tenant,
            url=f"http://127.0.0.1:{self.port}{path}",
            created=now_ms(),
            secrets=(EndpointSecret(SEAL.encrypt(new_secret(), endpoint=name, purpose="secret")),),
            token=SEAL.encrypt("t" * 40, endpoint=name, purpose="token"),
        )
        await self.store.put_endpoint(tenant, endpoint)

    async def commit(self, *, tenant: str = TENANT) -> None:
        resource = str(uuid.uuid4())
        stored = f"{resource}.1.1"
        events = [{"id": stored, "type": "diagnostic_report.created", "data": DATA}]
        version = Version(
            id=resource,
            version=1,
            type="DiagnosticReport",
            system="urn:s",
            value=resource,
            status="final",
            created=now_ms(),
            updated=now_ms(),
            body=b"{}",
            events=dumps(events),
        )
        await self.store.add(tenant, version)
        self.committed[event_id(stored)] = time.monotonic_ns()
        self.sending.ring()

    async def commits(self, rate: float, seconds: float, tenants: Sequence[str]) -> None:
        """Commit at a steady rate."""
        begun, tasks = time.monotonic(), []
        for number in range(round(rate * seconds)):
            await asyncio.sleep(max(0.0, begun + number / rate - time.monotonic()))
            tasks.append(asyncio.create_task(self.commit(tenant=tenants[number % len(tenants)])))
        await asyncio.gather(*tasks)


@contextmanager
def receiving(file: Path) -> Generator[int, None, None]:
    """Start a receiver and yield its port; at the end it writes to the file."""
    command = [sys.executable, "-m", "bench.webhook_receiver", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        try:
            yield int(receiver.stdout.readline())
        finally:
            receiver.terminate()
            receiver.wait()


@asynccontextmanager
async def bench(url: str, file: Path) -> AsyncGenerator[Bench, None]:
    config = Config(webhooks=SETTINGS, storage=StorageConfig(url=url))
    with receiving(file) as port:
        async with (
            open_store(config) as store,
            Sender(config.webhooks, clock=now_ms) as sender,
        ):
            sending = WebhookWorker(
                store,
                config=config,
                seal=SEAL,
                metrics=Metrics(serves=False, sends=True),
                clock=now_ms,
                sender=sender,
            )
            yield Bench(store, sending, port, {})


def received(file: Path, *, path: str = "/") -> dict[str, int]:
    """Return the time of the first response to each event."""
    found: dict[str, int] = {}
    for line in file.read_text().splitlines():
        name, where, at = line.split()
        if where.startswith(path):
            found.setdefault(name, int(at))
    return found


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else -1.0


def print_latency(name: str, one: Bench, answered: dict[str, int]) -> None:
    waits = [
        (answered[event] - at) / 1e6 for event, at in one.committed.items() if event in answered
    ]
    missing = len(one.committed) - len(waits)
    percentiles = " ".join(
        f"p{round(100 * p)} {percentile(waits, p):.1f} ms" for p in (0.5, 0.95, 0.99)
    )
    print(f"{name}: {len(waits)} answered, {missing} missing, {percentiles}")


async def latency(url: str, folder: Path, rate: float) -> None:
    file = folder / f"latency-{rate}"
    tenants = [str(uuid.uuid4()) for _ in range(round(rate / 25))]
    async with bench(url, file) as one:
        for tenant in tenants:
            await one.endpoint("/", tenant=tenant)
        async with one.sending.running():
            await asyncio.sleep(1.0)
            one.committed.clear()
            await one.commits(rate, 10.0, tenants)
            await asyncio.sleep(1.0)
    print_latency(f"commit to 204 at {rate:.0f}/s, {len(tenants)} tenants", one, received(file))


async def sustained(url: str, folder: Path, endpoints: int, events: int) -> None:
    file = folder / "sustained"
    async with bench(url, file) as one:
        for number in range(endpoints):
            await one.endpoint(f"/{number}")
        for _ in range(events // 100):
            await asyncio.gather(*(one.commit() for _ in range(100)))
        begun, cpu = time.monotonic(), time.process_time()
        async with one.sending.running():
            names = [endpoint.id for endpoint in await one.store.all_endpoints()]
            while True:
                counts = [await one.store.count_deliveries(TENANT, name) for name in names]
                if sum(count.get("delivered", 0) for count in counts) >= events * endpoints:
                    break
                await asyncio.sleep(0.5)
        seconds, cpu = time.monotonic() - begun, time.process_time() - cpu
    number = events * endpoints
    print(f"sustained: {number} deliveries to {endpoints} endpoints in {seconds:.1f} s, "
          f"{number / seconds:.0f}/s, {1000 * cpu / number:.2f} ms of CPU each")  # fmt: skip


async def neighbours(url: str, folder: Path, *, bad: Sequence[str]) -> None:
    file = folder / f"neighbours-{len(bad)}"
    async with bench(url, file) as one:
        tenants = [str(uuid.uuid4()) for _ in range(100)]
        for number, tenant in enumerate(tenants):
            await one.endpoint(f"/{number}", tenant=tenant)
        for number, path in enumerate(bad):
            await one.endpoint(path, tenant=tenants[number])
        async with one.sending.running():
            await asyncio.sleep(1.5)
            one.committed.clear()
            await one.commits(100.0, 20.0, tenants)
            await asyncio.sleep(1.0)
    good = {event: at for event, at in received(file).items() if event in one.committed}
    print_latency(f"100 endpoints and {len(bad)} bad ones", one, good)


async def run(url: str, folder: Path, wanted: Sequence[str]) -> None:
    made = (url or "sqlite:///{folder}/{name}.db").format

    def store(name: str) -> str:
        return made(folder=folder, name=f"{name}{os.getpid()}")

    if "latency" in wanted:
        await latency(store("latency50"), folder, 50.0)
        await latency(store("latency200"), folder, 200.0)
    if "sustained" in wanted:
        await sustained(store("sustained"), folder, 20, 1000)
    if "neighbours" in wanted:
        await neighbours(store("alone"), folder, bad=())
        await neighbours(store("bad"), folder, bad=("/dead", "/drip"))


if __name__ == "__main__":
    configure(level="error", form="text")
    with tempfile.TemporaryDirectory() as name:
        arguments = sys.argv[1:]
        urls = [argument for argument in arguments if ":" in argument]
        words = [argument for argument in arguments if ":" not in argument]
        asyncio.run(
            run("".join(urls), Path(name), words or ("latency", "sustained", "neighbours"))
        )
