"""Warnings about the files of the service."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.cli.advice.files import (
    advise_on_disk,
    advise_on_settings_file,
    advise_on_store_files,
    file_system_of,
)
from fhirpub.config.audit import AuditConfig
from fhirpub.config.settings import Config
from tests.unit.cli.advice.configs import production

MONGODB = "mongodb://fhirpub:secret@a.lab/fhirpub?tls=true"


@pytest.mark.parametrize("name", ["fhirpub.db", "fhirpub.db-wal", "fhirpub.db-shm", ""])
@pytest.mark.parametrize("mode", [0o740, 0o720, 0o704, 0o702])
def test_a_file_or_folder_of_the_store_that_others_can_read_or_write_is_a_warning(
    tmp_path: Path, name: str, mode: int
) -> None:
    config = stored_in(tmp_path)
    path = tmp_path / "data" / name
    path.chmod(mode)

    (warning,) = advise_on_store_files(config)

    assert (warning.subject, warning.level) == ("store", "warning")
    assert warning.text.startswith(f"{path} can be read or changed by other users (mode {mode:o})")
    assert warning.text.endswith(f": chmod go-rwx {path}")


def test_files_that_only_the_user_of_the_service_can_read_are_no_warning(tmp_path: Path) -> None:
    config = stored_in(tmp_path)
    (tmp_path / "data").chmod(0o711)

    assert list(advise_on_store_files(config)) == []


def test_a_store_file_with_a_lax_mode_is_a_warning_of_the_command(
    run: Any, tmp_path: Path
) -> None:
    run("check")
    (tmp_path / "fhirpub-data" / "fhirpub.db").chmod(0o644)

    done = run("check")

    path = "fhirpub-data/fhirpub.db"
    assert done.returncode == 0
    assert f"warning  store          {path} can be read or changed by other" in done.stdout


def stored_in(folder: Path) -> Config:
    """Return the settings of a store whose three files only their user can read."""
    (folder / "data").mkdir(mode=0o700)
    for name in ("fhirpub.db", "fhirpub.db-wal", "fhirpub.db-shm"):
        (folder / "data" / name).touch(mode=0o600)
    return production(f"sqlite:///{folder}/data/fhirpub.db")


def test_a_store_file_of_another_user_is_a_warning_with_both_names(tmp_path: Path) -> None:
    config = stored_in(tmp_path)

    findings = [*advise_on_store_files(config, user=os.geteuid() + 70_000)]

    assert len(findings) == 3
    assert f"and this command runs as the user {os.geteuid() + 70_000}: run" in findings[0].text
    assert [*advise_on_store_files(config, user=os.geteuid())] == []


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    path = tmp_path / "f.toml"
    path.touch(mode=0o600)
    return path


@pytest.mark.parametrize(
    ("url", "mode", "words"),
    [
        (MONGODB, 0o604, "has the password of the store and can be read by all users (mode 604)"),
        (MONGODB, 0o602, "can be changed by all users (mode 602): chmod o-w"),
        ("sqlite:///f.db", 0o602, "can be changed by all users (mode 602): chmod o-w"),
    ],
)
def test_a_settings_file_that_all_can_change_or_that_has_a_password_is_a_warning(
    settings_file: Path, url: str, mode: int, words: str
) -> None:
    settings_file.chmod(mode)

    (finding,) = advise_on_settings_file(production(url), settings_file)

    assert finding.level == "warning"
    assert words in finding.text
    assert "secret" not in finding.text


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        (MONGODB, 0o640),
        ("sqlite:///f.db", 0o644),
        ("mongodb://fhirpub@a.lab/fhirpub?tls=true", 0o644),
    ],
)
def test_a_settings_file_without_a_password_or_of_a_group_is_no_warning(
    settings_file: Path, url: str, mode: int
) -> None:
    settings_file.chmod(mode)

    assert list(advise_on_settings_file(production(url), settings_file)) == []


def test_a_password_from_the_environment_does_not_make_the_file_a_secret(
    settings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_file.chmod(0o644)
    monkeypatch.setenv("FHIRPUB_STORAGE__URL", MONGODB)

    assert list(advise_on_settings_file(production(MONGODB), settings_file)) == []


def test_a_private_key_for_mongodb_that_all_can_read_is_a_warning(
    settings_file: Path, tmp_path: Path
) -> None:
    key = tmp_path / "client.pem"
    key.touch(mode=0o600)
    key.chmod(0o644)

    (finding,) = advise_on_settings_file(
        production(f"mongodb://a.lab/x?tls=true&tlsCertificateKeyFile={key}"), settings_file
    )

    assert finding.text == f"{key}, a private key, can be read by all users: chmod o-r {key}"


@pytest.mark.parametrize(("folder", "warned"), [("here", False), ("nowhere", True)])
def test_a_file_of_checkpoints_that_cannot_be_written_is_a_warning(
    settings_file: Path, tmp_path: Path, folder: str, *, warned: bool
) -> None:
    (tmp_path / "here").mkdir()
    audit = AuditConfig(checkpoints_file=str(tmp_path / folder / "checkpoints.jsonl"))

    findings = [*advise_on_settings_file(replace(production(), audit=audit), settings_file)]

    assert [finding.level for finding in findings] == ["warning"] * warned


MOUNTS = """22 1 0:21 / / rw,relatime - ext4 /dev/sda1 rw
23 22 0:22 / {folder} rw,relatime shared:1 - {kind} server:/x rw
24 22 0:23 / {folder}2 rw,relatime - tmpfs tmpfs rw
"""


def mounts_with(folder: Path, kind: str) -> Path:
    """Return a file as /proc/self/mountinfo would be with a file system on a folder."""
    path = folder / "mountinfo"
    path.write_text(MOUNTS.format(folder=folder / "data", kind=kind))
    return path


NETWORKS = (
    *("nfs", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs", "ceph", "9p", "glusterfs"),
    *("fuse.glusterfs", "lustre", "fuse.s3fs", "virtiofs"),
)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("nfs4", "is on a network file system (nfs4), whose locks SQLite cannot rely on"),
        *((kind, f"is on a network file system ({kind})") for kind in NETWORKS),
        ("ramfs", "is on a file system (ramfs) that is lost"),
        ("overlay", "is on a file system (overlay) that is lost with its machine or container"),
        ("tmpfs", "is on a file system (tmpfs) that is lost"),
        ("xfs", ""),
    ],
)
def test_a_file_system_that_loses_or_damages_the_store_is_a_warning(
    tmp_path: Path, kind: str, words: str
) -> None:
    config = stored_in(tmp_path)

    findings = [*advise_on_disk(config, mounts=mounts_with(tmp_path, kind), free=2**40)]

    assert [finding.level for finding in findings] == ["warning"] * bool(words)
    assert all(words in finding.text for finding in findings)


def test_the_file_system_of_a_path_is_that_of_the_nearest_place_above_it(tmp_path: Path) -> None:
    mounts = mounts_with(tmp_path, "nfs")

    assert file_system_of(tmp_path / "data" / "f.db", mounts) == "nfs"
    assert file_system_of(tmp_path / "data3" / "f.db", mounts) == "ext4"
    assert file_system_of(tmp_path / "data" / "f.db", tmp_path / "absent") == ""


def test_a_disk_that_is_nearly_full_is_a_warning(tmp_path: Path) -> None:
    config, mounts = stored_in(tmp_path), mounts_with(tmp_path, "ext4")

    (finding,) = advise_on_disk(config, mounts=mounts, free=300 * 1024**2)

    assert "has 300 MiB left: when it is full every write gets 503" in finding.text
    assert [*advise_on_disk(config, mounts=mounts, free=1024**3 - 1)] != []
    assert [*advise_on_disk(config, mounts=mounts, free=1024**3)] == []


def test_of_file_systems_on_one_place_the_last_one_is_seen_whatever_its_name(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "a b\tc\\040"
    place = str(folder).replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011")
    lines = ["22 1 0:21 / / rw - ext4 /dev/sda1 rw"]
    lines += [f"23 22 0:22 / {place} rw shared:1 - {kind} x rw" for kind in ("tmpfs", "nfs4")]
    (tmp_path / "mountinfo").write_text("\n".join(lines))

    assert file_system_of(folder / "f.db", tmp_path / "mountinfo") == "nfs4"


def test_checkpoints_are_looked_at_only_while_there_is_an_audit_trail(
    settings_file: Path, tmp_path: Path
) -> None:
    audit = AuditConfig(enabled=False, checkpoints_file=str(tmp_path / "nowhere" / "f"))

    assert [*advise_on_settings_file(replace(production(), audit=audit), settings_file)] == []


def test_a_key_of_another_user_is_a_warning_like_the_store(tmp_path: Path) -> None:
    config = stored_in(tmp_path)
    (tmp_path / "data" / "fhirpub.webhook-keys").touch(mode=0o600)

    findings = [*advise_on_store_files(config, user=os.geteuid() + 70_000)]

    assert [finding.text.partition(" belongs to ")[0] for finding in findings] == [
        f"{tmp_path}/data/fhirpub.{end}" for end in ("db", "db-wal", "db-shm", "webhook-keys")
    ]


@pytest.mark.parametrize(("environment", "warned"), [("production", True), ("sandbox", False)])
def test_a_trial_may_be_lost_with_its_container(
    tmp_path: Path, environment: Any, *, warned: bool
) -> None:
    config = stored_in(tmp_path)
    config = replace(config, auth=replace(config.auth, environment=environment))

    findings = [*advise_on_disk(config, mounts=mounts_with(tmp_path, "overlay"), free=2**40)]

    assert bool(findings) is warned
