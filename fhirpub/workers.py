"""Several processes on one port: started, watched, replaced when they die, stopped together."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType

from fhirpub.errors import FhirpubError
from fhirpub.logs import logger

_MOST_DEATHS = 20
"""How many workers may die before giving up: something is wrong that starting anew won't mend."""

_log = logger()


def supervise(
    count: int, work: Callable[[Callable[[str], None]], None], *, announce: Callable[[], None]
) -> int:
    """Run ``work`` in ``count`` processes until SIGTERM or SIGINT; return the exit status.

    ``work`` gets a function to call when it is ready. ``announce`` is called when all are.
    """
    stopping = False
    workers: set[int] = set()

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for pid in workers:
            os.kill(pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    reading, writing = os.pipe()
    for _ in range(count):
        workers.add(_start(work, writing))
    ready = _wait_for_all(reading, count, workers)
    if ready and not stopping:
        announce()
    deaths = 0
    while workers:
        pid, status = os.wait()
        workers.discard(pid)
        if stopping or not ready:
            continue
        deaths += 1
        _log.error("worker died", pid=pid, status=os.waitstatus_to_exitcode(status))
        if deaths >= _MOST_DEATHS:
            stop(signal.SIGTERM, None)
            return 1
        workers.add(_start(work, writing))
    return 0 if ready else 1


def _start(work: Callable[[Callable[[str], None]], None], writing: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = 1
    try:
        work(lambda _address: _say_ready(writing))
        status = 0
    except FhirpubError as problem:
        print(f"fhirpub: {problem}", file=sys.stderr)  # noqa: T201
    except BaseException:  # noqa: BLE001 - nothing may leave a forked child but its status
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _say_ready(writing: int) -> None:
    os.write(writing, b"+")


def _wait_for_all(reading: int, count: int, workers: set[int]) -> bool:
    """Return whether every worker said that it is ready; one that ends first stops the others."""
    said = 0
    os.set_blocking(reading, False)
    while said < count:
        try:
            said += len(os.read(reading, count))
        except BlockingIOError:
            pid, _status = os.waitpid(-1, os.WNOHANG)
            if pid:
                workers.discard(pid)
                for other in workers:
                    os.kill(other, signal.SIGTERM)
                return False
            signal.sigtimedwait([], 0.02)
    return True
