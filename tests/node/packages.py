"""Packages of npm for the tests, downloaded once into a cache, and scripts that use them."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.loader import variable
from tests.cache import cache_folder, filling

HERE = Path(__file__).parent
LOCK = HERE / "package-lock.json"


class NoNode(Exception):
    """There is no recent node, or no npm; the text says which."""


class NoPackages(Exception):
    """npm could not download the packages; the text is its output."""


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
    (folder / "node_modules").symlink_to(packages_of(HERE) / "node_modules")
    for script in HERE.glob("*.mjs"):
        shutil.copy(script, folder)
    return Scripts(folder)


def packages_of(folder: Path) -> Path:
    """Return where the packages are that a folder's package-lock.json names.

    Raises NoNode, NoPackages.
    """
    manifest, lock = folder / "package.json", folder / "package-lock.json"
    _check_node(json.loads(manifest.read_text())["engines"]["node"])
    home = cache_folder() / f"node-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    if not home.exists():
        with filling(home) as fetched:
            for path in (manifest, lock):
                shutil.copy(path, fetched)
            _install(fetched)
    return home


@contextmanager
def skipping_without_packages() -> Iterator[None]:
    """Skip the test without node or packages; with node, continuous integration must have them."""
    try:
        yield
    except NoNode as reason:
        pytest.skip(str(reason))
    except NoPackages:
        if variable("CI") == "true":
            raise
        pytest.skip("npm cannot fetch the packages; `npm ci` beside package.json says why")


def _check_node(wanted: str) -> None:
    for name in ("node", "npm"):
        if shutil.which(name) is None:
            raise NoNode(f"there is no {name}")
    version = subprocess.run(
        ["node", "--version"], capture_output=True, text=True, check=True
    ).stdout
    if _numbers(version) < _numbers(wanted):
        raise NoNode(f"node is {version.strip()}, and the tests need {wanted}")


def _numbers(version: str) -> list[int]:
    return [int(item) for item in re.findall(r"\d+", version)]


def _install(folder: Path) -> None:
    npm = ["npm", "ci", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(npm, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoPackages(done.stderr.strip())
