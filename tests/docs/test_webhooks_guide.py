"""The guide to webhooks, followed word by word: its commands, its receivers, its vectors."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource
from standardwebhooks import Webhook

from fhirpub.config.loader import variable
from fhirpub.config.settings import Config
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.webhook_contract import MAX_ATTEMPTS_KEPT
from fhirpub.testing.receiver import Receiver
from fhirpub.testing.service import Integrator, RunningService
from fhirpub.web.routes import webhook_routes
from fhirpub.webhooks import verify
from fhirpub.webhooks.transport.signing import new_secret, signed_headers
from tests.bodies import register_body
from tests.ports import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "webhooks.md").read_text(encoding="utf-8")
SCHEMAS = ROOT / "schemas" / "events"
PROGRAMS = {"python": [sys.executable, "-u"], "js": ["node"]}
SECRET = new_secret()
PATIENCE = 60
"""Seconds for a program to start or to answer: a busy machine fails no test."""


def blocks(language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    assert found
    return found


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that sends to receivers on this machine."""
    config = Config(webhooks=WebhooksConfig(allow_networks=["127.0.0.1/32"]))
    with RunningService(tmp_path_factory.mktemp("guide"), config=config) as running:
        yield running


@dataclass
class Program:
    """A receiver of the guide, running; ``lines`` is what it prints."""

    port: int
    lines: Queue[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/webhook"

    def receive(self, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        """Send a request to it; return the status and the body of its response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("POST", "/webhook", body, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def printed(self, until: str) -> list[str]:
        """Return its output up to a line, without that line."""
        return list(iter(lambda: self.lines.get(timeout=PATIENCE), until))


@pytest.fixture(scope="module", params=PROGRAMS)
def program(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Program]:
    """Each of the guide's receivers, with a secret of the test."""
    folder = tmp_path_factory.mktemp("program")
    with running_program(request.param, folder, free_port(), secrets=SECRET) as running:
        yield running


@contextmanager
def running_program(language: str, folder: Path, port: int, *, secrets: str) -> Iterator[Program]:
    """Run a receiver of the guide as the guide says."""
    if shutil.which(PROGRAMS[language][0]) is None:
        pytest.skip(f"{PROGRAMS[language][0]} is not installed")
    (text,) = blocks(language)
    file = folder / f"receiver.{language}"
    file.write_text(text, encoding="utf-8")
    environment = {"PATH": variable("PATH"), "PORT": str(port), "SECRETS": secrets}
    running = subprocess.Popen(
        [*PROGRAMS[language], str(file)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    lines: Queue[str] = Queue()
    assert running.stdout is not None
    reading = threading.Thread(target=_pass_on, args=(running.stdout, lines), daemon=True)
    reading.start()
    try:
        _wait_for(port)
        yield Program(port, lines)
    finally:
        running.kill()
        running.wait()
        reading.join()
        running.stdout.close()


def _pass_on(stream: Any, lines: Queue[str]) -> None:
    for line in stream:
        lines.put(line.strip())


def _wait_for(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError("the receiver does not listen")


def signed(event: dict[str, Any], **more: Any) -> tuple[dict[str, str], bytes]:
    """Return an event as it is sent."""
    raw = json.dumps(event, separators=(",", ":")).encode()
    stamp = now_ms() // 1000 - more.get("late", 0)
    secrets = more.get("secrets", [SECRET])
    return signed_headers(event["event_id"], stamp, raw, secrets=secrets), raw


def an_event(number: int, **data: str) -> dict[str, Any]:
    return {"event_id": f"evt_{number}", "sequence": number, "event_type": "a.b", "data": data}


# The receivers


def test_a_receiver_takes_what_the_service_sends(
    program: Program, service: RunningService
) -> None:
    lab = service.integrator()
    fields = {"url": program.url, "signing_secret": SECRET}
    added = lab.request("POST", "/webhooks/v1/endpoints", fields).json

    trial = lab.request("POST", f"/webhooks/v1/endpoints/{added['id']}/verify").json
    lab.register(register_body("R-1"))

    assert (trial["passed"], trial["state"]) == (True, "active")
    assert "0 endpoint.verification" in program.printed(until="1 diagnostic_report.created")


def test_a_receiver_drops_what_it_has_seen(program: Program) -> None:
    headers, raw = signed(an_event(1001))

    answers = [program.receive(headers, raw)[0] for _time in range(2)]
    program.receive(*signed(an_event(1002)))

    assert answers == [200, 200]
    assert program.printed(until="1002 a.b").count("1001 a.b") == 1


def test_a_receiver_repeats_a_challenge(program: Program) -> None:
    assert program.receive(*signed(an_event(1003, challenge="abc"))) == (200, b"abc")


def test_a_receiver_takes_either_signature(program: Program) -> None:
    sent = signed(an_event(1004), secrets=[new_secret(), SECRET])

    assert program.receive(*sent)[0] == 200


@pytest.mark.parametrize(
    ("more", "changed"),
    [
        ({"secrets": [new_secret()]}, {}),
        ({"late": 1000}, {}),
        ({"late": -1000}, {}),
        ({}, {"webhook-id": "evt_2"}),
        ({}, {"webhook-timestamp": "now"}),
        ({}, {"webhook-timestamp": ""}),
        ({}, {"webhook-signature": ""}),
        ({}, {"webhook-signature": "v1,"}),
        ({}, {"webhook-signature": "v1"}),
        ({}, {"webhook-signature": "v1,AAAA v2,AAAA \xe4"}),
    ],
)
def test_a_receiver_refuses_what_is_not_authentic(
    more: dict[str, Any], changed: dict[str, str], program: Program
) -> None:
    headers, raw = signed(an_event(1), **more)

    assert program.receive(headers | changed, raw)[0] == 401


def test_a_receiver_refuses_another_body(program: Program) -> None:
    headers, raw = signed(an_event(1))

    assert program.receive(headers, raw + b" ")[0] == 401


# The commands, and a third-party library


def followed(folder: Path, lab: Integrator, url: str, commands: Sequence[str]) -> str:
    """Run commands of the guide, with its placeholders filled in."""
    placeholders, *_ = blocks("sh")
    script = "\n".join(["set -e", placeholders, *commands])
    for name, value in {"BASE": lab.service.base_url, "TOKEN": lab.token, "URL": url}.items():
        script = re.sub(rf"^{name}=.*$", f"{name}='{value}'", script, flags=re.MULTILINE)
    run = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return run.stdout


@pytest.mark.skipif(shutil.which("curl") is None, reason="the guide needs curl")
@pytest.mark.parametrize("language", PROGRAMS)
def test_the_guide_leads_to_a_verified_endpoint(
    language: str, service: RunningService, tmp_path: Path
) -> None:
    lab, port = service.integrator(), free_port()
    _placeholders, add, *others = blocks("sh")
    url = f"http://127.0.0.1:{port}/webhook"

    added = json.loads(followed(tmp_path, lab, url, [add]))
    with running_program(language, tmp_path, port, secrets=added["signing_secret"]) as program:
        followed(tmp_path, lab, url, others)
        printed = program.printed(until="0 endpoint.test")

    (endpoint,) = lab.get("/webhooks/v1/endpoints").json["endpoints"]
    assert (endpoint["url"], endpoint["state"]) == (url, "active")
    assert endpoint["event_types"] == ["diagnostic_report.*"]
    assert "0 endpoint.verification" in printed


def test_the_guide_leads_to_events_on_the_machine_of_a_developer(
    service: RunningService, tmp_path: Path
) -> None:
    lab, (program,) = service.integrator(), blocks("python")
    (tmp_path / "receiver.py").write_text(program, encoding="utf-8")

    with on_the_developers_machine(lab, tmp_path) as lines:
        tried = list(iter(lambda: lines.get(timeout=PATIENCE), "The receiver accepted it."))
        assert wait_until(lambda: bool(lab.get("/webhooks/v1/endpoints").json["endpoints"]), 30)
        lab.register(register_body("R-1"))
        received = list(iter(lambda: lines.get(timeout=PATIENCE), "1 diagnostic_report.created"))
        printed = lines.get(timeout=PATIENCE)

    assert tried == ["0 diagnostic_report.created"]
    assert "passed        yes" in received
    assert re.fullmatch(r"1  \S+Z  diagnostic_report.created  \S+  -> 200 in \d+ ms", printed)


@contextmanager
def on_the_developers_machine(lab: Integrator, folder: Path) -> Iterator[Queue[str]]:
    """Run the commands of the guide that follow events; give what they print."""
    console = next(block for block in blocks("console") if "webhooks listen" in block)
    commands = [line[2:] for line in console.splitlines() if line.startswith("$ ")]
    script = "\n".join(commands).replace("9000", str(port := free_port()))
    for given, real in {
        "CLIENT_ID=… FHIRPUB_CLIENT_SECRET=…": f"CLIENT_ID={lab.client_id} "
        f"FHIRPUB_CLIENT_SECRET={lab.client_secret}",
        "python3": f"{sys.executable} -u",
        "\nfhirpub webhooks trigger": f"\nuntil : 2>/dev/null < /dev/tcp/127.0.0.1/{port}; "
        "do sleep 0.1; done\nfhirpub webhooks trigger",
    }.items():
        assert given in script
        script = script.replace(given, real)
    running = subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env={
            "PATH": f"{Path(sys.executable).parent}:{variable('PATH')}",
            "BASE": lab.service.base_url,
            "AUDIENCE": lab.service.config.auth.audience,
            "XDG_STATE_HOME": str(folder),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    lines: Queue[str] = Queue()
    assert running.stdout is not None
    reading = threading.Thread(target=_pass_on, args=(running.stdout, lines), daemon=True)
    reading.start()
    try:
        yield lines
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        reading.join()
        running.stdout.close()


def test_a_library_of_others_verifies_what_is_sent(service: RunningService) -> None:
    lab, endpoints = service.integrator(), service.services.endpoints
    numbers = iter(range(1, 100))

    def has_both_signatures() -> bool:  # the sender may have read the endpoint before it had two
        lab.register(register_body(f"R-{(number := next(numbers))}"))
        return receiver.wait(number)[-1].headers["webhook-signature"].count("v1,") == 2

    with Receiver() as receiver:
        added = service.call(endpoints.add(lab.tenant.id, {"url": receiver.url}, trusted=True))
        grace = {"grace_seconds": 60}
        service.call(endpoints.rotate_secret(lab.tenant.id, added.endpoint.id, grace))
        assert wait_until(has_both_signatures)
        sent = receiver.wait(1)[-1]

    event = Webhook(added.signing_secret).verify(sent.body, dict(sent.headers))

    assert event["event_type"] == "diagnostic_report.created"
    assert sent.headers["webhook-signature"].count("v1,") == 2


def test_the_vectors_verify() -> None:
    vectors = json.loads(blocks("json")[-1])
    stamp = vectors["webhook-timestamp"]

    for signature in vectors["signatures"]:
        ids = {"webhook-id": vectors["webhook-id"], "webhook-timestamp": stamp}
        for name in ("webhook-signature", "X-Webhook-Signature"):
            headers = ids | {name: signature[name]}
            verify(headers, vectors["body"].encode(), signature["secret"], now=float(stamp))


def test_the_example_in_python_believes_the_vectors_at_their_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,), vectors = blocks("py"), json.loads(blocks("json")[-1])
    stamp, signatures = vectors["webhook-timestamp"], vectors["signatures"]
    headers = {
        "webhook-id": vectors["webhook-id"],
        "webhook-timestamp": stamp,
        "webhook-signature": signatures[0]["webhook-signature"],
    }
    read: dict[str, Any] = {}
    exec(compile(example, "the guide", "exec"), read)
    monkeypatch.setitem(read, "time", SimpleNamespace(time=lambda: float(stamp)))

    believed = [
        read["is_authentic"](headers, vectors["body"].encode(), [signature["secret"]])
        for signature in signatures
    ]

    assert believed == [True, False]
    assert capsys.readouterr().out.startswith("no-match no signature matches")


def test_the_vectors_are_of_an_event_as_it_is_sent() -> None:
    vectors = json.loads(blocks("json")[-1])
    body = json.loads(vectors["body"])
    files = [json.loads(path.read_bytes()) for path in SCHEMAS.iterdir()]
    known: Registry[Any] = Registry().with_resources(
        (file["$id"], Resource.from_contents(file)) for file in files
    )
    schema = known.contents(f"urn:fhirpub:schemas:events:{body['event_type']}")

    jsonschema.Draft202012Validator(schema, registry=known).validate(body)

    assert body["event_id"] == vectors["webhook-id"]


def test_the_guide_states_how_long_a_delivery_is_tried_and_how_many_attempts_are_kept() -> None:
    waits = WebhooksConfig().retry_seconds
    least, most = (round(sum(waits) * longer / 3600) for longer in (1.0, 1.2))

    assert f"{len(waits) + 1}\nattempts in {least} to {most} hours" in GUIDE
    assert f"the latest {MAX_ATTEMPTS_KEPT} attempts of each" in GUIDE


def test_the_guide_names_every_call() -> None:
    lines = GUIDE.partition("## All calls")[2].partition("## When")[0]
    last = {route.path.rpartition("/")[2] for route in webhook_routes()} - {"{}"}

    assert not [name for name in last if name not in lines]
