"""Other releases to run beside this one: older commits, and a next one with another schema."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from io import BytesIO
from pathlib import Path

import pytest

import fhirpub
from fhirpub.config.loader import variable
from fhirpub.storage.mongodb import schema as mongodb
from fhirpub.storage.sqlite import schema as sqlite
from tests.plugin_examples import write_metadata

_SCHEMAS = tuple(f"fhirpub/storage/{engine}/schema.py" for engine in ("sqlite", "mongodb"))
_VERSION = re.compile(r"^SCHEMA_VERSION = (\d+)$", re.MULTILINE)
_USABLE_FROM = re.compile(r"^USABLE_FROM = (\d+)$", re.MULTILINE)
_OWN = (sqlite.SCHEMA_VERSION, mongodb.SCHEMA_VERSION)
_STEP = '\nSTEPS[{own}] = ("CREATE TABLE of_next_release (number INTEGER PRIMARY KEY) STRICT",)\n'


@cache
def python_of(commit: str, folder: Path) -> str:
    """Return an interpreter that imports fhirpub and its plugins as they were at a commit."""
    sources = folder / commit
    archive = _git("archive", commit, "fhirpub", "plugins", "schemas")
    with tarfile.open(fileobj=BytesIO(archive)) as packed:
        packed.extractall(sources, filter="data")
    (sources / "fhirpub" / "schemas").symlink_to("../schemas")  # as it is installed
    _install(sources, _git("show", f"{commit}:setup.py").decode())
    return _python(sources, f"{sources}:{sources / 'plugins'}")


def _install(sources: Path, setup: str) -> None:
    """Let the plugins of sources be found, and not those of this release."""
    (group,) = re.findall(r'"(fhirpub\.plugins[^"]*)":', setup)
    plugins = sorted(folder.name for folder in (sources / "plugins").glob("fhirpub_*"))
    modules = {name.removeprefix("fhirpub_"): name for name in plugins}
    write_metadata(sources, "fhirpub", modules, version=fhirpub.__version__, group=group)


@cache
def python_of_next_release(folder: Path, *, usable: bool) -> str:
    """Return an interpreter that imports these sources with a next version of both schemas.

    ``usable`` is whether the upgraded stores may be used by this release as well.
    """
    sources = folder / ("usable" if usable else "unusable")
    without_caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(fhirpub.__path__[0], sources / "fhirpub", ignore=without_caches)
    if not (sources / "fhirpub" / "schemas").exists():
        (sources / "fhirpub" / "schemas").symlink_to(import_module("fhirpub.schemas").__path__[0])
    for path, own in zip(_SCHEMAS, _OWN, strict=True):
        text = _VERSION.sub(f"SCHEMA_VERSION = {own + 1}", (sources / path).read_text())
        text = _USABLE_FROM.sub(f"USABLE_FROM = {own if usable else own + 1}", text)
        if path.startswith("fhirpub/storage/sqlite"):
            text += _STEP.format(own=own)
        (sources / path).write_text(text)
    return _python(sources, str(sources))


def oldest_commit_with_these_schemas() -> str:
    """Return the oldest commit that makes stores as these sources do, without another between."""
    commits = []
    for commit, versions in _history():
        if versions != _OWN:
            break
        commits.append(commit)
    if not commits:
        pytest.skip("no commit has the schema versions of these sources")
    return commits[-1]


def newest_commit_with_other_schemas() -> str:
    """Return the newest commit whose stores these sources upgrade at their first start."""
    for commit, versions in _history():
        if versions != _OWN:
            return commit
    pytest.skip("the history does not reach back to another schema version")


def _python(sources: Path, path: str) -> str:
    """Return a script that runs Python with a path; checks that it imports these sources."""
    script = sources / "python"
    # A safe path: -m would otherwise find fhirpub in the working folder first.
    # What is compiled once is not compiled in each process of these sources.
    settings = f'PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE= PYTHONPATH="{path}"'
    words = f'{settings} exec "{sys.executable}" "$@"'
    script.write_text(f"#!/bin/sh\n{words}\n")
    script.chmod(0o700)
    question = "import fhirpub; print(fhirpub.__path__[0])"
    done = subprocess.run(
        [str(script), "-c", question], capture_output=True, check=True, text=True
    )
    assert Path(done.stdout.strip()) == sources / "fhirpub"
    return str(script)


def _history() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the commits of the main line, newest first, each with its schema versions."""
    for commit in _git("log", "--first-parent", "--format=%H").decode().split():
        sources = [_git("show", f"{commit}:{path}").decode() for path in _SCHEMAS]
        yield commit, tuple(int(_VERSION.findall(source)[0]) for source in sources)


def _git(*words: str) -> bytes:
    """Return what git prints; skips the test where there is no history."""
    root = variable("FHIRPUB_TEST_REPOSITORY") or str(Path(__file__).parents[2])
    try:
        done = subprocess.run(["git", "-C", root, *words], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the history of the repository is not here")
    return done.stdout
