"""A file of the previous release is upgraded, and its reports are found like new ones."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from fhirpub.storage.sqlite.schema import APPLICATION_ID
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.service import Answer, Integrator, RunningService
from fhirpub.testing.store_contract import LAB, a_version
from tests.bodies import register_body
from tests.storage.older_sqlite_files import detach_documents
from tests.storage.test_sqlite_upgrade import TABLES_OF_1

BASE = "/fhir/r4/DiagnosticReport"
QUERIES = (
    "status=final",
    "status=amended",
    "category=HM",
    "date=2026-11-20",
    "issued=ge2026-11-20",
    "patient.identifier=AAB123456",
    "patient:missing=false",
    "code:missing=false",
    "status=amended&patient.identifier=AAB123456",
    "identifier=old-1",
)


def to_version_1(path: Path) -> None:
    """Convert a file to the format of release 0.1.0."""
    newer = path.with_suffix(".newer")
    path.rename(newer)
    with contextlib.closing(sqlite3.connect(path)) as old:
        for statement in TABLES_OF_1:
            old.execute(statement)
        with contextlib.closing(sqlite3.connect(newer)) as connection:
            detach_documents(connection)
            connection.commit()
        old.execute("ATTACH ? AS newer", (str(newer),))
        tables = old.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            rows = old.execute("SELECT name FROM pragma_table_info(?)", (table,))
            columns = ", ".join(name for (name,) in rows)
            # A trigger has filled some rows already.
            values = f"SELECT {columns} FROM newer.{table}"
            old.execute(f"INSERT OR IGNORE INTO main.{table} ({columns}) {values}")
        old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        old.execute("PRAGMA user_version = 1")
        old.commit()


def answers(lab: Integrator) -> dict[str, list[object]]:
    found = {query: lab.get(f"{BASE}?{query}") for query in QUERIES}
    return {query: [_ids(answer), answer.json["total"]] for query, answer in found.items()}


def _ids(answer: Answer) -> list[str]:
    return [entry["resource"]["id"] for entry in answer.json.get("entry", ())]


def test_reports_of_an_older_file_are_found_by_what_they_say(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        lab = service.integrator()
        registered = [lab.register(register_body(f"old-{number}")) for number in range(3)]
        updated = registered[-1].headers["location"].partition("/_history")[0]
        lab.patch(updated, {"resourceType": "DiagnosticReport", "status": "amended"})
        report = lab.get(updated)
        before = answers(lab)
    to_version_1(tmp_path / "fhirpub.db")

    with RunningService(tmp_path) as service:
        again = service.another_client(lab.tenant)

        assert answers(again) == before
        literal = report.json["subject"]["reference"]
        assert _ids(again.get(f"{BASE}?patient={literal}")) == [report.json["id"]]
        assert again.get(updated.partition(lab.service.base_url)[2]).json == report.json
        again.register(register_body("new"))
        assert again.get(f"{BASE}?status=final").json["total"] == 3
    assert [total for _ids, total in before.values()] == [2, 1, 3, 3, 3, 3, 3, 3, 1, 1]


async def test_processes_that_start_at_once_upgrade_a_file_once(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    version = a_version()
    await store.add(LAB, version)
    await store.stop()
    to_version_1(path)
    stores = [SqliteStore(path, deadline_seconds=10) for _ in range(8)]

    await asyncio.gather(*(item.start() for item in stores))

    assert [await item.latest(LAB, version.id) for item in stores] == [version] * 8
    for item in stores:
        await item.stop()


@pytest.mark.parametrize("store", ["sqlite", "mongodb"])
def test_a_change_of_what_is_searched_is_made_good_at_the_next_start(
    request: pytest.FixtureRequest, tmp_path: Path, store: str
) -> None:
    url = "" if store == "sqlite" else request.getfixturevalue("mongodb_url")
    with RunningService(tmp_path, store_url=url) as service:
        lab = service.integrator()
        body = register_body("x")
        body["parameter"][2]["resource"]["code"] = {"text": "in words"}
        location = lab.register(body).headers["location"]
        resource_id = location.split("/")[-3]
        # The state that a release with other search values leaves.
        service.call(service.services.store.replace_search(lab.tenant.id, resource_id, 1, b"[]"))
        service.call(service.services.store.put_search_rules('{"DiagnosticReport":"old"}'))
        assert lab.get(f"{BASE}?status=final").json["total"] == 0

    with RunningService(tmp_path, store_url=url) as service:
        again = service.another_client(lab.tenant)

        assert _ids(again.get(f"{BASE}?status=final")) == [resource_id]
        assert _ids(again.get(f"{BASE}?code:missing=false")) == [resource_id]
        assert _ids(again.get(f"{BASE}?patient.identifier=AAB123456")) == [resource_id]
