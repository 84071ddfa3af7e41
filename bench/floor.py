"""The floor: a Tornado handler that answers a constant and does nothing else, in one process."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

from tornado.web import Application, RequestHandler

LOOPBACK = "127.0.0.1"
MEDIA_TYPE = "application/fhir+json"
REGISTER_ANSWER_BYTES = 1_300
READ_ANSWER_BYTES = 3_072


def constant(size: int) -> bytes:
    """Return a JSON object of exactly ``size`` bytes."""
    empty = json.dumps({"resourceType": "Basic", "text": ""}, separators=(",", ":"))
    padding = "x" * (size - len(empty))
    return json.dumps({"resourceType": "Basic", "text": padding}, separators=(",", ":")).encode()


class Constant(RequestHandler):
    """Answers every path alike; Tornado has read the whole body before ``post`` is called."""

    register_answer = constant(REGISTER_ANSWER_BYTES)
    read_answer = constant(READ_ANSWER_BYTES)

    def compute_etag(self) -> str | None:
        """Spare the hash of each answer: the lower the floor's cost, the harder the ratio."""
        return None

    def get(self) -> None:
        self.set_header("Content-Type", MEDIA_TYPE)
        self.finish(self.read_answer)

    def post(self) -> None:
        self.set_status(201)
        self.set_header("Content-Type", MEDIA_TYPE)
        self.finish(self.register_answer)


def silent(_handler: RequestHandler) -> None:
    """Log nothing about a request."""


async def serve(port: int) -> None:
    """Answer on the loopback address until the process is ended."""
    settings: dict[str, Any] = {"log_function": silent}
    Application([(r"/.*", Constant)], **settings).listen(port, address=LOOPBACK)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
