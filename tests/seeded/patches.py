"""Bugs as patches: each names the promise that it breaks, and the tests that must notice."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FOLDER = Path(__file__).parent
_HEADER = re.compile(r"Promise: (?P<promise>.+?)\nTests: (?P<tests>.+?)\n--- ", re.DOTALL)
_PATCHED = re.compile(r"^\+\+\+ b/(.+)$", re.MULTILINE)


class Unusable(Exception):
    """A patch has no header, or does not fit the sources."""


@dataclass(frozen=True, slots=True)
class SeededBug:
    """One small bug. ``tests`` are the arguments of pytest for those nearest to it."""

    name: str
    path: Path
    promise: str
    tests: tuple[str, ...]
    files: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> SeededBug:
        """Return the bug in a patch. Raises Unusable if it does not say what it is."""
        text = path.read_text()
        header = _HEADER.match(text)
        if header is None:
            raise Unusable(f"{path.name} must begin with Promise: and Tests:, then the diff")
        return cls(
            name=f"{path.parent.name}/{path.stem}",
            path=path,
            promise=" ".join(header["promise"].split()),
            tests=tuple(shlex.split(header["tests"])),
            files=tuple(_PATCHED.findall(text)),
        )

    def is_named(self, names: Collection[str]) -> bool:
        """Return whether names include it, or its area."""
        return not {self.name, self.name.partition("/")[0]}.isdisjoint(names)

    def apply(self, root: Path, *, reverse: bool = False) -> None:
        """Change the sources in a folder. Raises Unusable if the patch does not fit them."""
        backwards = ["--reverse"] if reverse else []
        done = subprocess.run(
            ["git", "apply", *backwards, str(self.path)],
            cwd=root,
            # A folder inside of another repository would be taken for a part of it.
            env={"PATH": os.defpath, "GIT_CEILING_DIRECTORIES": str(root.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Unusable(done.stderr.strip())


def all_bugs() -> list[SeededBug]:
    """Return every bug, by area and name."""
    return [SeededBug.read(path) for path in sorted(_FOLDER.glob("*/*.patch"))]
