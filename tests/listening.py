"""``fhirpub webhooks listen`` as a process that tests start, read and end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fhirpub.testing.service import Integrator
from tests.waiting import wait_until

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@dataclass
class Listening:
    """One run; its output is in files of ``folder``."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def output(self) -> str:
        return (self.folder / "out.txt").read_text()

    @property
    def notes(self) -> str:
        return (self.folder / "notes.txt").read_text()

    def wait_for_notes(self, text: str) -> None:
        assert wait_until(lambda: text in self.notes), self.notes

    def end(self) -> int:
        """End it as Ctrl-C does, and return its exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=30)


def environment_of(lab: Integrator, folder: Path, **variables: str) -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join(name for name in sys.path if Path(name).is_dir()),
        "XDG_STATE_HOME": str(folder / "state"),
        "FHIRPUB_CLIENT_ID": lab.client_id,
        "FHIRPUB_CLIENT_SECRET": lab.client_secret,
        "FHIRPUB_SIGNING_SECRET": SECRET,
        **variables,
    }


def service_words(lab: Integrator) -> tuple[str, ...]:
    return "--url", lab.service.base_url, "--audience", lab.service.config.auth.audience


@contextmanager
def listening(
    lab: Integrator, folder: Path, *words: str, is_ready: bool = True, **variables: str
) -> Iterator[Listening]:
    """Run the command, and wait until it waits for events."""
    with (folder / "out.txt").open("wb") as out, (folder / "notes.txt").open("wb") as notes:
        process = subprocess.Popen(
            [sys.executable, "-m", "fhirpub", "webhooks", "listen", *words, *service_words(lab)],
            cwd=folder,
            env=environment_of(lab, folder, **variables),
            stdout=out,
            stderr=notes,
        )
    run = Listening(process, folder)
    try:
        if is_ready:
            run.wait_for_notes("Waiting for events")
        yield run
    finally:
        process.kill()
        process.wait()
