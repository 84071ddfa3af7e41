"""Publishers that remember acknowledgements, and checks that compare them with the store."""

from __future__ import annotations

import base64
import hashlib
import http.client
import random
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from pymongo import MongoClient

from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.testing.service import Answer, Integrator
from tests.bodies import SYSTEM, document, register_body

_numbers = count()
_LARGEST = 200_000
_REWRITTEN = {"id", "subject", "performer"}
"""The elements that the service changes in a report; the rest is kept literally."""
_MISSING_DOCUMENTS: list[dict[str, Any]] = [
    {"$set": {"attached": {"$ifNull": ["$attached.sha256", []]}}},
    {"$set": {"documents": {"$setDifference": ["$documents", "$attached"]}}},
    {"$unwind": "$documents"},
    {"$set": {"blob": {"$concat": ["$tenant", "/", "$documents"]}}},
    {"$lookup": {"from": "blob", "localField": "blob", "foreignField": "_id", "as": "kept"}},
    {"$match": {"kept": []}},
]
"""The stages that find documents that versions in MongoDB name and that do not exist."""


@dataclass(slots=True)
class Sent:
    """A report that was sent, and its known state."""

    value: str
    body: bytes
    path: str = ""
    answer: bytes = b""
    patches: list[bytes] = field(default_factory=list)
    """The acknowledged versions from 2 on."""
    unanswered: bytes | None = None
    """A patch that may or may not have become the next version."""

    @property
    def version(self) -> int:
        return 1 + len(self.patches)

    def report(self, version: int) -> dict[str, Any]:
        """Return the expected contents of a version."""
        report: dict[str, Any] = loads(self.body)["parameter"][2]["resource"]
        for patch in self.patches[: version - 1]:
            report |= loads(patch)
        return {name: item for name, item in report.items() if name not in _REWRITTEN}


class Publisher:
    """One client on one connection at a time; registers, and updates what it has registered."""

    def __init__(self, lab: Integrator, *, seed: int) -> None:
        self.lab = lab
        self.acknowledged: list[Sent] = []
        self.unanswered: list[Sent] = []
        self.failures: list[Exception] = []
        self.refusals: list[Answer] = []
        self._random = random.Random(seed)

    def publish(self, port: int, *, most: int) -> None:
        """Send at most ``most`` requests, until one gets no response."""
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            for _ in range(most):
                if not self._try_one(connection):
                    return

    def publish_on(self, port: int, enough: threading.Event) -> None:
        """Send until ``enough`` is set, over a new connection after each failure."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while not enough.is_set():
            if not self._try_one(connection):
                connection.close()
                enough.wait(0.02)
        connection.close()

    @property
    def sent(self) -> list[Sent]:
        return self.acknowledged + self.unanswered

    def _try_one(self, connection: http.client.HTTPConnection) -> bool:
        try:
            self._one(connection)
        except (OSError, http.client.HTTPException) as failure:
            self.failures.append(failure)
            return False
        return True

    def _one(self, connection: http.client.HTTPConnection) -> None:
        settled = [sent for sent in self.acknowledged if sent.unanswered is None]
        if settled and self._random.random() < 0.35:
            self._patch(connection, self._random.choice(settled))
        else:
            self._register(connection)

    def _register(self, connection: http.client.HTTPConnection) -> None:
        value = f"load-{next(_numbers)}"
        body = dumps(register_body(value, presentedForm=self._documents()))
        new = Sent(value, body)
        self.unanswered.append(new)
        answer = self._send(connection, "POST", "/fhir/r4/DiagnosticReport/$register", body)
        if answer.status != 201:
            self.refusals.append(answer)
            return
        take_answer(new, answer)
        self.unanswered.remove(new)
        self.acknowledged.append(new)

    def _patch(self, connection: http.client.HTTPConnection, report: Sent) -> None:
        patch: dict[str, Any] = {
            "resourceType": "DiagnosticReport",
            "status": "amended",
            "conclusion": f"Conclusion {next(_numbers)}",
        }
        if self._random.random() < 0.3:
            patch["presentedForm"] = self._documents()
        body = dumps(patch)
        report.unanswered = body
        tag = {"If-Match": f'W/"{report.version}"'}
        answer = self._send(connection, "PATCH", report.path, body, tag)
        if answer.status != 204:
            self.refusals.append(answer)
            return
        report.patches.append(body)
        report.unanswered = None

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: bytes,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        given = {
            "Authorization": f"Bearer {self.lab.token}",
            "Content-Type": "application/fhir+json",
        }
        connection.request(method, path, body, given | (headers or {}))
        response = connection.getresponse()
        read = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, read, response.read())

    def _documents(self) -> list[dict[str, Any]]:
        if self._random.random() < 0.5:
            return [{"url": f"https://lab.example/{next(_numbers)}.pdf"}]
        most = self._random.choice([100, 10_000, _LARGEST])
        data = b"%PDF-" + self._random.randbytes(self._random.randint(1, most))
        return [document(data)]


def take_answer(report: Sent, answer: Answer) -> None:
    """Remember the response to a registration."""
    assert answer.status == 201, answer.body
    report.path = answer.headers["location"].partition("/_history")[0]
    report.path = report.path[report.path.index("/fhir/") :]
    report.answer = answer.body


def run_until_answers_fail(publishers: Sequence[Publisher], port: int, most: int) -> list[Any]:
    """Start the publishers, each in a thread; return the threads."""
    threads = [
        threading.Thread(target=publisher.publish, args=(port,), kwargs={"most": most})
        for publisher in publishers
    ]
    for thread in threads:
        thread.start()
    return threads


def check_all(lab: Integrator, reports: Iterable[Sent]) -> None:
    """Assert that every acknowledged version is stored completely and once."""
    for report in reports:
        if not report.answer:
            _resubmit(lab, report)
        _check_history(lab, report)
        assert lab.register(report.body).body == report.answer


def check_store(url: str) -> None:
    """Assert that the engine finds no damage in its data, and that no document is lost."""
    if url.startswith("sqlite:"):
        _check_file(Path(url.removeprefix("sqlite:///")))
    else:
        _check_database(url)


def _check_file(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def _check_database(url: str) -> None:
    with MongoClient[dict[str, Any]](url) as client:
        database = client.get_default_database()
        for name in database.list_collection_names():
            assert database.command("validate", name, full=True)["valid"]
        assert list(database["version"].aggregate(_MISSING_DOCUMENTS)) == []


def _resubmit(lab: Integrator, report: Sent) -> None:
    first = lab.register(report.body)
    take_answer(report, first)
    assert lab.register(report.body).body == first.body
    found = lab.get(f"/fhir/r4/DiagnosticReport?identifier={SYSTEM}%7C{report.value}").json
    assert found["total"] == 1


def _check_history(lab: Integrator, report: Sent) -> None:
    history = lab.get(f"{report.path}/_history?_count=100").json
    versions = [int(entry["resource"]["meta"]["versionId"]) for entry in history["entry"]]
    assert versions == list(range(versions[0], 0, -1))
    if report.unanswered is not None and versions[0] == report.version + 1:
        report.patches.append(report.unanswered)
    report.unanswered = None
    assert versions[0] == report.version == history["total"]
    for version in versions:
        _check_version(lab.get(f"{report.path}/_history/{version}"), report, version)
    _check_version(lab.get(report.path), report, report.version)


def _check_version(answer: Answer, report: Sent, version: int) -> None:
    assert answer.status == 200, answer.body
    read = answer.json
    assert read["meta"]["versionId"] == str(version)
    wanted = report.report(version)
    assert {name: read.get(name) for name in wanted} == wanted
    for attachment in read["presentedForm"]:
        if "data" in attachment:
            assert (
                hashlib.sha256(base64.b64decode(attachment["data"])).hexdigest()
                == attachment["hash"]
            )
