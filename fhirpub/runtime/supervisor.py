"""Several processes on one port: started, watched, replaced when they die, stopped together."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from fhirpub.errors import FhirpubError, SecretsUnavailable, StoreUnavailable
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import end_log, logger
from fhirpub.runtime.stop_signals import STOP_SIGNALS, handle_stop_signals, note_signals

_MAX_WORKER_EXITS = 20
_SECONDS = 60
"""How many workers may die within this time; beyond that a restart does not help."""
_STORE_AWAY = os.EX_TEMPFAIL
"""The status of a worker that could not use the store, or its keys, at its start: another may,
later."""
_PAUSE_SECONDS = 2.0
"""How long the next start waits then, uncounted; the other workers keep serving."""

_log = logger()

Work = Callable[[int, Callable[[str], None]], None]


def supervise(count: int, work: Work, *, announce: Callable[[], None]) -> int:
    """Run ``work`` in ``count`` processes until SIGTERM or SIGINT; return the exit status.

    ``work`` gets its number, from 0, which one that replaces it takes over, and a function to call
    when it is ready. ``announce`` is called when all are.
    Workers stop when the supervisor is gone, even if it was killed.
    """
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)  # without a handler none is noted
    with note_signals() as noted:
        workers = _Workers(work, noted)
        with handle_stop_signals(workers.stop):
            return 0 if _run(workers, count, announce) else 1


def _run(workers: _Workers, count: int, announce: Callable[[], None]) -> bool:
    """Return whether all workers started, and none had to be replaced too often."""
    for number in range(count):
        workers.start(number)
    started = workers.replacing = workers.all_started(count)
    if started and not workers.stopping:
        announce()
    deaths: deque[float] = deque(maxlen=_MAX_WORKER_EXITS)
    while workers.numbers:
        pid, status = workers.wait()
        ended = workers.numbers.pop(pid, None)
        if ended is None or workers.stopping or not started:
            continue  # no number: a child of before an `exec`, or an orphan in a container
        code = os.waitstatus_to_exitcode(status)
        _log.error("worker died", pid=pid, status=code)
        if code == _STORE_AWAY:
            workers.start(ended, after=_PAUSE_SECONDS)
            continue
        deaths.append(time.monotonic())
        if len(deaths) == _MAX_WORKER_EXITS and deaths[-1] - deaths[0] < _SECONDS:
            workers.stop()
            started = False
            continue
        workers.start(ended)
    return started


class _Workers:
    """The processes, and the pipes through which they and the supervisor know of each other."""

    def __init__(self, work: Work, noted: socket.socket) -> None:
        self.numbers: dict[int, int] = {}
        """The number of each, by its process id."""
        self.stopping = False
        self.replacing = False
        """Whether a starting worker replaces another one and prints no startup message."""
        self._work = work
        self._noted = noted
        self._reading, self._writing = os.pipe()
        self._lifeline = os.pipe()

    def start(self, number: int, *, after: float = 0.0) -> None:
        """Start worker ``number``, unless stopping; it is ready after some seconds."""
        # Python forgets a signal that meets a child before its fork is done: let it wait.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        if not self.stopping:
            pid = os.fork()
            if not pid:
                self._run(number, after)
            self.numbers[pid] = number
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def stop(self) -> None:
        """Stop them all; also called at a stop signal."""
        self.stopping = True
        for pid in self.numbers:
            _terminate(pid)

    def wait(self) -> tuple[int, int]:
        """Wait until a child ends; return its process id and status.

        A worker that a signal stops is continued: it may hold the write lock of the SQLite file,
        and its share of the new connections would wait.
        """
        while True:
            pid, status = os.waitpid(-1, os.WUNTRACED | os.WNOHANG)
            if not pid:
                select.select([self._noted], [], [])
                self._noted.recv(4096)
            elif not os.WIFSTOPPED(status):
                return pid, status
            else:
                _log.error("worker was stopped by a signal, it is continued", pid=pid)
                os.kill(pid, signal.SIGCONT)  # until it is waited for, the id is not another's

    def all_started(self, count: int) -> bool:
        """Wait until every worker reports that it is ready, or all are stopped.

        Return False if one exited before; that stops the others.
        """
        said = 0
        os.set_blocking(self._reading, False)
        while said < count and not self.stopping:
            try:
                said += len(os.read(self._reading, count))
            except BlockingIOError:
                if self._reap_one() and not self.stopping:
                    for other in self.numbers:
                        _terminate(other)
                    return False
                signal.sigtimedwait([], 0.02)
        return True

    def _reap_one(self) -> bool:
        """Return whether a worker has ended; it is then no longer among them."""
        pid, _status = os.waitpid(-1, os.WNOHANG)
        return self.numbers.pop(pid, None) is not None

    def _run(self, number: int, after: float) -> None:
        """Work in a forked child, and end it."""
        _handle_signals_as_worker()
        os.close(self._lifeline[1])
        threading.Thread(target=self._end_with_supervisor, daemon=True).start()
        status = 1
        try:
            time.sleep(after)
            self._work(number, lambda _address: self._announce_ready())
            status = 0
        except (StoreUnavailable, SecretsUnavailable) as problem:
            self._report(problem.reason)
            status = _STORE_AWAY
        except FhirpubError as problem:
            self._report(str(problem))
        except BaseException as problem:  # noqa: BLE001 - nothing leaves a child but its status
            _log.error("worker failed", **where(problem))
        finally:
            end_log()
            sys.stderr.flush()
            os._exit(status)

    def _report(self, reason: str) -> None:
        if self.replacing:
            _log.error("worker cannot start", reason=reason)
        else:
            print(f"fhirpub: {reason}", file=sys.stderr)  # noqa: T201

    def _announce_ready(self) -> None:
        os.write(self._writing, b"+")

    def _end_with_supervisor(self) -> None:
        """Wait until the supervisor's end of the pipe is closed, by whatever ended it."""
        os.read(self._lifeline[0], 1)
        _terminate(os.getpid())


def _handle_signals_as_worker() -> None:
    """Undo in a forked child what is the supervisor's."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def _terminate(pid: int) -> None:
    with suppress(ProcessLookupError):  # it has already exited
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGCONT)  # one that was stopped would not hear of it
