"""The text files of the project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXTS = {".cfg", ".in", ".json", ".md", ".mjs", ".py", ".sh", ".toml", ".typed", ".txt", ""}
GENERATED = {"build", "dist", "fhirpub-data", "fhirpub-demo", "__pycache__"}


def files() -> Iterator[Path]:
    """Yield every text file of the project, except files that tools have created."""
    for path in sorted(ROOT.rglob("*")):
        folders = path.relative_to(ROOT).parts[:-1]
        foreign = any(
            name in GENERATED
            or name.endswith(".egg-info")
            or (name.startswith(".") and name != ".ci")
            for name in folders
        )
        if path.name == ".git":  # a file in a second worktree, which names the first
            continue
        if path.is_file() and not foreign and path.suffix in TEXTS:
            yield path
