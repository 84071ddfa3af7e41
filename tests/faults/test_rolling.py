"""Processes of two releases over one store, as during a rolling deployment.

What one of them acknowledges, the other one has: nothing is lost, doubled or refused. With
FHIRPUB_TEST_FULL set, the oldest commit with the same schemas is tried as well.
"""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.receiver import Receiver
from tests.faults.other_releases import (
    newest_commit_with_other_schemas,
    oldest_commit_with_these_schemas,
    python_of,
    python_of_next_release,
)
from tests.faults.rolling import Traffic, integrator_of
from tests.faults.stores import mostly_on
from tests.rounds import ONLY_FULL
from tests.waiting import wait_until

_MIN_REPORTS = 5
_SECONDS = 4.0 if variable("FHIRPUB_TEST_FULL") else 1.0
_EVENTS_OF_A_REPORT = 2
"""It is registered and updated."""


class Deployment:
    """Services of two releases over one store; a context manager that ends both."""

    def __init__(self, folder: Path, store_url: str, *, old: str = "", new: str = "") -> None:
        """Take the interpreters of both releases; without one it is this release."""
        self._folder, self._url = folder, store_url
        (folder / "keys").write_bytes(base64.b64encode(bytes(32)))
        self.old, self.new = self._service("old", old), self._service("new", new)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self.old)
        self._stack.push(self.new.__exit__)
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def _service(self, name: str, python: str) -> ServiceProcess:
        folder = self._folder / name
        folder.mkdir()
        settings: dict[str, dict[str, Any]] = {
            "storage": {"url": self._url, "keys_file": str(self._folder / "keys")},
            "webhooks": {"allow_networks": ["127.0.0.1/32"], "lease_seconds": 2.0},
            "auth": {"issuer": "https://fhir.lab"},
        }
        if not python:
            return ServiceProcess(folder, settings=settings)
        return ServiceProcess(folder, settings=settings, python=python)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the sources of other releases."""
    return tmp_path_factory.mktemp("releases")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@mostly_on("sqlite")
@pytest.mark.parametrize(
    "commit",
    [
        pytest.param(newest_commit_with_other_schemas, id="other-schemas"),
        pytest.param(
            oldest_commit_with_these_schemas,
            id="these-schemas",
            marks=ONLY_FULL,
        ),
    ],
)
def test_an_older_commit_is_replaced_while_clients_publish(
    commit: Callable[[], str],
    store_url: str,
    tmp_path: Path,
    releases: Path,
    receiver: Receiver,
) -> None:
    """If a change of a schema must break this, the changelog asks to stop all older processes."""
    python = python_of(commit(), releases)
    with Deployment(tmp_path, store_url, old=python) as deployment:
        replace_old_by_new(deployment, receiver)
        if commit is oldest_commit_with_these_schemas:  # the way back is open
            deployment.old.start()
            assert readiness(deployment.old) == HTTPStatus.OK


def replace_old_by_new(deployment: Deployment, receiver: Receiver) -> None:
    """Start the new release under load, serve with both, stop the old one, and compare all."""
    old, new = deployment.old, deployment.new
    lab = integrator_of(old)
    endpoint = ("endpoint", "add", "--tenant", lab.tenant.id, "--url", receiver.url)
    old.command(*endpoint, "--event", "*")
    with Traffic(lab, {"old": old}, prefix="before") as before:
        new.start()
        publish_for_a_while(before)
    with Traffic(lab, {"old": old, "new": new}, prefix="both") as both:
        publish_for_a_while(both)
    old.terminate()
    assert old.wait() == 0
    for traffic in (before, both):
        assert traffic.surprises == []
        traffic.check(new)
    check_events(receiver, len(before.updated) + len(both.updated))


def publish_for_a_while(traffic: Traffic) -> None:
    """Let clients publish for some time, and longer on a slow machine."""
    time.sleep(_SECONDS)
    assert wait_until(lambda: len(traffic.updated) > _MIN_REPORTS or traffic.surprises != [])


def check_events(receiver: Receiver, reports: int) -> None:
    """Assert that each event of these reports arrives, and none twice."""
    wait_until(lambda: len(receiver.received) >= reports * _EVENTS_OF_A_REPORT, seconds=60)
    ids = Counter(one.headers["webhook-id"] for one in receiver.received)
    assert len(ids) == reports * _EVENTS_OF_A_REPORT
    assert set(ids.values()) == {1}


@mostly_on("mongodb")
def test_a_process_starts_again_on_a_store_that_a_newer_release_has_upgraded_for_both(
    store_url: str, tmp_path: Path, releases: Path
) -> None:
    python = python_of_next_release(releases, usable=True)
    with Deployment(tmp_path, store_url, new=python) as deployment:
        lab = integrator_of(deployment.old)
        deployment.new.start()
        deployment.old.kill()
        deployment.old.start()
        with Traffic(lab, {"old": deployment.old, "new": deployment.new}) as both:
            publish_for_a_while(both)

        assert both.surprises == []
        both.check(deployment.new)
        both.check(deployment.old)


@mostly_on("sqlite")
def test_a_process_that_cannot_use_an_upgraded_store_is_not_ready_and_does_not_start_again(
    store_url: str, tmp_path: Path, releases: Path
) -> None:
    python = python_of_next_release(releases, usable=False)
    with Deployment(tmp_path, store_url, new=python) as deployment:
        old, new = deployment.old, deployment.new
        assert readiness(old) == HTTPStatus.OK
        new.start()

        # For a second a probe is answered as the last one.
        assert wait_until(lambda: readiness(old) == HTTPStatus.SERVICE_UNAVAILABLE)
        assert readiness(new) == HTTPStatus.OK
        said = "of a newer release, this release uses"
        assert wait_until(lambda: said in old.errors.read_text())
        old.terminate()
        assert old.wait() == 0
        with pytest.raises(RuntimeError, match="start the newer release; only a backup leads"):
            old.start()


def readiness(service: ServiceProcess) -> int:
    return service.request("GET", "/health/ready").status
