"""The other side of a process pool: runs the functions that standard input announces.

A job and its outcome are in two files in memory; only their lengths come through the pipes, which
end with the process on either side.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal

from fhirpub.errors import FhirpubError
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger
from fhirpub.runtime.memory import return_memory, tune_allocator
from fhirpub.runtime.memory_file import MemoryFile

Outcome = tuple[Literal["result", "refusal", "fault"], Any]
JOB = struct.Struct("!QQ")
"""The lengths of a pickled function and of the bytes that it is called with."""
ANSWER = struct.Struct("!Q")
"""The length of a pickled outcome."""
_TRIM_SECONDS = 1.0
"""How long the memory of a short job is kept for the next one: each page that is returned to the
system is cleared when it is used again."""
_LONG_SECONDS = 0.1
"""A job that takes longer was dense, and has used much memory."""
_NICE = 5
"""Added to the niceness (0 to 19): the process that serves requests comes first."""
_OOM_SCORE = 500
"""Added to the score by which the kernel chooses what to kill when memory runs out (0 to 1000)."""

_log = logger()


def serve_jobs(open_environment: Callable[[Any], Any]) -> None:
    """Run the functions that arrive until standard input ends.

    The last two arguments of the command line are the descriptors of the files of jobs and of
    outcomes.

    Args:
        open_environment: Makes the first argument of each function of what the pool was given.
    """
    _defer_to_service()
    tune_allocator()
    jobs, answers = _pipes()
    with jobs, answers, suppress(BrokenPipeError):
        _run_jobs(jobs, answers, open_environment)


def _defer_to_service() -> None:
    """Let the process that started this one decide when it ends, and come first."""
    # The process ends with the one that started it, which may finish requests after these.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICE)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE), encoding="ascii")


def _run_jobs(jobs: BinaryIO, answers: BinaryIO, open_environment: Callable[[Any], Any]) -> None:
    job_file, outcome_file = (MemoryFile(int(text)) for text in sys.argv[-2:])
    environment = None
    while job := _read(jobs, job_file):
        header, body = job
        began = time.monotonic()
        if environment is None:
            sys.path[:], given = pickle.loads(header)  # noqa: S301 - from our own parent
            environment = _open(open_environment, given)
            outcome: Outcome = ("result", None)
            gc.collect()
            gc.freeze()
            gc.disable()  # what a job leaves is collected after it
        else:
            outcome = _run(header, environment, body)
        del job, header, body
        outcome_file.append(pickle.dumps(outcome, protocol=pickle.HIGHEST_PROTOCOL))
        answers.write(ANSWER.pack(outcome_file.end()))
        answers.flush()
        del outcome
        gc.collect()
        if time.monotonic() - began > _LONG_SECONDS or not _has_next(jobs):
            return_memory()


def _has_next(jobs: BinaryIO) -> bool:
    """Return whether a job arrives soon, or standard input ends."""
    readable, _, _ = select.select([jobs], [], [], _TRIM_SECONDS)
    return bool(readable)


def _open(open_environment: Callable[[Any], Any], given: Any) -> Any:
    """Return the environment; without one, end this process."""
    try:
        return open_environment(given)
    except Exception as problem:  # noqa: BLE001 - the text may be anything
        _log.error("compute process cannot start", **where(problem))
        raise SystemExit(1) from None


def _read(jobs: BinaryIO, job_file: MemoryFile) -> list[bytes] | None:
    """Return a pickled function and its bytes; None if the sender has ended."""
    head = jobs.read(JOB.size)
    if len(head) < JOB.size:
        return None
    return job_file.take(*JOB.unpack(head))


def _pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return standard input and output; what else is written to the latter is an error message."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return os.fdopen(os.dup(0), "rb"), answers


def _run(header: bytes, environment: Any, body: bytes) -> Outcome:
    try:
        function = pickle.loads(header)  # noqa: S301 - from our own parent
        return "result", function(environment, body)
    except FhirpubError as refusal:
        return "refusal", refusal
    except Exception as problem:  # noqa: BLE001 - the next job may succeed
        _log.error("failed", **where(problem))
        return "fault", None
