"""Twenty canaries of a patient: no byte of them is left after an erasure that was killed (ADR 36).

They stand in every kind of place: identifiers, names, results, documents of all sizes, what later
versions replaced. Reports of others are published before, between and after them.
"""

from __future__ import annotations

import base64
import http.client
import random
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import bson
import pytest
from pymongo import MongoClient

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Integrator
from tests.bodies import document, patient, register_body
from tests.faults.stores import mostly_on
from tests.panels import panel, result, specimen
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

_REPORTS = 24 if variable("FHIRPUB_TEST_FULL") else 5
_OTHERS = 5 * _REPORTS
_CANARIES = 20
_PERSONS = "https://registry.example/persons"
REPORTS = "/fhir/r4/DiagnosticReport"


class Canaries:
    """Texts that stand nowhere else."""

    def __init__(self) -> None:
        self.texts = [f"canary{secrets.token_hex(12)}" for _ in range(_CANARIES)]

    def __getitem__(self, number: int) -> str:
        return self.texts[number]

    def body(self, number: int) -> dict[str, Any]:
        """Return a report that has a canary in each of its kinds of fields."""
        c = self.texts
        large = 3_500_000 if number == 0 else 150_000
        person = patient(
            identifier=[{"system": _PERSONS, "value": c[0]}],
            name=[{"family": c[1], "given": [c[2]], "text": c[3]}],
            telecom=[{"system": "email", "value": f"{c[4]}@example.org"}],
            address=[{"line": [c[5]], "city": c[6]}],
        )
        sample = specimen(note=[{"text": c[7]}])
        results = [
            result(f"r{place}", code={"text": c[8]}, note=[{"text": c[9]}]) for place in range(12)
        ]
        body = panel(
            f"{c[10]}-{number}",
            *results,
            sample,
            code={"text": c[11], "coding": [{"system": "urn:x", "code": c[12]}]},
            conclusion=c[13],
            text={
                "status": "generated",
                "div": f'<div xmlns="http://www.w3.org/1999/xhtml">{c[14]}</div>',
            },
            extension=[{"url": "https://lab.example/note", "valueString": c[15]}],
            presentedForm=[
                document(b"%PDF-1.4 " + c[16].encode(), title=c[17]),
                document(_filled(c[18], 60_000 + number)),
                document(_filled(c[19], large + number)),
            ],
        )
        body["parameter"][0]["resource"] = person
        return body

    def found_in(self, data: bytes) -> list[int]:
        """Return which canaries are in some bytes, in clear or in base64."""
        return [place for place, text in enumerate(self.texts) if _contains(data, text.encode())]


def _filled(text: str, size: int) -> bytes:
    """Return bytes of a size with a text here and there."""
    piece = f"%PDF-1.4 {text} ".encode()
    parts = [piece + secrets.token_bytes(10_000) for _ in range(size // 10_000 + 1)]
    return b"".join(parts)


def _contains(data: bytes, text: bytes) -> bool:
    return text in data or any(form in data for form in _in_base64(text))


def _in_base64(text: bytes) -> Iterator[bytes]:
    """Yield what stands in base64 whatever comes before and after a text."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + text)
        yield encoded[4 : len(encoded) // 4 * 4 - 4]


def bytes_of_mongodb(url: str) -> bytes:
    """Return all documents of a database."""
    with MongoClient[dict[str, Any]](url) as client:
        database = client.get_default_database()
        names = database.list_collection_names()
        return b"".join(bson.encode(one) for name in names for one in database[name].find())


def bytes_of_files(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file())


@pytest.fixture
def process(tmp_path: Path, store_url: str) -> Iterator[ServiceProcess]:
    (tmp_path / "keys").write_text(base64.b64encode(secrets.token_bytes(32)).decode())
    settings: dict[str, dict[str, object]] = {
        "storage": {"url": store_url, "keys_file": f"{tmp_path}/keys"},
        "logs": {"level": "debug"},
        "webhooks": {"allow_networks": ["127.0.0.1/32"]},
    }
    with ServiceProcess(tmp_path, workers=2, settings=settings) as running:
        yield running


def places_of(canaries: Canaries, folder: Path) -> list[tuple[str, bytes]]:
    """Return the files that have a canary, and what stands around it."""
    found = []
    for file in sorted(folder.iterdir()):
        data = file.read_bytes() if file.is_file() else b""
        for text in canaries.texts:
            place = data.find(text.encode())
            if place >= 0:
                found.append((file.name, data[max(0, place - 200) : place + 100]))
    return found


def publish(lab: Integrator, canaries: Canaries) -> tuple[list[str], dict[str, bytes]]:
    """Publish reports with canaries among others; return their addresses, and the others."""
    ours: list[str] = []
    others: dict[str, bytes] = {}
    for number in range(_OTHERS):
        _publish_other(lab, others, f"{secrets.token_hex(8)}-{number}")
        if number % (_OTHERS // _REPORTS) == 0 and len(ours) < _REPORTS:
            answer = lab.register(canaries.body(len(ours)))
            assert answer.status == 201, answer.body
            address = "/".join(answer.headers["location"].split("/")[-4:-2])
            change = {"resourceType": "DiagnosticReport", "conclusion": "replaced"}
            assert lab.patch(f"/fhir/r4/{address}", change, If_Match="*").status == 204
            ours.append(address)
    return ours, others


def _publish_other(lab: Integrator, others: dict[str, bytes], value: str) -> None:
    answer = lab.register(register_body(value, presentedForm=[document(secrets.token_bytes(300))]))
    assert answer.status == 201, answer.body
    path = "/fhir/r4/" + "/".join(answer.headers["location"].split("/")[-4:-2])
    others[path] = lab.get(path).body


def erase(process: ServiceProcess, canaries: Canaries, tenant: str) -> subprocess.Popen[bytes]:
    words = ["erase", "patient", "--identifier", f"{_PERSONS}|{canaries[0]}", "--tenant", tenant]
    words += ["--reason", "order 7", "--yes", "--config", str(process.file)]
    return subprocess.Popen([sys.executable, "-m", "fhirpub", *words])


def complete(process: ServiceProcess, tenant: str) -> None:
    """Complete what was left: the journal is in use while others publish, as the guide says."""

    def is_complete() -> bool:
        process.command("erase", "resume", "--tenant", tenant)
        unfinished: list[object] = process.command("erase", "list", "--unfinished")
        return not unfinished

    assert wait_until(is_complete, 30)


def count_erased(lab: Integrator, addresses: list[str]) -> int:
    return sum(is_erased(lab, address) for address in addresses)


def is_erased(lab: Integrator, address: str) -> bool:
    try:
        return lab.get(f"/fhir/r4/{address}").status == 410
    except http.client.IncompleteRead:
        return False  # its documents were erased while they were sent


def count_events(receiver: Receiver) -> int:
    """Return of how many resources an event says that they were erased."""
    events = [one.json for one in receiver.received]
    return len({one["data"]["id"] for one in events if one["event_type"].endswith(".erased")})


@mostly_on("sqlite")
def test_after_kills_no_canary_is_left_and_all_else_is_as_before(
    process: ServiceProcess, tmp_path: Path, store_url: str
) -> None:
    canaries = Canaries()
    lab = process.integrator()
    with Receiver() as receiver:
        verify_endpoint(lab, receiver)
        ours, others = publish(lab, canaries)
        assert canaries.found_in(bytes_of(store_url, tmp_path)) == [*range(_CANARIES)]

        with publishing(lab, others):
            kill_some(process, canaries, lab, ours)
            assert erase(process, canaries, lab.tenant.id).wait() == 0
        assert count_erased(lab, ours) == _REPORTS
        assert wait_until(lambda: count_events(receiver) == _REPORTS, 20)

    complete(process, lab.tenant.id)
    assert {path: lab.get(path).body for path in others} == others
    for number in range(_REPORTS):
        assert lab.register(canaries.body(number)).status == 409
    if "mongodb" in store_url:
        sweep_documents(process, store_url, lab.tenant.id, ours)
    assert canaries.found_in(bytes_of(store_url, tmp_path)) == [], places_of(canaries, tmp_path)
    verdicts = {one["tenant"]: one["verdict"] for one in process.command("audit", "verify")}
    assert verdicts[lab.tenant.id] == "right"


def verify_endpoint(lab: Integrator, receiver: Receiver) -> None:
    """Let a receiver get everything; it sends back what it gets."""
    endpoint = lab.request("POST", "/webhooks/v1/endpoints", {"url": receiver.url}).json
    receiver.answer(Reply(status=200, echo=True))
    answer = lab.request("POST", f"/webhooks/v1/endpoints/{endpoint['id']}/verify")
    assert answer.json["state"] == "active"


def bytes_of(store_url: str, folder: Path) -> bytes:
    """Return all that is stored and logged."""
    stored = bytes_of_mongodb(store_url) if "mongodb" in store_url else b""
    return stored + bytes_of_files(folder)


@contextmanager
def publishing(lab: Integrator, others: dict[str, bytes]) -> Iterator[None]:
    """Publish reports of others until the block ends."""
    stop = threading.Event()
    load = threading.Thread(target=_go_on, args=(lab, others, stop))
    load.start()
    try:
        yield
    finally:
        stop.set()
        load.join()


def kill_some(
    process: ServiceProcess, canaries: Canaries, lab: Integrator, ours: list[str]
) -> None:
    """Kill the command whenever it has erased some more."""
    for number in sorted(random.sample(range(1, _REPORTS), 2)):
        command = erase(process, canaries, lab.tenant.id)
        wait_until(lambda least=number: count_erased(lab, ours) >= least, 60)  # type: ignore[misc]
        command.kill()
        command.wait()


def sweep_documents(process: ServiceProcess, url: str, tenant: str, addresses: list[str]) -> None:
    """Delete what was added within the hour, and is left to the sweep, by a repeated command."""
    process.terminate()
    process.wait()
    age_documents(url)
    words = ["erase", "report", *addresses, "--tenant", tenant, "--reason", "again", "--yes"]
    command = [sys.executable, "-m", "fhirpub", *words, "--config", str(process.file)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def age_documents(url: str) -> None:
    """Let all documents be as old as those that no request can be about to name."""
    with MongoClient[dict[str, Any]](url) as client:
        database = client.get_default_database()
        for name in ("blob", "blob_piece"):
            database[name].update_many({}, {"$set": {"added": 0}})


def _go_on(lab: Integrator, others: dict[str, bytes], stop: threading.Event) -> None:
    """Publish reports of others until it is enough."""
    with suppress(OSError, HTTPException):
        while not stop.wait(0.05):
            _publish_other(lab, others, secrets.token_hex(8))
