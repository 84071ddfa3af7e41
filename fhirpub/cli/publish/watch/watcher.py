"""Watches a folder until the process is asked to stop."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from fhirpub.cli.printing import counted
from fhirpub.cli.publish.bulk.connections import Connections, connections
from fhirpub.cli.publish.bulk.intake import Intake
from fhirpub.cli.publish.bulk.items import Item
from fhirpub.cli.publish.bulk.load import Load, interruptible
from fhirpub.cli.publish.bulk.sender import Patience, SingleCalls
from fhirpub.cli.publish.outcome import Outcome
from fhirpub.cli.publish.publisher import Publisher
from fhirpub.cli.publish.service import Service, note
from fhirpub.cli.publish.summary import print_outcome
from fhirpub.cli.publish.watch.claim import SENDING, Claim
from fhirpub.cli.publish.watch.folder import Settling, WatchedFolder

_PATIENCE_SECONDS = 30.0
_LONGEST_PAUSE = 60.0
_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """How a folder is watched. A file is complete after ``settle`` seconds without a change."""

    jobs: int
    settle: float
    as_json: bool


def watch(service: Service, folder: Path, options: WatchOptions) -> None:
    """Publish what is in a folder and what appears in it, until SIGTERM or SIGINT."""
    watched = WatchedFolder(folder.resolve(), service, Settling(options.settle))
    asyncio.run(_Watcher(watched, options).run())


@dataclass(slots=True)
class _Watcher:
    folder: WatchedFolder
    options: WatchOptions
    _stopped: threading.Event = field(default_factory=threading.Event, init=False)
    _pass: threading.Event = field(default_factory=threading.Event, init=False)
    """Set to end the current pass over the folder."""

    async def run(self) -> None:
        async with interruptible(self._stop):
            waits = False
            while not self._stopped.is_set():
                with self.folder.locked() as is_ours:
                    if is_ours:
                        await self._publish()
                    elif not waits:
                        note(f"another process watches {self.folder.path}; waiting until it ends")
                    waits = not is_ours
                await self._sleep(_POLL_SECONDS)

    def _stop(self) -> None:
        self._stopped.set()
        self._pass.set()

    async def _publish(self) -> None:
        """Publish what is ready, again and again; transient failures are retried for ever."""
        note(f"watching {self.folder.path}")
        failures = 0
        async with connections(self.options.jobs, self.folder.service.cacert) as opened:
            while not self._stopped.is_set():
                try:
                    await self._pass_once(opened)
                except (click.ClickException, OSError) as problem:
                    failures += 1
                    await self._report_failure(problem, failures)
                else:
                    failures = 0
                    await self._sleep(_POLL_SECONDS)

    async def _pass_once(self, opened: Connections) -> None:
        self._pass = threading.Event()
        if self._stopped.is_set():
            return
        service = self.folder.service
        patience = Patience(_PATIENCE_SECONDS)
        publisher = Publisher(opened.send, service.base, service.grant, note, patience.pauses)
        intake = Intake(self.folder.items(), service, self._pass)
        sender = SingleCalls(publisher, patience)
        load = Load(intake, sender.send, self._print, self.options.jobs, finish=self._move)
        await load.run()

    def _move(self, item: Item, outcome: Outcome) -> None:
        """Move a report to where its result belongs."""
        Claim(self.folder.path, item.base).decide(outcome)

    def _print(self, item: Item, outcome: Outcome) -> None:
        named = replace(outcome, file=item.file.name)
        print_outcome(named, as_json=self.options.as_json, is_only=False)

    async def _report_failure(
        self, problem: click.ClickException | OSError, failures: int
    ) -> None:
        pause = min(2.0**failures, _LONGEST_PAUSE)
        if isinstance(problem, click.ClickException):
            reason = problem.message
        else:
            reason = f"{self.folder.path}: {problem.strerror}"
        number = self.folder.waiting()
        waiting = f"{counted(number, 'report')} {'waits' if number == 1 else 'wait'}"
        note(f"{reason}\n{waiting} in {SENDING}; trying again in {pause:g} s")
        await self._sleep(pause)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but not longer than until the process is asked to stop."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._stopped.is_set():
            await asyncio.sleep(0.1)
