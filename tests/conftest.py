"""Fixtures that tests share: a service, and replica sets of MongoDB.

Each test creates tenants or a database of its own.
"""

from __future__ import annotations

import gc
import io
import re
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import structlog
from hypothesis import HealthCheck, settings
from pymongo import MongoClient
from xdist.scheduler import LoadFileScheduling

from fhirpub.config.loader import variable
from fhirpub.runtime.clock import now_ms
from fhirpub.runtime.logging import configure
from fhirpub.testing.service import Integrator, RunningService
from tests.mongod.replica_set import ProxiedSet, ReplicaSet
from tests.mongod.server_logs import story
from tests.node.packages import Scripts, scripts_in, skipping_without_packages


def pytest_configure() -> None:
    """Let Ctrl-C reach the processes that tests start, and Hypothesis take its time.

    A shell starts a background job with SIGINT ignored, and every child would inherit that.
    """
    settings.register_profile(
        "round",
        max_examples=300 if variable("FHIRPUB_TEST_FULL") else 30,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],  # a slow machine fails no test
    )
    settings.load_profile("round")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Run the same tests against the service on another store."""
    parser.addoption(
        "--store",
        choices=["sqlite", "mongodb"],
        default="sqlite",
        help="what the service keeps everything in that the tests over HTTP share",
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest files first, so that no process is left alone with one at the end."""
    places = {file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda each: places.get(each.nodeid.partition("::")[0], len(places)))


def pytest_collection_finish() -> None:
    """Keep what is known of twenty thousand tests out of each search for garbage."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """Hand out whole files, and those of `tests/faults` one after another to one process.

    Each of these runs up to three servers and several processes, kills some, and measures how long
    the others take to recover: two of them at the same time would disturb each other.
    """
    if config.getoption("dist") != "loadfile":
        return None
    return _FaultsInTurn(config, log)


class _FaultsInTurn(LoadFileScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return _FAULTS if file.startswith(_FAULTS) else file


_FAULTS = "tests/faults/"
LONGEST = (  # from a minute down to a quarter of one
    "tests/generators/test_generated_clients.py",
    "tests/deploy/test_image.py",
    "tests/storage/mongodb/test_contract.py",
    "tests/faults/test_stop.py",
    "tests/kit/test_plugin_guide.py",
    "tests/faults/test_mongodb_failover.py",
    "tests/api/test_openapi.py",
    "tests/faults/test_rolling.py",
    "tests/unit/storage/test_transfer.py",
    "tests/unit/runtime/test_process_pool.py",
    "tests/faults/test_webhooks.py",
    "tests/faults/test_kill.py",
    "tests/faults/test_erasure.py",
    "tests/api/test_memory.py",
    "tests/api/test_third_party_reports.py",
    "tests/api/test_json_input.py",
    "tests/hl7v2/test_listen.py",
    "tests/faults/test_audit.py",
    "tests/storage/mongodb/test_query_plans.py",
    "tests/administration/test_commands.py",
    "tests/faults/test_kill_results.py",
    "tests/hl7v2/test_delivery.py",
    "tests/faults/test_mongodb_outcomes.py",
    "tests/storage/mongodb/test_servers.py",
    "tests/expensive/test_search.py",
    "tests/storage/test_audit_manipulations.py",
    "tests/api/test_third_party_panels.py",
    "tests/unit/fhir/test_schema_parity.py",
    "tests/webhooks/test_sending.py",
    "tests/storage/mongodb/test_outcomes.py",
    "tests/api/test_in_turn.py",
    "tests/storage/test_sqlite.py",
    "tests/webhooks/test_sharing.py",
    "tests/faults/test_quotas.py",
    "tests/api/test_quotas.py",
    "tests/api/test_traces.py",
    "tests/unit/cli/test_check.py",
    "tests/unit/fhir/test_schema_plain.py",
    "tests/faults/test_broken_stores.py",
    "tests/unit/cli/erasure/test_erase.py",
    "tests/faults/test_races.py",
    "tests/api/test_logs.py",
    "tests/unit/fhir/batch/test_splitter.py",
    "tests/storage/test_migrating_service.py",
    "tests/faults/test_kill_batch.py",
    "tests/api/test_register_fuzz.py",
    "tests/api/test_compute_processes.py",
    "tests/hl7v2/test_listen_kills.py",
    "tests/unit/cli/demo/test_command.py",
    "tests/unit/cli/webhooks/listen/test_command.py",
    "tests/faults/test_webhooks_listen.py",
    "tests/faults/test_sinks.py",
    "tests/faults/test_linearizability.py",
    "tests/faults/test_publish_folder.py",
    "tests/faults/test_publish_watch.py",
    "tests/amqp/test_sink.py",
)


class _LoggedErrors(io.StringIO):
    """Keeps the latest lines of errors, and drops all others."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=20)

    def write(self, text: str) -> int:
        self.lines.extend(line for line in text.splitlines() if _IS_ERROR.search(line))
        return len(text)


_IS_ERROR = re.compile('"level": ?"(error|critical)"')
_errors = _LoggedErrors()


_log_settings: dict[str, Any] = {}


@pytest.fixture(autouse=True, scope="session")
def quiet() -> Iterator[None]:
    """Keep log lines out of the output, whatever thread they come from.

    No logger keeps the settings of its first line: those of a command that ran in this process
    would hide its lines from the tests behind it.
    """
    configure_for_good = structlog.configure

    def configure_each_line(**settings: Any) -> None:
        configure_for_good(**settings | {"cache_logger_on_first_use": False})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", configure_each_line)
        configure(level="debug", form="json", stream=_errors)
        _log_settings.update(structlog.get_config())
        yield
        _log_settings.clear()
        configure(level="error", form="json")


def pytest_runtest_setup() -> None:
    """Forget the errors that other tests have caused, and the log settings of their commands."""
    _errors.lines.clear()
    if _log_settings and structlog.get_config()["processors"] is not _log_settings["processors"]:
        structlog.configure(**_log_settings)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what a service in the process of a failed test has logged as errors."""
    report = yield
    if report.failed and _errors.lines:
        report.sections.append(("Logged errors", "\n".join(_errors.lines)))
    return report


@pytest.fixture(scope="session")
def store_url(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Map the name of a database to a store's URL; "" means a file in the service's folder."""
    if request.config.getoption("--store") == "sqlite":
        return lambda _name: ""
    replica_set: ReplicaSet = request.getfixturevalue("replica_set")
    return replica_set.url


@pytest.fixture(scope="session")
def service(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    """The service with its default configuration."""
    folder = tmp_path_factory.mktemp("service")
    with RunningService(folder, store_url=store_url("service")) as running:
        yield running


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    """A client of a new tenant."""
    return service.integrator()


@pytest.fixture(scope="session")
def replica_set(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicaSet]:
    """A set of one member that no test stops; tests that stop members use the other sets."""
    with ReplicaSet(tmp_path_factory.mktemp("replica-set")) as running:
        yield running


@pytest.fixture(scope="session")
def mongodb(request: pytest.FixtureRequest) -> str:
    """The address of MongoDB for tests that break nothing."""
    return variable("FHIRPUB_TEST_MONGODB_URL") or request.getfixturevalue("replica_set").url()


@pytest.fixture
def mongodb_url(mongodb: str) -> Iterator[str]:
    """A database of one test, as a URL that ends with its name and options."""
    database = f"test_{uuid4().hex}"
    yield urlsplit(mongodb)._replace(path=f"/{database}").geturl()
    with MongoClient[dict[str, object]](mongodb) as client:
        client.drop_database(database)


@pytest.fixture(scope="module")
def three_members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicaSet]:
    """The replica set behind ``set_of_three``."""
    with ReplicaSet(tmp_path_factory.mktemp("set-of-three"), size=3) as running:
        yield running


@pytest.fixture
def set_of_three(three_members: ReplicaSet) -> Iterator[ReplicaSet]:
    """A set of three members that a test may stop, pause and kill.

    If the test fails, its output includes what the members logged.
    """
    begun = now_ms()
    yield three_members
    print(story(three_members.members, since=begun))  # noqa: T201
    three_members.restore()


@pytest.fixture(scope="module")
def member_behind_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedSet]:
    """The replica set behind ``proxied_set``."""
    with ProxiedSet(tmp_path_factory.mktemp("proxied-set")) as running:
        yield running


@pytest.fixture
def proxied_set(member_behind_proxy: ProxiedSet) -> Iterator[ProxiedSet]:
    """A set of one member behind a proxy; a test may break its connections, and stop it."""
    yield member_behind_proxy
    member_behind_proxy.restore()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Scripts:
    """FHIR clients in JavaScript."""
    with skipping_without_packages():
        return scripts_in(tmp_path_factory.mktemp("node"))
