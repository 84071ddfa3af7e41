"""``fhirpub webhooks trigger`` with real receivers, and a service for those that it sends to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.settings import Config
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.webhooks import verify
from tests.listening import SECRET, environment_of, service_words


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that sends to receivers on this machine."""
    config = Config(webhooks=WebhooksConfig(allow_networks=["127.0.0.1/32"]))
    with RunningService(tmp_path_factory.mktemp("trigger"), config=config) as running:
        yield running


def trigger(run: Any, *words: str, **variables: str) -> Any:
    return run("webhooks", "trigger", *words, **{"FHIRPUB_SIGNING_SECRET": SECRET, **variables})


def test_a_sample_is_sent_from_this_machine_without_a_service(
    run: Any, receiver: Receiver
) -> None:
    done = trigger(run, "diagnostic_report.created", "--forward-to", receiver.url)

    (sent,) = receiver.received
    verify(sent.headers, sent.body, SECRET, now=now_ms() / 1000)
    assert (done.returncode, sent.json["sequence"]) == (0, 0)
    assert sent.headers["x-webhook-event"] == "diagnostic_report.created"
    assert done.stdout.startswith("The receiver accepted it.")


def test_a_sample_of_the_event_of_a_plugin_is_sent(run: Any, receiver: Receiver) -> None:
    words = ("observation.created", "--forward-to", receiver.url)
    plugins = {"FHIRPUB_PLUGINS__ENABLED": "diagnosticreport,observation"}

    assert trigger(run, *words, **plugins).returncode == 0

    assert receiver.received[0].json["data"]["resource_type"] == "Observation"


def test_a_receiver_that_does_not_accept_it_is_reported(run: Any, receiver: Receiver) -> None:
    receiver.answer(Reply(status=401))

    done = trigger(run, "diagnostic_report.created", "--forward-to", receiver.url, "--json")

    assert done.returncode == 1
    expected = {"passed": False, "status": 401, "why": "the answer was 401, not 2xx"}
    assert json.loads(done.stdout).items() >= expected.items()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            ("diagnostic_report.create", "--forward-to", "http://127.0.0.1:9"),
            "did you mean diagnostic_report.created?",
        ),
        (("observation.created", "--forward-to", "http://127.0.0.1:9"), "[plugins] enabled"),
        (("diagnostic_report.created",), "--forward-to URL or --endpoint ID"),
        (
            ("endpoint.test", "--forward-to", "http://127.0.0.1:9", "--endpoint", "e"),
            "--forward-to URL or --endpoint ID",
        ),
    ],
)
def test_what_is_wrong_is_explained(words: tuple[str, ...], reason: str, run: Any) -> None:
    refused = trigger(run, *words)

    assert (refused.returncode, reason in refused.stderr) == (2, True), refused.stderr


def test_the_service_sends_a_sample_to_an_endpoint(
    run: Any, service: RunningService, receiver: Receiver, tmp_path: Path
) -> None:
    lab: Integrator = service.integrator()
    endpoints = service.services.endpoints
    added = service.call(endpoints.add(lab.tenant.id, {"url": receiver.url}, trusted=True))
    known = environment_of(lab, tmp_path)
    words = ("--endpoint", added.endpoint.id, *service_words(lab))

    done = trigger(run, "diagnostic_report.updated", *words, **known)
    refused = trigger(run, "diagnostic_report.update", *words, **known)

    (sent,) = receiver.received
    verify(sent.headers, sent.body, added.signing_secret, now=now_ms() / 1000)
    assert (done.returncode, sent.json["event_type"]) == (0, "diagnostic_report.updated")
    assert refused.returncode == 1
    assert "event_type is not an event of this service; did you mean" in refused.stderr
