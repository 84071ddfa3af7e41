"""Quotas on the command line: what is set is shown, with what was used of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from fhirpub.runtime.clock import now_ms
from fhirpub.storage.quota_contract import QuotaCount
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.store_contract import a_version

MINUTE, DAY = 60_000, 86_400_000


@pytest.fixture
def run_json(run: Any) -> Any:
    """Return a function that runs a command with ``--json`` and parses its output."""

    def run_json(*words: str) -> Any:
        done = run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run_json


@pytest.fixture
def tenant(run_json: Any) -> str:
    added: str = run_json("tenant", "add", "Lab Uno")["id"]
    return added


@pytest.fixture
def client(run_json: Any, tenant: str) -> str:
    added: str = run_json("client", "add", "--tenant", tenant, "--name", "ward")["client_id"]
    return added


def quotas_of(owner: Any) -> dict[str, tuple[int | None, str, int | None]]:
    return {
        item["quota"]: (item["limit"], item["set_by"], item["used"]) for item in owner["quotas"]
    }


def test_limits_are_set_one_by_one_and_removed(run_json: Any, tenant: str, client: str) -> None:
    first = run_json("quota", "set", "--tenant", tenant, "--requests-per-minute", "600")
    run_json("quota", "set", "--tenant", tenant, "--stored-bytes", "5000", "--bytes-per-day", "0")
    run_json("quota", "set", "--client", client, "--requests-at-a-time", "3")
    shown = run_json("quota", "show", "--tenant", tenant)
    run_json("quota", "set", "--tenant", tenant, "--requests-per-minute", "default")
    removed = run_json("quota", "show", "--tenant", tenant)

    assert first["tenant"] == tenant
    assert first["requests_per_minute"] == 600
    assert quotas_of(shown) == {
        "requests_per_minute": (600, "quota set", 0),
        "requests_at_a_time": (None, "[quotas]", None),
        "bytes_per_day": (None, "quota set", None),
        "registrations_per_day": (None, "[quotas]", None),
        "stored_bytes": (5000, "quota set", 0),
    }
    (other,) = shown["clients"]
    assert (other["client_id"], other["name"]) == (client, "ward")
    assert quotas_of(other)["requests_at_a_time"] == (3, "quota set", 0)
    assert "stored_bytes" not in quotas_of(other)
    assert quotas_of(removed)["requests_per_minute"] == (None, "[quotas]", None)


def test_settings_apply_where_nothing_is_set(run: Any, run_json: Any, tenant: str) -> None:
    limits = {"FHIRPUB_QUOTAS__TENANT_BYTES_PER_DAY": "7000"}

    shown = json.loads(run("quota", "show", "--tenant", tenant, "--json", **limits).stdout)

    assert quotas_of(shown)["bytes_per_day"] == (7000, "[quotas]", 0)


def test_what_every_process_counted_in_this_period_is_shown(
    run_json: Any, tenant: str, client: str, tmp_path: Path
) -> None:
    run_json("quota", "set", "--tenant", tenant, "--bytes-per-day", "9000")
    run_json("quota", "set", "--client", client, "--registrations-per-day", "50")
    version = a_version(body=b"b" * 300)

    async def use() -> None:
        store = SqliteStore(tmp_path / "fhirpub-data" / "fhirpub.db", deadline_seconds=10)
        await store.start()
        begun = now_ms() // DAY * DAY
        for process, owner, quota, used, period in (
            ("p", tenant, "tenant_bytes_per_day", 400, begun),
            ("q", tenant, "tenant_bytes_per_day", 30, begun),
            ("r", tenant, "tenant_bytes_per_day", 9, begun - DAY),
            ("p", client, "client_registrations_per_day", 3, begun),
        ):
            count = QuotaCount(
                owner=owner, quota=quota, period=period, until=begun + 2 * DAY, used=used
            )
            await store.put_quota_counts(process, [count])
        await store.add(tenant, version)
        await store.stop()

    asyncio.run(use())

    shown = run_json("quota", "show", "--tenant", tenant)

    assert quotas_of(shown)["bytes_per_day"][2] == 430
    assert quotas_of(shown)["stored_bytes"] == (None, "[quotas]", version.size)
    assert quotas_of(shown["clients"][0])["registrations_per_day"][2] == 3


def test_the_table_has_a_row_for_each_quota(run: Any, tenant: str, client: str) -> None:
    rows = run("quota", "show", "--tenant", tenant).stdout.splitlines()

    assert rows[0].split() == ["of", "id", "quota", "limit", "set", "by", "used"]
    assert [row.split()[:3] for row in rows[1:6]] == [
        ["tenant", tenant, quota]
        for quota in (
            "requests_per_minute",
            "requests_at_a_time",
            "bytes_per_day",
            "registrations_per_day",
            "stored_bytes",
        )
    ]
    assert [row.split()[1] for row in rows[6:]] == [client] * 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["set", "--tenant", "a", "--bytes-per-day", "5"], "there is no tenant a"),
        (["set", "--client", "a", "--bytes-per-day", "5"], "there is no client a"),
        (["show", "--tenant", "a"], "there is no tenant a"),
    ],
)
def test_what_is_not_there_has_no_quotas(run: Any, words: list[str], message: str) -> None:
    done = run("quota", *words)

    assert done.returncode == 1
    assert message in done.stderr
