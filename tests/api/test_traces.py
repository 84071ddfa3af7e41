"""One request is followed from its client's trace through the commit to the webhook (ADR 39)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from fhirpub.config.loader import load
from fhirpub.errors import ConfigurationError
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Integrator
from tests.bodies import register_body
from tests.ports import free_port
from tests.waiting import wait_until

TYPE = "/fhir/r4/DiagnosticReport"
ENDPOINTS = "/webhooks/v1/endpoints"
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN_ID = "00f067aa0ba902b7"
TRACE = f"00-{TRACE_ID}-{SPAN_ID}-01"
SENT = {"traceparent": TRACE}


@dataclass
class Collector:
    """A collector that takes OTLP over HTTP, and keeps what it gets."""

    receiver: Receiver = field(default_factory=Receiver)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.receiver.port}"

    @property
    def spans(self) -> list[Span]:
        found = []
        for one in self.receiver.received:
            assert (one.method, one.path) == ("POST", "/v1/traces")
            request = ExportTraceServiceRequest.FromString(one.body)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    found += scope.spans
        return found

    def trace(self, trace_id: str = TRACE_ID) -> dict[str, Span]:
        """Return the spans of a trace by name; of several with one name the last."""
        return {span.name: span for span in self.spans if span.trace_id.hex() == trace_id}


def of(span: Span) -> dict[str, Any]:
    """Return the attributes of a span."""
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


@pytest.fixture(params=["sqlite", "mongodb"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The settings of a new store of each engine."""
    if request.param == "sqlite":
        return {}
    keys = tmp_path / "keys"
    keys.write_text("A" * 43 + "=\n")
    return {"url": request.getfixturevalue("mongodb_url"), "keys_file": str(keys)}


def settings_of(
    collector: Collector | None, storage: Mapping[str, str] = {}, *, share: float = 0.0
) -> dict[str, Mapping[str, Any]]:
    tracing: dict[str, Any] = {}
    if collector is not None:
        tracing = {"enabled": True, "endpoint": collector.endpoint, "sample_ratio": share}
    return {
        "storage": storage,
        "tracing": tracing,
        "webhooks": {"allow_networks": ["127.0.0.1/32"]},
        "logs": {"format": "json"},
    }


def subscribe(lab: Integrator, receiver: Receiver) -> None:
    """Add an endpoint and verify it."""
    receiver.answer(Reply(status=200, echo=True))
    added = lab.request("POST", ENDPOINTS, {"url": receiver.url}).json
    verified = lab.request("POST", f"{ENDPOINTS}/{added['id']}/verify").json
    assert verified["state"] == "active"
    receiver.answer(Reply())
    receiver.received.clear()


def lines_of(process: ServiceProcess) -> list[dict[str, Any]]:
    text = process.errors.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_one_request_is_followed_from_its_client_to_the_webhook(
    tmp_path: Path, storage: dict[str, str]
) -> None:
    collector = Collector()
    with collector.receiver, Receiver() as receiver:
        settings = settings_of(collector, storage)
        with ServiceProcess(tmp_path, settings=settings) as process:
            lab = process.integrator()
            subscribe(lab, receiver)
            registered = lab.register(register_body("R-1"), **SENT)
            (delivered,) = receiver.wait(1)
            lab.request("GET", registered.headers["location"].split("/_history")[0], None, SENT)
            process.terminate()
            process.wait()
        spans, lines = collector.trace(), lines_of(process)

    write = spans[f"POST {TYPE}/$register"]
    assert registered.status == 201
    assert write.parent_span_id.hex() == SPAN_ID
    assert of(write)["http.response.status_code"] == 201
    for step in ("validate", "commit"):
        assert spans[step].parent_span_id == write.span_id
    assert spans["relay"].parent_span_id == write.span_id
    assert spans["deliver"].parent_span_id == spans["relay"].span_id
    assert of(spans["deliver"])["http.response.status_code"] == 204
    assert spans["read"].parent_span_id == spans[f"GET {TYPE}/{{}}"].span_id
    # The receiver goes on with the trace, and so does the log.
    assert delivered.headers["traceparent"] == f"00-{TRACE_ID}-{spans['deliver'].span_id.hex()}-01"
    assert {line["status"] for line in lines if line.get("trace_id") == TRACE_ID} == {200, 201}


def test_a_delivery_after_a_restart_is_still_in_the_trace_of_its_request(tmp_path: Path) -> None:
    collector = Collector()
    with collector.receiver, Receiver() as receiver:
        settings = settings_of(collector)
        with ServiceProcess(tmp_path, settings=settings) as process:
            lab = process.integrator()
            subscribe(lab, receiver)
            receiver.answer(Reply(status=503, headers={"Retry-After": "1"}), Reply())
            lab.register(register_body("R-1"), **SENT)
            receiver.wait(1)
            process.terminate()
            process.wait()
            process.start()
            receiver.wait(2)
            process.terminate()
            process.wait()
        deliveries = [span for span in collector.spans if of(span).get("fhirpub.event_type")]

    traced = [span for span in deliveries if span.trace_id.hex() == TRACE_ID]
    assert [of(span)["http.response.status_code"] for span in traced] == [503, 204]
    assert [of(span)["fhirpub.attempt"] for span in traced] == [1, 2]


def test_without_a_tracer_the_trace_of_the_client_goes_on_all_the_same(
    tmp_path: Path, storage: dict[str, str]
) -> None:
    settings = settings_of(None, storage)
    with Receiver() as receiver, ServiceProcess(tmp_path, settings=settings) as process:
        lab = process.integrator()
        subscribe(lab, receiver)
        lab.register(register_body("R-1"), **SENT)
        lab.register(register_body("R-2"))
        lab.register(register_body("R-3"), traceparent="00-not-a-trace-01")
        received = receiver.wait(3)
        wait_until(lambda: len([line for line in lines_of(process) if "trace_id" in line]) > 0)
        lines = lines_of(process)

    found = {one.json["data"]["identifier"]["value"]: one for one in received}
    assert found["R-1"].headers["traceparent"] == TRACE
    assert found["R-1"].json["traceparent"] == TRACE
    assert "traceparent" not in found["R-2"].headers | found["R-2"].json
    assert "traceparent" not in found["R-3"].headers | found["R-3"].json
    assert [line["trace_id"] for line in lines if "trace_id" in line] == [TRACE_ID]


def test_traces_that_begin_here_are_sent_by_their_share(tmp_path: Path) -> None:
    collector = Collector()
    with collector.receiver:
        settings = settings_of(collector, share=1.0)
        with ServiceProcess(tmp_path, settings=settings) as process:
            lab = process.integrator()
            lab.get(TYPE)
            lab.get(TYPE, traceparent=TRACE.removesuffix("01") + "00")
            process.terminate()
            process.wait()
        found = [span for span in collector.spans if span.name == f"GET {TYPE}"]

    assert len(found) == 1
    assert found[0].parent_span_id == b""


def test_no_span_holds_anything_of_a_patient_or_a_path(tmp_path: Path) -> None:
    collector = Collector()
    body = register_body("Verraeterisch", conclusion="Verraeterisch")
    with collector.receiver:
        settings = settings_of(collector, share=1.0)
        with ServiceProcess(tmp_path, settings=settings) as process:
            lab = process.integrator()
            lab.register(body)
            lab.register({**body, "Verraeterisch": "Verraeterisch"})
            lab.get(f"{TYPE}/Verraeterisch?identifier=Verraeterisch")
            lab.get(f"{TYPE}?identifier=Verraeterisch")
            process.terminate()
            process.wait()
        sent = b"".join(one.body for one in collector.receiver.received)

    assert b"POST /fhir/r4/DiagnosticReport/$register" in sent
    assert b"Verraeterisch" not in sent


def test_a_collector_that_is_away_costs_no_request_anything(tmp_path: Path) -> None:
    settings: dict[str, Mapping[str, Any]] = {
        "tracing": {
            "enabled": True,
            "endpoint": f"http://127.0.0.1:{free_port()}",
            "sample_ratio": 1.0,
        },
    }
    with ServiceProcess(tmp_path, settings=settings) as process:
        lab = process.integrator()
        statuses = {lab.get(TYPE).status for _ in range(20)}
        process.terminate()

        assert process.wait(15) == 0
    assert statuses == {200}


def test_metrics_name_a_trace_that_was_sent_in_openmetrics_only(tmp_path: Path) -> None:
    collector = Collector()
    with collector.receiver:
        settings = settings_of(collector) | {"metrics": {"port": free_port()}}
        with ServiceProcess(tmp_path, settings=settings) as process:
            lab = process.integrator()
            lab.get(TYPE, traceparent=TRACE.removesuffix("01") + "00")
            unsampled = exposition(process, "application/openmetrics-text")
            lab.get(TYPE, **SENT)
            openmetrics = exposition(process, "application/openmetrics-text")
            plain = exposition(process, "text/plain")

    (line,) = [line for line in openmetrics.splitlines() if TRACE_ID in line]
    assert line.startswith("fhirpub_request_seconds_bucket{")
    assert f'# {{trace_id="{TRACE_ID}"}} ' in line
    assert TRACE_ID not in unsampled + plain


def exposition(process: ServiceProcess, accept: str) -> str:
    address = f"http://127.0.0.1:{process.config.metrics.port}/metrics"
    with urlopen(Request(address, headers={"Accept": accept})) as page:
        text: str = page.read().decode()
    return text


def test_without_the_packages_the_start_says_what_to_install(tmp_path: Path) -> None:
    file = tmp_path / "fhirpub.toml"
    file.write_text(f'[tracing]\nenabled = true\n[storage]\nurl = "sqlite:///{tmp_path}/x.db"\n')
    script = (
        "import sys; sys.modules['opentelemetry'] = None; sys.argv[0] = 'fhirpub';"
        "from fhirpub.__main__ import main; main()"
    )

    words = [sys.executable, "-c", script, "serve", "--config", str(file), "--port", "0"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 1
    assert "pip install 'fhirpub[otel]'" in done.stderr


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("sample_ratio = 1.5", "sample_ratio must be from 0 to 1"),
        ('endpoint = "collector:4318"', "endpoint must start with http://"),
    ],
)
def test_a_wrong_setting_prevents_the_start(tmp_path: Path, setting: str, problem: str) -> None:
    file = tmp_path / "fhirpub.toml"
    file.write_text(f"[tracing]\n{setting}\n")

    with pytest.raises(ConfigurationError, match=problem):
        load(file, environment={})
