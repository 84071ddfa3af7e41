"""FHIR clients in JavaScript for the tests, downloaded once into a cache and run by node."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.mongod.executable import cache_folder

HERE = Path(__file__).parent
LOCK = HERE / "package-lock.json"


class NoNode(Exception):
    """There is no recent node, or no npm; the text says which."""


class NoPackages(Exception):
    """npm could not download the clients; the text is its output."""


@dataclass(frozen=True, slots=True)
class Scripts:
    """A folder of scripts with the packages that they import."""

    folder: Path

    def run(self, name: str, *, given: Any = None, variables: Sequence[str] = ()) -> str:
        """Run a script and return its output.

        ``given`` is JSON on its input, ``variables`` are ``NAME=value`` pairs in its environment.
        """
        run = subprocess.run(
            ["env", *variables, "node", name],
            input=json.dumps(given),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout


def scripts_in(folder: Path) -> Scripts:
    """Put the scripts into a folder, with a link to their packages. Raises NoNode, NoPackages.

    Node searches for packages upwards from a script's folder, and our scripts do not belong into
    the cache.
    """
    _check_node()
    (folder / "node_modules").symlink_to(_packages() / "node_modules")
    for script in HERE.glob("*.mjs"):
        shutil.copy(script, folder)
    return Scripts(folder)


def _check_node() -> None:
    for name in ("node", "npm"):
        if shutil.which(name) is None:
            raise NoNode(f"there is no {name}")
    wanted = json.loads((HERE / "package.json").read_text())["engines"]["node"]
    version = subprocess.run(
        ["node", "--version"], capture_output=True, text=True, check=True
    ).stdout
    if _numbers(version) < _numbers(wanted):
        raise NoNode(f"node is {version.strip()}, and the clients need {wanted}")


def _numbers(version: str) -> list[int]:
    return [int(item) for item in re.findall(r"\d+", version)]


def _packages() -> Path:
    """Return the folder of the packages, which appears completely or not at all."""
    locked = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    home = cache_folder() / f"node-{locked[:16]}"
    if home.exists():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=home.parent, prefix=".fetching-") as name:
        fetched = Path(name, "packages")
        fetched.mkdir()
        for path in (HERE / "package.json", LOCK):
            shutil.copy(path, fetched)
        npm = ["npm", "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(npm, cwd=fetched, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoPackages(done.stderr.strip())
        try:
            fetched.rename(home)
        except OSError:
            if not home.exists():  # else another process was faster
                raise
    return home
