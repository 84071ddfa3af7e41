"""One load from its beginning to its summary."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from fhirpub.cli.printing import is_terminal
from fhirpub.cli.progress_line import ProgressLine
from fhirpub.cli.publish.bulk.connections import connections
from fhirpub.cli.publish.bulk.done import Done
from fhirpub.cli.publish.bulk.intake import Intake
from fhirpub.cli.publish.bulk.items import Item
from fhirpub.cli.publish.bulk.lines import Reading
from fhirpub.cli.publish.bulk.load import Load, interruptible
from fhirpub.cli.publish.bulk.progress import Expected, bar
from fhirpub.cli.publish.bulk.report import Report, opened_report
from fhirpub.cli.publish.bulk.sender import Patience, SingleCalls
from fhirpub.cli.publish.bulk.sources import Source
from fhirpub.cli.publish.bulk.tally import Tally
from fhirpub.cli.publish.outcome import Outcome
from fhirpub.cli.publish.publisher import Publisher
from fhirpub.cli.publish.service import Service, note
from fhirpub.runtime.clock import now_ms

_PATIENCE_SECONDS = 300.0
_SECONDS_BETWEEN_NOTES = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a load is done; ``resume`` leaves out what is published according to ``report``."""

    jobs: int
    report: Path | None = None
    resume: bool = False


@dataclass(slots=True)
class Ending:
    """How a load ended: completely, by a failure, or by a signal.

    One that ``has_report`` goes on where it was, by ``--resume``.
    """

    tally: Tally
    skipped: int = 0
    left: int | None = None
    failure: click.ClickException | None = None
    interrupted: bool = False
    has_report: bool = False


def load_all(service: Service, sources: list[Source], options: Options) -> Ending:
    """Load everything that the sources have, and return how it ended."""
    with ExitStack() as stack:
        report = None
        if options.report:
            opened = opened_report(options.report, now_ms, resume=options.resume)
            report = stack.enter_context(opened)
        done = Done.read(options.report) if options.report and options.resume else Done()
        return asyncio.run(_Run(service, sources, options, report, done).run())


@dataclass(slots=True)
class _Run:
    service: Service
    sources: list[Source]
    options: Options
    report: Report | None
    done: Done
    tally: Tally = field(default_factory=Tally)
    stopped: threading.Event = field(default_factory=threading.Event)
    _noted: float = field(default=float("-inf"), init=False)

    async def run(self) -> Ending:
        expected = Expected(self.sources, self.stopped)
        reading = Reading(self.service.limit, self.stopped.is_set, expected.read)
        items = _counted(self.sources, reading, expected)
        intake = Intake(items, self.service, self.stopped, self.done.has)
        ending = Ending(self.tally, has_report=self.report is not None)
        expected.start()
        async with interruptible(self._stop) as was_interrupted:
            try:
                async with self._watched(intake, expected):
                    await self._load(intake)
            except click.ClickException as problem:
                ending.failure = problem
        ending.interrupted = was_interrupted()
        ending.skipped = intake.skipped
        ending.left = self._left(expected.total(), intake.skipped)
        return ending

    def _left(self, expected: int | None, skipped: int) -> int | None:
        """Return how many were not sent; None if it is not known how many there are."""
        return None if expected is None else max(0, expected - self.tally.total - skipped)

    async def _load(self, intake: Intake) -> None:
        patience = Patience(_PATIENCE_SECONDS)
        async with connections(self.options.jobs, self.service.cacert) as opened:
            publisher = Publisher(
                opened.send, self.service.base, self.service.grant, self._note, patience.pauses
            )
            sender = SingleCalls(publisher, patience)
            await Load(intake, sender.send, self._record, self.options.jobs).run()

    def _stop(self) -> None:
        if not self.stopped.is_set():
            self._noted = float("-inf")
            self._note("waiting for requests in flight; Ctrl-C again to give them up")
        self.stopped.set()

    def _record(self, _item: Item, outcome: Outcome) -> None:
        if self.report:
            self.report.add(outcome)
        self.tally.add(outcome)

    def _note(self, text: str) -> None:
        """Print a note, unless another worker has just printed one."""
        if time.monotonic() - self._noted > _SECONDS_BETWEEN_NOTES:
            self._noted = time.monotonic()
            if is_terminal(sys.stderr):
                click.echo(f"\r{'':<90}\r", nl=False, err=True)
            note(text)

    @asynccontextmanager
    async def _watched(self, intake: Intake, expected: Expected) -> AsyncIterator[None]:
        """Save the report each second, and show the progress on a terminal."""
        task = asyncio.create_task(self._watch(intake, expected))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _watch(self, intake: Intake, expected: Expected) -> None:
        line = ProgressLine(at_once=True) if is_terminal(sys.stderr) else None
        try:
            while True:
                if self.report:
                    await asyncio.to_thread(self.report.save)
                for _ in range(5):
                    if line:
                        line.show(lambda: self._progress(intake, expected))
                    await asyncio.sleep(0.2)
        finally:
            if line:
                line.end()

    def _progress(self, intake: Intake, expected: Expected) -> str:
        done = self.tally.total + intake.skipped
        total = expected.total()
        return bar(done, total, self.tally.rate, failed=self.tally.failed)


def _counted(sources: list[Source], reading: Reading, expected: Expected) -> Iterator[Item]:
    for source in sources:
        for item in source.items(reading):
            if item.line:
                expected.lines_read += 1
            yield item
