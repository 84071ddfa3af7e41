"""A process of a pool that opens nothing, and the functions that tests run in it.

The product's own loads every schema, which takes a second.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from fhirpub.errors import FhirpubError
from fhirpub.runtime.job_loop import serve_jobs

MODULE = "tests.unit.runtime.pool_jobs"


def pid_and_body(_environment: object, body: bytes) -> tuple[int, bytes]:
    return os.getpid(), body


def size_of(_environment: object, _body: bytes, *, argument: bytes) -> int:
    return len(argument)


def refuse(_environment: object, _body: bytes, *, refusal: FhirpubError) -> None:
    raise refusal


def fail(_environment: object, _body: bytes) -> None:
    raise ValueError("a patient's name")


def die(_environment: object, body: bytes) -> str:
    """Die the first ``times`` times, which a file counts."""
    file, times = body.decode().split("|")
    died = Path(file).stat().st_size if Path(file).exists() else 0
    if died < int(times):
        with Path(file).open("a") as written:
            written.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def wait_for_file(_environment: object, body: bytes) -> int:
    """Say that it has begun, in a file, and wait for another one."""
    begun = Path(f"{body.decode()}.begun")
    begun.touch()
    until = time.monotonic() + 30
    while not Path(body.decode()).exists() and time.monotonic() < until:
        time.sleep(0.01)
    return os.getpid()


def much(_environment: object, _body: bytes) -> bytes:
    return b"x" * 20_000_000


def write_to_standard_output(_environment: object, _body: bytes) -> str:
    os.write(1, b"a plugin prints this\n")
    return "done"


def keep(environment: object) -> object:
    return environment


if __name__ == "__main__":
    serve_jobs(keep)
