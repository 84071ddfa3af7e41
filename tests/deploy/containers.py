"""Images that are built and run by buildah and podman, in a storage of the tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cache import cache_folder
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
TOOLS = ("debootstrap", "buildah", "podman", "crun")
_STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{0}/graph"\nrunroot = "{0}/run"\n'
_HYBRID = Path("/sys/fs/cgroup/unified")


def missing_tools() -> list[str]:
    """Return what is needed to build a base and to run a container, and is not there."""
    missing = [name for name in TOOLS if shutil.which(name) is None]
    return missing if os.geteuid() == 0 else [*missing, "root"]


def run(*command: str | Path, seconds: float = 1200) -> str:
    """Run a command of containers with the storage of the tests; return its output."""
    done = subprocess.run(
        command,
        env=_environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done.stdout.strip()


def build(tag: str) -> None:
    """Build the image of the working tree, on a base of Debian's packages that is made once."""
    base = "localhost/fhirpub-base:local"
    if base not in run("buildah", "images", "--noheading", "--format", "{{.Name}}:{{.Tag}}"):
        made = run(ROOT / "scripts" / "image-base").splitlines()[-1]
        run("buildah", "tag", made, base)
    options = ["--format", "docker", "--layers", "--timestamp", "1700000000"]
    run("buildah", "build", *options, "--build-arg", f"BASE={base}", "--tag", tag, ROOT)


@dataclass(frozen=True, slots=True)
class Container:
    """A container that runs on the network of this machine."""

    name: str

    def run(self, *command: str) -> str:
        """Run a command in it and return its output."""
        return run(*_podman("exec", self.name, *command), seconds=60)

    def refuses(self, *command: str) -> bool:
        """Return whether a command in it fails."""
        run = [*_podman("exec", self.name, *command)]
        return (
            subprocess.run(run, env=_environment(), capture_output=True, check=False).returncode
            > 0
        )

    def inspect(self) -> dict[str, Any]:
        """Return what podman knows of it."""
        found: list[dict[str, Any]] = json.loads(run(*_podman("inspect", self.name)))
        return found[0]

    def stop(self) -> int:
        """Stop it by SIGTERM and return the status of its process."""
        run(*_podman("stop", "--time", "60", self.name), seconds=90)
        status: int = self.inspect()["State"]["ExitCode"]
        return status


@contextmanager
def running(
    image: str,
    name: str,
    settings: Mapping[str, str],
    *,
    options: Sequence[str] = (),
    command: Sequence[str] = (),
) -> Iterator[Container]:
    """Run an image with a read-only root file system; wait until its health check passes."""
    variables = [f"--env={key}={value}" for key, value in settings.items()]
    container = Container(name)
    # Without a cgroup and limits of its own: what a sandbox may not set is not what is tested.
    # Podman runs health checks by systemd, which is not everywhere: the test runs the command.
    free = ["--cgroups=disabled", "--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"]
    free += ["--network=host", "--no-healthcheck"]
    hard = [
        "--read-only",
        "--read-only-tmpfs=false",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
    ]
    all_options = [*free, *hard, *variables, *options]
    run(*_podman("run", "--detach", "--name", name, *all_options, image, *command))
    try:
        check = health_check(image)
        assert wait_until(lambda: not container.refuses(*check), seconds=60)
        yield container
    finally:
        run(*_podman("rm", "--force", "--volumes", name))


def health_check(image: str) -> list[str]:
    """Return the command of an image's health check."""
    found = json.loads(run("buildah", "inspect", "--type=image", image))
    command: list[str] = found["Docker"]["config"]["Healthcheck"]["Test"]
    assert command[0] == "CMD"
    return command[1:]


def _environment() -> dict[str, str]:
    folder = cache_folder() / "containers"
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "storage.conf"
    settings.write_text(_STORAGE.format(folder))
    return {
        "PATH": os.defpath + ":/usr/sbin:/sbin",
        "HOME": str(folder),
        "CONTAINERS_STORAGE_CONF": str(settings),
        "BUILDAH_ISOLATION": "chroot",
    }


def _podman(*arguments: str) -> list[str]:
    """Return a command of podman; where cgroups are mounted twice, which crun refuses, of one."""
    command = ["podman", "--cgroup-manager=cgroupfs", "--events-backend=file", *arguments]
    if not _HYBRID.is_dir():
        return command
    alone = 'umount "$0" && exec "$@"'
    return [
        "unshare",
        "--mount",
        "--propagation=private",
        "sh",
        "-c",
        alone,
        str(_HYBRID),
        *command,
    ]
