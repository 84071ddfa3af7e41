"""Metrics are served on a port of their own, in every process that serves or sends."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Answer
from tests.ports import free_port, free_ports
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """Two workers: their metrics are on the configured port and on the next one."""
    settings = {"metrics": {"port": free_ports(2)}}
    folder = tmp_path_factory.mktemp("metrics-page")
    with ServiceProcess(folder, workers=2, settings=settings) as running:
        yield running


def asked(
    port: int, path: str = "/metrics", *, method: str = "GET", headers: Mapping[str, str] = {}
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, headers=dict(headers))
        response = connection.getresponse()
        read = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, read, response.read())
    finally:
        connection.close()


def answers(port: int) -> bool:
    try:
        return asked(port).status == 200
    except OSError:
        return False


def misses(port: int) -> float:
    """Return the number of requests to unknown paths."""
    found = re.search(
        rb'total{method="GET",route="none",status="404"} ([0-9.]+)', asked(port).body
    )
    return float(found[1]) if found else 0.0


def test_each_worker_serves_its_own_numbers_on_a_port_of_its_own(process: ServiceProcess) -> None:
    ports = [process.config.metrics.port, process.config.metrics.port + 1]
    before = [misses(port) for port in ports]

    process.request("GET", "/nowhere")

    after = [misses(port) for port in ports]
    assert sorted(now - then for now, then in zip(after, before, strict=True)) == [0, 1]


def test_a_worker_that_replaces_one_takes_its_port(process: ServiceProcess) -> None:
    second = process.config.metrics.port + 1
    first, other = process.workers

    os.kill(other, signal.SIGKILL)

    assert wait_until(lambda: len({*process.workers} - {first, other}) == 1)
    assert wait_until(lambda: answers(second))
    assert answers(process.config.metrics.port)


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/plain;version=abc", "text/plain; version=0.0.4; charset=utf-8"),
        (
            "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.3",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
    ],
)
def test_the_format_is_the_one_that_is_accepted(
    process: ServiceProcess, accept: str, media_type: str
) -> None:
    answer = asked(process.config.metrics.port, headers={"Accept": accept})

    assert (answer.status, answer.headers["content-type"]) == (200, media_type)
    assert answer.body.endswith(b"# EOF\n") == ("openmetrics" in media_type)


def test_head_returns_the_length_of_the_page_and_no_more(process: ServiceProcess) -> None:
    answer = asked(process.config.metrics.port, method="HEAD")

    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["content-length"]) > 1000


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/metrics"), ("GET", "/"), ("GET", "/metrics/"), ("GET", "/fhir/r4/metadata")],
)
def test_nothing_else_is_there(process: ServiceProcess, method: str, path: str) -> None:
    assert asked(process.config.metrics.port, path, method=method).status == 404


@pytest.mark.parametrize("announced", ["Content-Length: 10", "Transfer-Encoding: chunked"])
def test_a_body_that_never_comes_is_not_waited_for(
    process: ServiceProcess, announced: str
) -> None:
    with socket.create_connection(("127.0.0.1", process.config.metrics.port)) as scraping:
        scraping.settimeout(60)
        scraping.sendall(f"GET /metrics HTTP/1.1\r\nHost: x\r\n{announced}\r\n\r\n".encode())
        answer = http.client.HTTPResponse(scraping)
        answer.begin()

        assert answer.status == 200
        assert answer.read().startswith(b"# HELP")
        assert scraping.recv(1) == b""


def test_clients_of_the_service_find_no_metrics(process: ServiceProcess) -> None:
    assert process.request("GET", "/metrics").status == 404


def test_a_process_that_only_sends_serves_them_too(process: ServiceProcess) -> None:
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-m", "fhirpub", "dispatch", "--config", str(process.file)],
        env={"FHIRPUB_METRICS__PORT": str(port)},
        stdout=subprocess.PIPE,
    ) as sending:
        assert sending.stdout is not None
        line = sending.stdout.readline()
        page = asked(port).body
        sending.terminate()

    assert line == b"fhirpub sends webhooks\n"
    assert b"fhirpub_webhook_relay_leading" in page
    assert b"fhirpub_requests_total" not in page


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_that_is_taken_ends_the_start_with_the_name_of_the_setting(
    tmp_path: Path, workers: int
) -> None:
    first = free_ports(workers)
    with socket.create_server(("127.0.0.1", first + workers - 1)):
        service = ServiceProcess(tmp_path, workers=workers, settings={"metrics": {"port": first}})
        with pytest.raises(RuntimeError):
            service.start()

    place = f"127.0.0.1 port {first + workers - 1}"
    in_use = f": [metrics] port: cannot listen on {place}: Address already in use\n"
    assert service.status == 1
    assert in_use in service.errors.read_text()


def test_a_start_whose_metrics_port_is_taken_creates_no_store(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        service = ServiceProcess(tmp_path, settings={"metrics": {"port": port}})
        with pytest.raises(RuntimeError):
            service.start()

    assert not (tmp_path / "fhirpub.db").exists()


def test_a_port_of_the_command_line_that_is_that_of_the_metrics_is_refused(tmp_path: Path) -> None:
    port = free_port()
    service = ServiceProcess(tmp_path, settings={"metrics": {"port": port + 1}})
    words = ["serve", "--config", str(service.file), "--port", str(port + 2), "--workers", "2"]

    done = subprocess.run(
        [sys.executable, "-m", "fhirpub", *words], capture_output=True, check=False
    )

    assert done.returncode == 1
    assert b"[metrics] port: must differ from that of [server]" in done.stderr
