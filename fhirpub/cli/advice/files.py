"""Who can read the files of the service, whose they are, and on what they are."""

from __future__ import annotations

import os
import pwd
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from fhirpub.app.stores import key_file, sqlite_file, uses_mongodb
from fhirpub.cli.advice.finding import Finding, warning
from fhirpub.cli.advice.mongodb import certificate_in, password_in
from fhirpub.config.loader import variable
from fhirpub.config.settings import Config

_BESIDE = ("", "-wal", "-shm")
_ACCESS_OF_OTHERS = 0o066
"""Permission of the group and of others to read or to write."""
_READ_BY_OTHERS, _WRITE_BY_OTHERS = 0o004, 0o002
_LEAST_FREE_BYTES = 1024**3
_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")
_OF_NETWORKS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs", "ceph", "9p"}
_OF_NETWORKS |= {"glusterfs", "fuse.glusterfs", "lustre", "fuse.s3fs", "virtiofs"}
_LOST_AT_RESTART = {"tmpfs", "ramfs", "overlay"}


def advise_on_settings_file(config: Config, file: Path) -> Iterator[Finding]:
    """Yield warnings about the access that other users have to a configuration file."""
    mode = file.stat().st_mode if file.exists() else 0
    if mode & _WRITE_BY_OTHERS:
        text = f"{file} can be changed by all users (mode {mode & 0o777:03o}): chmod o-w {file}"
        yield warning("configuration", text)
    from_file = uses_mongodb(config) and not variable("FHIRPUB_STORAGE__URL")
    if mode & _READ_BY_OTHERS and from_file and password_in(config.storage.url):
        text = (
            f"{file} has the password of the store and can be read by all users (mode"
            f" {mode & 0o777:03o}): chmod o-r {file}, or name the URL in FHIRPUB_STORAGE__URL"
        )
        yield warning("configuration", text)
    yield from _certificate(config)
    yield from _checkpoints(config)


def _certificate(config: Config) -> Iterator[Finding]:
    """Check the private key with which the service identifies itself to MongoDB."""
    path = Path(certificate_in(config.storage.url)) if uses_mongodb(config) else Path()
    if path.is_file() and path.stat().st_mode & _READ_BY_OTHERS:
        yield warning(
            "store", f"{path}, a private key, can be read by all users: chmod o-r {path}"
        )


def _checkpoints(config: Config) -> Iterator[Finding]:
    """Check that checkpoints can be appended: a service that runs would only log that."""
    name = config.audit.checkpoints_file
    path = Path(name)
    where = path if path.exists() else path.parent
    if config.audit.enabled and name and not os.access(where, os.W_OK):
        text = (
            f"[audit] checkpoints_file: {path} cannot be written by this user: create its folder,"
            " or give the service's user the right to append"
        )
        yield warning("configuration", text)


def advise_on_store_files(config: Config, *, user: int | None = None) -> Iterator[Finding]:
    """Yield warnings about the files of a SQLite store; ``user`` is by default the current one."""
    file = sqlite_file(config)
    if file is None:
        return
    files = [file.with_name(file.name + end) for end in _BESIDE]
    for path in (file.parent, *files):
        mode = path.stat().st_mode if path.exists() else 0
        if mode & _ACCESS_OF_OTHERS:
            text = (
                f"{path} can be read or changed by other users (mode {mode & 0o777:03o}):"
                f" chmod go-rwx {path}"
            )
            yield warning("store", text)
    key = key_file(config)
    user = os.geteuid() if user is None else user
    for path in [*files, *([key] if key else [])]:
        if path.exists() and path.stat().st_uid != user:
            owner = _name_of(path.stat().st_uid)
            text = (
                f"{path} belongs to {owner}, and this command runs as {_name_of(user)}: run every"
                " command as the service's user, or the service cannot write what it leaves"
            )
            yield warning("store", text)


def advise_on_disk(
    config: Config, *, mounts: Path = _MOUNTS, free: int | None = None
) -> Iterator[Finding]:
    """Yield warnings about the file system of a SQLite store, and about its ``free`` bytes."""
    file = sqlite_file(config)
    if file is None or not file.parent.exists():
        return
    kind = file_system_of(file, mounts)
    if kind in _OF_NETWORKS:
        text = (
            f"{file} is on a network file system ({kind}), whose locks SQLite cannot rely on, so"
            " that the file may be damaged: move it to a local disk, or use MongoDB"
        )
        yield warning("store", text)
    if kind in _LOST_AT_RESTART and config.auth.environment == "production":
        text = (
            f"{file} is on a file system ({kind}) that is lost with its machine or container:"
            " mount a volume there"
        )
        yield warning("store", text)
    left = shutil.disk_usage(file.parent).free if free is None else free
    if left < _LEAST_FREE_BYTES:
        text = (
            f"the disk of {file} has {left // 1024**2} MiB left: when it is full every write gets"
            " 503: free some space"
        )
        yield warning("store", text)


def file_system_of(path: Path, mounts: Path = _MOUNTS) -> str:
    """Return the kind of the file system of a path (proc(5)); empty where it is not known."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    found, longest = "", -1
    for line in lines:
        fields = line.split(" ")
        point = Path(_ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[4]))
        # Of several that are mounted on one place the last is seen.
        if path.resolve().is_relative_to(point) and len(point.parts) >= longest:
            found, longest = fields[fields.index("-") + 1], len(point.parts)
    return found


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"the user {user}"
