"""Plants one bug after another in a copy of the sources, and sees whether its tests notice."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, NoReturn

from tests.seeded.forked_pytest import load_plugins, run_pytest
from tests.seeded.patches import ROOT, SeededBug, Unusable, all_bugs

Verdict = Literal["caught", "survived", "broken"]

_KNOWN = ROOT / ".seeded_cache" / "caught.json"
_MAX_SECONDS = 600.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one bug. ``by`` is the test that caught it, or what is wrong."""

    name: str
    verdict: Verdict
    by: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Run:
    """The tests of one bug, running in a copy of the sources that has it."""

    bug: SeededBug
    copy: Path
    process: int
    began: float = field(default_factory=time.monotonic)

    def result(self, status: int | None) -> Result:
        """Return what the tests found; their status is None if they took too long."""
        output = _output_of(self.copy)
        failed = [line for line in output.splitlines() if line.startswith("FAILED ")]
        test = failed[0].removeprefix("FAILED ").partition(" - ")[0] if failed else ""
        verdict: Verdict = "broken"
        if status == 1 and test:
            verdict, by = "caught", test
        elif status == 0:
            verdict, by = "survived", " ".join(self.bug.tests)
        elif status is None:
            by = f"its tests run for more than {_MAX_SECONDS:.0f} s"
        else:
            by = f"its tests could not run: {output[-200:]!r}"
        return Result(self.bug.name, verdict, by, time.monotonic() - self.began)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="scripts/seeded", description=__doc__)
    parser.add_argument("names", nargs="*", help="bugs such as fhir/negative-zero, or areas: fhir")
    parser.add_argument("--list", action="store_true", help="list the bugs and what they break")
    parser.add_argument("--json", action="store_true", help="write the results as JSON")
    parser.add_argument("--jobs", type=int, default=1, help="bugs at a time, by default one")
    parser.add_argument("--again", action="store_true", help="run also what was caught before")
    options = parser.parse_args(arguments)
    bugs = [bug for bug in all_bugs() if not options.names or bug.is_named(options.names)]
    if not bugs:
        parser.error("no seeded bug has such a name; --list names them")
    if options.list:
        _write("\n".join(f"{bug.name}\n    {bug.promise}" for bug in bugs))
        return 0
    results = _run_all(bugs, jobs=options.jobs, again=options.again, quiet=options.json)
    missed = [result for result in results if result.verdict != "caught"]
    if options.json:
        _write(json.dumps([asdict(result) for result in results], indent=2))
    else:
        lines = (f"\n  {result.verdict} {result.name}: {result.by}" for result in missed)
        _write(f"{len(results) - len(missed)} of {len(results)} bugs were caught.{''.join(lines)}")
    return 1 if missed else 0


def _run_all(bugs: Sequence[SeededBug], *, jobs: int, again: bool, quiet: bool) -> list[Result]:
    files = _source_files()
    keys = _keys_of(bugs, files)
    known = {} if again or not _KNOWN.exists() else json.loads(_KNOWN.read_text())
    results = [
        Result(bug.name, "caught", known[keys[bug.name]])
        for bug in bugs
        if keys[bug.name] in known
    ]
    left = [bug for bug in bugs if keys[bug.name] not in known]
    load_plugins()
    with _copies(files, max(1, jobs)) as copies:
        new: list[Result] = []
        for result in _results(left, copies):
            new.append(result)
            if not quiet:
                line = f"{result.verdict:8} {result.name}  {result.seconds:.1f} s  {result.by}"
                _write(f"[{len(results) + len(new)}/{len(bugs)}] {line}")
        new = _without_failing_anyway(new, copies[0])
    known |= {keys[result.name]: result.by for result in new if result.verdict == "caught"}
    _KNOWN.parent.mkdir(exist_ok=True)
    _KNOWN.write_text(json.dumps(known, indent=1))
    return sorted([*results, *new], key=lambda each: each.name)


def _results(bugs: Sequence[SeededBug], copies: Sequence[Path]) -> Iterator[Result]:
    """Yield the results as they come, as many bugs at a time as there are copies."""
    waiting, free = list(reversed(bugs)), list(copies)
    running: dict[int, _Run] = {}
    while waiting or running:
        while waiting and free:
            bug = waiting.pop()
            try:
                bug.apply(free[-1])
            except Unusable as problem:
                yield Result(bug.name, "broken", f"no longer applies: {problem}")
                continue
            run = _start(bug, free.pop())
            running[run.process] = run
        for process, status in [*_ended(running)]:
            run = running.pop(process)
            run.bug.apply(run.copy, reverse=True)
            free.append(run.copy)
            yield run.result(status)


def _ended(running: dict[int, _Run]) -> Iterator[tuple[int, int | None]]:
    """Wait a little; yield the processes that have ended, or are ended for their time."""
    time.sleep(_POLL_SECONDS)
    for process, run in running.items():
        found, status = os.waitpid(process, os.WNOHANG)
        is_late = time.monotonic() - run.began > _MAX_SECONDS
        if found:
            yield process, os.waitstatus_to_exitcode(status)
        elif is_late:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            yield process, None


def _start(bug: SeededBug, copy: Path) -> _Run:
    return _Run(bug, copy, _fork(copy, ["-x", *bug.tests]))


def _fork(copy: Path, arguments: Sequence[str]) -> int:
    """Run pytest in a process of its own, which has its plugins already; return its id."""
    sys.stdout.flush()
    process = os.fork()
    return process or _become_pytest(copy, arguments)


def _become_pytest(copy: Path, arguments: Sequence[str]) -> NoReturn:
    status = 3
    try:
        status = run_pytest(copy, arguments, output=copy.with_suffix(".log"))
    finally:
        os._exit(status)


def _without_failing_anyway(results: list[Result], copy: Path) -> list[Result]:
    """Return the results; a test that fails without the bug has not caught it."""
    tests = {result.by.partition("[")[0] for result in results if result.verdict == "caught"}
    if not tests:
        return results
    _, status = os.waitpid(_fork(copy, sorted(tests)), 0)
    output = _output_of(copy)
    if os.waitstatus_to_exitcode(status) > 1:
        return [replace(each, verdict="broken", by=output[-200:]) for each in results]
    wrong = {
        line.split(" ")[1].partition("[")[0]
        for line in output.splitlines()
        if line.startswith(("FAILED ", "ERROR "))
    }
    return [
        replace(each, verdict="broken", by=f"{each.by} fails without the bug")
        if each.verdict == "caught" and each.by.partition("[")[0] in wrong
        else each
        for each in results
    ]


def _output_of(copy: Path) -> str:
    return copy.with_suffix(".log").read_text(errors="replace")


def _source_files() -> list[str]:
    """Return what git knows, or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = sorted(set(filter(None, done.stdout.split("\0"))))
    return [name for name in found if (ROOT / name).is_file()]


def _keys_of(bugs: Sequence[SeededBug], files: Sequence[str]) -> dict[str, str]:
    """Return a digest of each bug and of all sources but the bugs."""
    digest = hashlib.sha256()
    for name in files:
        if not name.startswith("tests/seeded/"):
            digest.update(
                name.encode() + b"\0" + hashlib.sha256((ROOT / name).read_bytes()).digest()
            )
    whole = digest.digest()
    return {bug.name: hashlib.sha256(whole + bug.path.read_bytes()).hexdigest() for bug in bugs}


@contextmanager
def _copies(files: Sequence[str], number: int) -> Iterator[list[Path]]:
    """Yield a folder with the sources for each of so many jobs."""
    with tempfile.TemporaryDirectory(prefix="fhirpub-seeded-") as folder:
        copies = [Path(folder) / f"copy{place}" for place in range(number)]
        for copy in copies:
            for name in files:
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                # With its time, by which Python knows whether what it has compiled is up to date.
                shutil.copy2(ROOT / name, copy / name)
        yield copies


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
