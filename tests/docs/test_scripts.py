"""The scripts recover a folder in which one of them was interrupted."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with the scripts and an empty package, in a folder with a blank in its name."""
    clone = tmp_path / "a clone"
    shutil.copytree(SCRIPTS, clone / "scripts")
    (clone / "plugins").mkdir()
    (clone / "setup.py").write_text("")
    return clone


def test_an_environment_without_pip_is_created_again(clone: Path) -> None:
    # This is the state after an interruption while pip is installed.
    python, made = clone / "python", clone / ".venv" / "bin" / "python"
    made.parent.mkdir(parents=True)
    made.write_text("#!/bin/sh\nexit 1\n")
    made.chmod(0o755)
    python.write_text('#!/bin/sh\n[ "$1" = -c ] || ln -sf /bin/true "$3/bin/python"\n')
    python.chmod(0o755)

    done = subprocess.run(
        ["bash", "-c", "set -eu; source scripts/setup.sh; prepare ''"],
        cwd=clone,
        env={"PATH": os.defpath, "PYTHON": "./python"},
        capture_output=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert (clone / ".venv" / "stamp").exists()


@pytest.mark.parametrize(
    ("message", "status", "is_refused", "is_unpinned"),
    [
        ("", 0, False, False),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            1,
            True,
            False,
        ),
        ("ERROR: No matching distribution found for a==1", 1, False, True),
    ],
)
def test_a_package_with_another_hash_ends_the_run_and_one_that_does_not_exist_is_named(
    tmp_path: Path, message: str, status: int, *, is_refused: bool, is_unpinned: bool
) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\necho '{message}' >&2\nexit {status}\n")
    python.chmod(0o755)
    text = (SCRIPTS / "test").read_text()
    function = text[text.index("install_pinned() {") :].partition("\n}\n")[0] + "\n}\n"
    script = f"set -eu\nroot=. away={tmp_path} python=true\n{function}install_pinned"

    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False)

    assert (done.returncode != 0) is is_refused
    assert (tmp_path / "unpinned").exists() is is_unpinned
