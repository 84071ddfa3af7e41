"""A change is recorded before it is made, and with how it ended."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from fhirpub.administration import clients
from fhirpub.administration.changes import (
    local_agent,
    record_read,
    recorded,
    tenant_of_client,
)
from fhirpub.audit.record import BEGUN
from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError, NotPossible, SecretsUnavailable, StoreUnavailable
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.administration.office import AGENT, Office


def configured(office: Office, **audit: object) -> Config:
    config = office.administration.config
    return replace(config, audit=replace(config.audit, **audit))  # type: ignore[arg-type]


async def test_a_change_is_recorded_before_it_is_made(office: Office) -> None:
    async with office.administration.recorded("x.y", ("Client", "1"), tenant="t"):
        assert await office.records() == [("t", "x.y", BEGUN, ["Client/1"])]

    assert await office.records() == [
        ("t", "x.y", BEGUN, ["Client/1"]),
        ("t", "x.y", 200, ["Client/1"]),
    ]


async def test_a_record_has_the_agent_of_the_operation(office: Office) -> None:
    async with office.administration.recorded("x.y"):
        pass

    (entry, *_) = (await office.store.unsealed_audit(limit=9)).entries
    line = orjson.loads(entry.records)
    assert {name: line[name] for name in ("user", "environment", "address", "request")} == {
        "user": AGENT.user,
        "environment": AGENT.environment,
        "address": AGENT.address,
        "request": AGENT.request,
    }


async def test_each_record_is_a_line(office: Office) -> None:
    async with office.administration.recorded("x.y"):
        pass

    entries = (await office.store.unsealed_audit(limit=9)).entries
    assert [entry.records.count(b"\n") for entry in entries] == [1, 1]
    assert all(entry.records.endswith(b"}\n") for entry in entries)


async def test_a_change_of_no_tenant_is_in_the_chain_of_the_service(office: Office) -> None:
    async with office.administration.recorded("x.y"):
        pass

    assert [one[0] for one in await office.records()] == ["", ""]


async def test_what_is_learned_during_a_change_is_in_its_outcome(office: Office) -> None:
    async with office.administration.recorded("x.y", ("Tenant", "1")) as doing:
        doing.tenant = "t"
        doing.name("Client", "2")
        doing.name("Key", "3")

    assert await office.records() == [
        ("", "x.y", BEGUN, ["Tenant/1"]),
        ("t", "x.y", 200, ["Tenant/1", "Client/2", "Key/3"]),
    ]


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (NotPossible("no"), 400),
        (ConfigurationError("no"), 400),
        (SecretsUnavailable("no"), 400),
        (StoreUnavailable("no"), 500),
        (ValueError("no"), 500),
        (asyncio.CancelledError(), 500),
    ],
)
async def test_a_change_that_fails_is_recorded_with_the_kind_of_failure(
    office: Office, problem: BaseException, status: int
) -> None:
    with pytest.raises(type(problem)):
        async with office.administration.recorded("x.y", tenant="t"):
            raise problem

    assert [one[2] for one in await office.records()] == [BEGUN, status]


class Failing(SqliteStore):
    """A store that takes some records, and no more."""

    left = 0

    async def add_audit_records(self, records: Mapping[str, bytes]) -> None:
        if not self.left:
            raise StoreUnavailable("it is away")
        self.left -= 1
        await super().add_audit_records(records)


async def test_a_change_is_not_made_if_it_cannot_be_recorded(tmp_path: Path) -> None:
    store, done = Failing(tmp_path / "x.db", deadline_seconds=10), False

    with pytest.raises(StoreUnavailable):
        async with recorded(Config(), store, "x.y", agent=AGENT):
            done = True

    assert not done


async def test_the_failure_of_a_change_is_what_is_raised_also_without_a_record(
    tmp_path: Path,
) -> None:
    store = Failing(tmp_path / "x.db", deadline_seconds=10)
    await store.start()
    store.left = 1

    with pytest.raises(NotPossible):
        async with recorded(Config(), store, "x.y", agent=AGENT):
            raise NotPossible("no")

    await store.stop()


async def test_nothing_is_recorded_without_an_audit_trail(office: Office) -> None:
    config = configured(office, enabled=False)

    async with recorded(config, office.store, "x.y", agent=AGENT):
        pass
    await record_read(config, office.store, "x.z", tenant="t", agent=AGENT)

    assert await office.records() == []


async def test_what_is_shown_is_recorded_once_with_the_patients_among_it(office: Office) -> None:
    named = [("DiagnosticReport", "2"), ("Patient", "1"), ("Patient", "3")]

    await office.administration.record_read("read", *named, tenant="t")

    (entry,) = (await office.store.unsealed_audit(limit=9)).entries
    line = orjson.loads(entry.records)
    assert (entry.tenant, line["action"], line["status"]) == ("t", "read", 200)
    assert line["what"] == ["DiagnosticReport/2", "Patient/1", "Patient/3"]
    assert line["patients"] == ["Patient/1", "Patient/3"]


async def test_changes_are_recorded_although_reads_are_not(office: Office) -> None:
    config = configured(office, reads="off")

    await record_read(config, office.store, "read", tenant="t", agent=AGENT)
    assert await office.records() == []

    async with recorded(config, office.store, "x.y", agent=AGENT):
        pass
    assert len(await office.records()) == 2


async def test_a_word_that_is_no_text_is_recorded_with_replacements(office: Office) -> None:
    async with office.administration.recorded("x.y", ("Client", "a\udcff")):
        pass

    assert (await office.records())[0][3] == ["Client/a?"]


def test_the_agent_of_a_command_is_a_user_on_a_host() -> None:
    agent = local_agent(Config())

    assert agent.user
    assert (agent.host, agent.environment) == (socket.gethostname(), "sandbox")
    assert (agent.client, agent.address, agent.request) == ("", "", "")


async def test_the_chain_of_a_client_is_that_of_its_tenant(office: Office, lab: str) -> None:
    id_ = (await office.run(clients.ADD, tenant=lab))["client_id"]

    assert await tenant_of_client(office.store, id_) == lab
    assert await tenant_of_client(office.store, "guess") == ""


async def test_each_record_has_the_time_at_which_it_was_written(office: Office) -> None:
    begin = now_ms()
    async with office.administration.recorded("x.y"):
        pass

    entries = (await office.store.unsealed_audit(limit=9)).entries
    times = [orjson.loads(one.records)["at"] for one in entries]
    assert begin <= times[0] <= times[1] <= now_ms()
