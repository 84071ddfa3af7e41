"""Runs pure functions in processes of their own, which leave the event loop its interpreter.

A thread that computes takes the interpreter's lock from the event loop for half of the time or
more, and a native parser for as long as it runs. A process takes another core instead, and has a
lower priority where there is none (ADR 23). Processes start when they are needed and end when they
are not.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from typing import Any, TypeVar

from fhirpub.errors import Busy, FhirpubError
from fhirpub.runtime.fair_turns import FairTurns
from fhirpub.runtime.job_loop import ANSWER, JOB, Outcome
from fhirpub.runtime.logging import logger
from fhirpub.runtime.memory_file import MemoryFile

T = TypeVar("T")

_IDLE_SECONDS = 30.0
"""How long a process without work is kept: the next job would wait for a start."""
_STOP_SECONDS = 5.0
_START_SECONDS = 60.0
_PAUSE_SECONDS = 60.0
"""How long no start is tried after one that failed."""
_RETRY_SECONDS = 5
_WAIT_SECONDS = 60.0
_JOB_SECONDS = 60.0
"""The largest and densest bodies take a few seconds of computation."""
_LOOK_SECONDS = 0.01
_LARGE_BYTES = 256 * 1024
"""A larger outcome is read in a thread: it may have the bytes of documents."""

_PIECE_BYTES = 256 * 1024
"""So many bytes of a job are copied at a time, in a tenth of a millisecond."""

_log = logger()


class ProcessUnavailable(Exception):
    """No process can be started; the function may be run in a thread instead."""


class ProcessPool:
    """At most ``max_processes`` processes that run one function at a time.

    Args:
        module: The module to run in each, which calls `serve_jobs`.
        environment: Passed to the module; picklable.
        max_processes: How many run at a time. One owner, a tenant, has at most all but one.
    """

    def __init__(self, module: str, environment: Any, *, max_processes: int) -> None:
        self._command = (sys.executable, "-P", "-m", module)
        self._environment = environment
        self._turns = FairTurns(max_turns=max_processes, per_owner=max(1, max_processes - 1))
        self._idle: list[tuple[_Child, asyncio.TimerHandle]] = []
        self._all: set[_Child] = set()
        self._stopping: set[asyncio.Task[None]] = set()
        self._no_start_before = 0.0
        self._is_closed = False

    @property
    def running(self) -> int:
        """The number of processes, busy or idle."""
        return len(self._all)

    async def run(
        self, owner: str, function: Callable[[Any, bytes], T], chunks: Sequence[bytes]
    ) -> T:
        """Run ``function(environment, the chunks joined)`` and return its result.

        The function is pickled, so it must be one of a module, or a partial of one. A process
        that dies is replaced once.

        Raises:
            ProcessUnavailable: No process can be started.
            Busy: The function took too long, or its process was killed twice.
            Throttled: Functions of the owner took all its processes for too long.
            FhirpubError: What the function raises.
            RuntimeError: The function failed; the process has logged where.
        """
        try:
            async with self._turns.turn(owner, seconds=_WAIT_SECONDS):
                header = pickle.dumps(function)
                outcome = await self._call(header, chunks)
                outcome = outcome or await self._call(header, chunks, is_new=True)
        except TimeoutError:
            raise Busy(retry_after=_RETRY_SECONDS) from None
        if outcome is None:
            raise Busy(retry_after=_RETRY_SECONDS)
        result: T = _result(outcome)
        return result

    async def _call(
        self, header: bytes, chunks: Sequence[bytes], *, is_new: bool = False
    ) -> Outcome | None:
        """Return what comes of a function; None if its process dies."""
        child = await self._take(is_new=is_new)
        try:
            async with asyncio.timeout(_JOB_SECONDS):
                outcome = await child.call(header, chunks)
        except TimeoutError:
            _log.error("compute process took too long", pid=child.pid)
            self._discard(child)
            raise
        except (EOFError, OSError):
            _log.warning("compute process died", pid=child.pid)
            self._discard(child)
            return None
        except BaseException:  # cancelled: its answer would be taken for the next one
            self._discard(child)
            raise
        self._keep(child)
        return outcome

    async def close(self) -> None:
        """Stop all processes; jobs in progress are abandoned."""
        self._is_closed = True
        while self._idle:
            child, timer = self._idle.pop()
            timer.cancel()
            self._discard(child, is_idle=True)
        for child in self._all:  # their callers discard them
            child.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * _STOP_SECONDS):
                while self._all or self._stopping:
                    await asyncio.sleep(_LOOK_SECONDS)

    async def _take(self, *, is_new: bool) -> _Child:
        while self._idle and not is_new:
            child, timer = self._idle.pop()
            timer.cancel()
            if child.is_alive:
                return child
            self._discard(child)
        if self._is_closed:
            raise Busy(retry_after=_RETRY_SECONDS)
        loop = asyncio.get_running_loop()
        if loop.time() < self._no_start_before:
            raise ProcessUnavailable
        try:
            return await self._start()
        except (EOFError, OSError, RuntimeError) as problem:  # RuntimeError: no more threads
            self._no_start_before = loop.time() + _PAUSE_SECONDS
            _log.error("compute process cannot start", error=type(problem).__name__)
            raise ProcessUnavailable from None

    async def _start(self) -> _Child:
        child = await _Child.start(self._command)
        self._all.add(child)
        if self._is_closed:  # in the meantime
            child.kill()
        try:
            async with asyncio.timeout(_START_SECONDS):
                await child.call(pickle.dumps((sys.path, self._environment)), ())
        except BaseException:
            self._discard(child)
            raise
        return child

    def _keep(self, child: _Child) -> None:
        if self._is_closed:
            self._discard(child)
            return
        loop = asyncio.get_running_loop()
        self._idle.append((child, loop.call_later(_IDLE_SECONDS, self._end_idle, child)))

    def _end_idle(self, child: _Child) -> None:
        self._idle = [(other, timer) for other, timer in self._idle if other is not child]
        self._discard(child, is_idle=True)

    def _discard(self, child: _Child, *, is_idle: bool = False) -> None:
        self._all.discard(child)
        if not is_idle:
            child.kill()
        stopping = asyncio.create_task(child.stop())
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)


def _pieces_of(data: bytes) -> Iterator[memoryview]:
    view = memoryview(data)
    return (view[start : start + _PIECE_BYTES] for start in range(0, len(view), _PIECE_BYTES))


def _result(outcome: Outcome) -> Any:
    kind, value = outcome
    if kind == "result":
        return value
    if kind == "refusal" and isinstance(value, FhirpubError):
        raise value
    raise RuntimeError("a computation failed in another process")


class _Child:
    """A process that runs functions, one at a time."""

    def __init__(self, process: Process, jobs: MemoryFile, outcomes: MemoryFile) -> None:
        if process.stdin is None or process.stdout is None:
            raise OSError
        self._process, self._announced, self._answers = process, process.stdin, process.stdout
        self._jobs, self._outcomes = jobs, outcomes
        self._reading: asyncio.Future[Outcome] | None = None

    @classmethod
    async def start(cls, command: Sequence[str]) -> _Child:
        with ExitStack() as undo:
            jobs, outcomes = (undo.enter_context(closing(MemoryFile())) for _ in range(2))
            numbers = [file.descriptor for file in (jobs, outcomes)]
            process = await asyncio.create_subprocess_exec(
                *command, *map(str, numbers), stdin=PIPE, stdout=PIPE, pass_fds=numbers
            )
            child = cls(process, jobs, outcomes)
            undo.pop_all()
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def call(self, header: bytes, chunks: Sequence[bytes]) -> Outcome:
        """Send a job and return its outcome; raises EOFError or OSError if the process dies."""
        for data in (header, *chunks):  # a header may hold a stored resource of megabytes
            for piece in _pieces_of(data):
                self._jobs.append(piece)
                await asyncio.sleep(0)
        length = self._jobs.end()
        self._announced.write(JOB.pack(len(header), length - len(header)))
        (length,) = ANSWER.unpack(await self._answers.readexactly(ANSWER.size))
        if length <= _LARGE_BYTES:
            return self._outcome(length)
        self._reading = asyncio.ensure_future(asyncio.to_thread(self._outcome, length))
        return await asyncio.shield(self._reading)

    def _outcome(self, length: int) -> Outcome:
        (answer,) = self._outcomes.take(length)
        outcome: Outcome = pickle.loads(answer)  # noqa: S301 - from a process of our own
        return outcome

    def kill(self) -> None:
        """End the process by force."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def stop(self) -> None:
        """Let a process without a job end, and wait for it."""
        self._announced.close()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._end()
        except TimeoutError:
            self.kill()
            await self._end()
        if self._reading is not None:  # its thread would read another file with that descriptor
            await asyncio.wait([self._reading])
        for file in (self._jobs, self._outcomes):
            file.close()

    async def _end(self) -> None:
        with suppress(OSError):
            while await self._answers.read(_LARGE_BYTES):
                pass  # the end of the process is not reported before that of its output
        await self._process.wait()
