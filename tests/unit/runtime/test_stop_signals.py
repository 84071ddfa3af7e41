"""Stop signals in programs of their own, whose exit status is the fact."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

_WORK = """
from fhirpub.runtime.stop_signals import run_until_stopped

async def work(stop):
    print("ready", flush=True)
    await stop.wait()
    print("stopping", flush=True)

run_until_stopped(work)
"""


_AFTER = """
import signal
from fhirpub.runtime.stop_signals import STOP_SIGNALS, run_until_stopped

async def work(stop):
    pass

run_until_stopped(work)
print(signal.set_wakeup_fd(-1), {signal.getsignal(number) for number in STOP_SIGNALS})
"""


def test_after_the_end_stop_signals_are_ignored_and_wake_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _AFTER], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout == f"-1 { {signal.SIG_IGN} }\n"


_READERS = """
import asyncio
from fhirpub.runtime.stop_signals import stop_event

async def count():
    watched = asyncio.get_running_loop()._selector.get_map()
    before = len(watched)
    with stop_event():
        during = len(watched)
    print(during - before, len(watched) - before)

asyncio.run(count())
"""


def test_after_the_end_the_loop_watches_what_it_watched_before() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _READERS], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout == "1 0\n"


@pytest.fixture
def program() -> subprocess.Popen[str]:
    program = subprocess.Popen([sys.executable, "-c", _WORK], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    program.stdout.readline()
    return program


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_ends_the_work(
    program: subprocess.Popen[str], number: signal.Signals
) -> None:
    program.send_signal(number)

    printed, _errors = program.communicate(timeout=30)
    assert (printed, program.returncode) == ("stopping\n", 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_signals_until_the_end_do_not_change_the_status(
    program: subprocess.Popen[str], number: signal.Signals
) -> None:
    while program.poll() is None:
        program.send_signal(number)
        time.sleep(0.0005)

    assert program.communicate()[0] == "stopping\n"
    assert program.returncode == 0


# The signal arrives at each step of Python's own code in the wait, one after the other.
_EVERY_STEP = """
import asyncio, signal, sys
from itertools import count
from fhirpub.runtime.stop_signals import stop_event

async def stop_at(step):
    steps = count()
    def trace(_frame, _event, _arg):
        if next(steps) == step:
            signal.raise_signal(signal.SIGTERM)
        return trace

    with stop_event() as stop:
        waiting = asyncio.ensure_future(stop.wait())
        sys.settrace(trace)
        await asyncio.sleep(0)
        sys.settrace(None)
        if next(steps) <= step:
            return False
        await asyncio.wait([waiting], timeout=20)
        print(waiting.done())
        return waiting.done()

step = 0
while asyncio.run(stop_at(step)):
    step += 1
"""


def test_a_stop_at_any_step_of_the_wait_ends_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _EVERY_STEP], capture_output=True, text=True, check=True, timeout=60
    )

    ended = done.stdout.split()
    assert len(ended) > 50
    assert {*ended} == {"True"}
