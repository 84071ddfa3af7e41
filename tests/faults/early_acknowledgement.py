"""``fhirpub serve`` over a store that acknowledges too early; ServiceProcess runs it."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from fhirpub.app.server import run_server
from fhirpub.app.services import build_services
from fhirpub.config.loader import load
from fhirpub.http.sockets import bind
from fhirpub.runtime.logging import configure
from tests.faults.broken_stores import AcknowledgesTooEarly, opening


async def serve(file: Path, port: int) -> None:
    """Serve until the process is killed."""
    config = load(file, environment={})
    config = replace(config, server=replace(config.server, port=port))
    configure(level="error", form="text")
    config, sockets = bind(config)
    open_store = opening(AcknowledgesTooEarly)
    async with (
        build_services(config, open_store=open_store) as services,
        run_server(services, sockets),
    ):
        sys.stdout.write(f"ready at {config.base_url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    _serve, _config, file, _port, port = sys.argv[1:]
    asyncio.run(serve(Path(file), int(port)))
