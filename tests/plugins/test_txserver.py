"""Codes are looked up at a terminology server, which delays and refuses no registration."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.testing.plugin_contracts import CodeSourceContract
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub_txserver.client import TerminologyServer
from fhirpub_txserver.settings import ServerSettings
from tests.bodies import register_body
from tests.plugins.terminology import (
    NEVER,
    PATIENCE_SECONDS,
    SYSTEM,
    Server,
    serving,
    unhurried,
)
from tests.ports import free_port
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    """The server that the service asks."""
    with serving() as server:
        yield server


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


class TestTerminologyServer(CodeSourceContract):
    known = (SYSTEM, "glu")
    denied = (SYSTEM, "glucose")

    @pytest.fixture
    def source(self, server: Server) -> TerminologyServer:
        return TerminologyServer(unhurried(server))

    def test_an_answer_is_kept_and_then_asked_again(self, server: Server) -> None:
        now = [0.0]
        settings = unhurried(server, cache_hours=1.0)
        source = TerminologyServer(settings, clock=lambda: now[0])

        assert self.learned(source, *self.known) is True
        assert [source.knows(*self.known) for _ in range(10)] == [True] * 10
        assert len(server.asked) == 1
        now[0] = 3601.0
        assert source.knows(*self.known) is True  # until there is another answer

        assert wait_until(lambda: len(server.asked) == 2, seconds=30.0)

    def test_a_server_that_fails_is_asked_again_later_and_takes_nothing_back(
        self, server: Server
    ) -> None:
        now = [0.0]
        source = TerminologyServer(unhurried(server), clock=lambda: now[0])
        server.status = 500
        source.knows(*self.known)
        assert wait_until(lambda: len(server.asked) == 1, seconds=30.0)
        server.status = 200

        def knows_later() -> bool:
            now[0] += 61.0
            return source.knows(*self.known) is True

        assert wait_until(knows_later, seconds=30.0)

    def test_a_server_that_hangs_delays_nothing(self, server: Server) -> None:
        source = TerminologyServer(unhurried(server))
        begun = time.monotonic()

        assert source.knows(SYSTEM, NEVER) is None
        assert time.monotonic() - begun < PATIENCE_SECONDS

    def test_only_the_systems_that_are_named_are_asked_for(self, server: Server) -> None:
        settings = unhurried(server, systems=[SYSTEM], token="secret-token")
        source = TerminologyServer(settings)

        source.knows("http://loinc.org", "718-7")
        self.learned(source, *self.known)

        ((path, headers),) = server.asked
        assert path.startswith("/r4/CodeSystem/$validate-code?url=https%3A%2F%2Fcodes.example")
        assert headers["Authorization"] == "Bearer secret-token"


@pytest.fixture(scope="module")
def service(
    running: Server, store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    config = Config(
        plugins=PluginsConfig(enabled=["diagnosticreport", "txserver"]),
        by_plugin={"txserver": unhurried(running)},
    )
    folder = tmp_path_factory.mktemp("txserver")
    with RunningService(folder, config=config, store_url=store_url("txserver")) as made:
        yield made


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    return service.integrator()


def register(lab: Integrator, value: str, code: str) -> Answer:
    concept = {"coding": [{"system": SYSTEM, "code": code}], "text": "Glucose"}
    answer = lab.register(register_body(value, code=concept))
    assert answer.status == 201, answer.body
    return answer


def remark_on(lab: Integrator, value: str, code: str) -> str:
    """Return the kind of the remark on a code, empty if there is none."""
    answer = register(lab, value, code)
    entries = answer.json["parameter"]
    issues = [
        issue for one in entries if one["name"] == "issues" for issue in one["resource"]["issue"]
    ]
    ours = [issue for issue in issues if ".resource.code" in str(issue.get("expression"))]
    return ours[0]["details"]["coding"][0]["code"] if ours else ""


def test_a_code_that_the_server_knows_gets_no_remark_once_it_has_answered(
    lab: Integrator, running: Server
) -> None:
    running.hangs = 0.5
    assert remark_on(lab, "R-0", "hb") == "code-system-unknown"
    running.hangs = 0.0
    numbers = iter(range(1, 1_000))

    assert wait_until(lambda: remark_on(lab, f"R-{next(numbers)}", "hb") == "", seconds=30.0)


def test_a_code_that_the_server_denies_gets_a_warning(lab: Integrator) -> None:
    numbers = iter(range(1_000))

    def warned() -> bool:
        return remark_on(lab, f"R-{next(numbers)}", "glucose") == "code-unknown"

    assert wait_until(warned, seconds=30.0)


def test_a_server_that_hangs_delays_no_registration(lab: Integrator) -> None:
    begun = time.monotonic()

    for number in range(5):
        register(lab, f"R-{number}", NEVER)

    assert time.monotonic() - begun < PATIENCE_SECONDS


def test_without_a_server_codes_are_unchecked() -> None:
    source = TerminologyServer(ServerSettings(url=f"http://127.0.0.1:{free_port()}"))

    assert source.knows(SYSTEM, "glu") is None
