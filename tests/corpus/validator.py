"""Independent R4 validators, each in an environment of its own, with one line per request.

None of their code is ours, and none of it is imported here: they pin libraries that the service
must not depend on. ``python tests/corpus/validator.py`` creates the environments.

- ``fhir.resources`` 6.4.0, the last with plain R4 models; needs pydantic 1, and lxml for XML.
- ``fhirclient``, the SMART client's R4 models, which refuse what they do not know.
- ``fhircraft``, models made from the official definitions, which also evaluate invariants; pint
  0.26, which needs Python 3.12, refuses a unit that it defines.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

WORKER = Path(__file__).with_name("validator_worker.py")

PINS = {
    "fhir.resources": ("fhir.resources==6.4.0", "pydantic==1.10.27", "lxml==6.1.3"),
    "fhirclient": ("fhirclient==4.4.0",),
    "fhircraft": ("fhircraft==0.9.0", "pint==0.25.3"),
}


def cache_folder() -> Path:
    """Return where the environments are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"  # noqa: TID251  # tests only
    return Path(base) / "fhirpub-validators"


def python_of(name: str, folder: Path) -> Path:
    """Return the interpreter of a validator's environment, making the environment if needed."""
    home = folder / "-".join((*PINS[name], f"py{sys.version_info[0]}{sys.version_info[1]}"))
    folder.mkdir(parents=True, exist_ok=True)
    python = home / "bin" / "python"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may arrive at the same time
        if not (home / "ready").exists():
            # our pip is enough: installing another one would take seconds
            venv.create(home, clear=True)
            pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
            subprocess.run((*pip, "install", "-q", *PINS[name]), check=True)
            (home / "ready").touch()
    return python


@dataclass(frozen=True, slots=True)
class Fault:
    """A validator's complaint about a resource."""

    validator: str
    reason: str


class Validator:
    """One running worker; a context manager, and not for two threads at once."""

    def __init__(self, name: str, folder: Path | None = None) -> None:
        self.name = name
        python = python_of(name, folder or cache_folder())
        self._worker = subprocess.Popen(
            [python, "-W", "ignore", WORKER, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def fault(self, resource: dict[str, Any]) -> Fault | None:
        """Return the problem with the resource, or nothing."""
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        self._worker.stdin.write(json.dumps(resource) + "\n")
        self._worker.stdin.flush()
        answer = self._worker.stdout.readline().rstrip("\n")
        if not answer:
            raise RuntimeError(f"the validator {self.name} stopped")
        return None if answer == "ok" else Fault(self.name, answer)

    def close(self) -> None:
        """End the worker by closing its input."""
        self._worker.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def faults(resource: dict[str, Any], validators: Iterable[Validator]) -> list[Fault]:
    """Return the complaints of all validators about a resource."""
    found = (
        validator.fault(record)
        for validator in validators
        for record in _looked_at(resource, validator.name)
    )
    return [fault for fault in found if fault is not None]


def _looked_at(resource: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the contents of Parameters for fhircraft, which is slow on Parameters itself."""
    if name != "fhircraft" or resource.get("resourceType") != "Parameters":
        return [resource]
    return [
        parameter["resource"] for parameter in resource["parameter"] if "resource" in parameter
    ]


def main() -> None:
    """Create the environments, so that a later run needs no network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=cache_folder())
    folder = parser.parse_args().folder
    for name in PINS:
        sys.stdout.write(f"{name} {python_of(name, folder)}\n")


if __name__ == "__main__":
    main()
