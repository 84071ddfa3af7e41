"""``fhirpub quota``: what it asks for, and what it prints of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration import quotas
from fhirpub.cli.quota.command import quota
from tests.unit.cli.bureau import Bureau


@pytest.mark.parametrize("owner", ["tenant", "client"])
def test_limits_and_what_returns_to_its_default_are_sent(bureau: Bureau, owner: str) -> None:
    bureau.run(
        quota,
        *("set", f"--{owner}", "x", "--requests-per-minute", "600", "--bytes-per-day", "0"),
        *("--registrations-per-day", "default"),
    )

    assert bureau.only() == (
        f"quota set --{owner}",
        {
            owner: "x",
            "requests_per_minute": 600,
            "bytes_per_day": 0,
            "defaults": ["registrations_per_day"],
        },
    )


def test_the_only_limit_may_be_none(bureau: Bureau) -> None:
    bureau.run(quota, "set", "--tenant", "t-1", "--stored-bytes", "0")

    assert bureau.only()[1] == {"tenant": "t-1", "stored_bytes": 0, "defaults": []}


def test_each_limit_has_an_option(bureau: Bureau) -> None:
    words = [
        *("--requests-per-minute", "1", "--requests-at-a-time", "2", "--bytes-per-day", "3"),
        *("--registrations-per-day", "4", "--stored-bytes", "5"),
    ]

    bureau.run(quota, "set", "--tenant", "t-1", *words)

    assert bureau.only()[1] == {
        "tenant": "t-1",
        "requests_per_minute": 1,
        "requests_at_a_time": 2,
        "bytes_per_day": 3,
        "registrations_per_day": 4,
        "stored_bytes": 5,
        "defaults": [],
    }


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--requests-per-minute 1", "name either --tenant or --client"),
        ("--tenant t --client c --requests-per-minute 1", "name either --tenant or --client"),
        ("--tenant t", "name at least one limit"),
        ("--client c --stored-bytes 1", "--stored-bytes is a limit of tenants, not of clients"),
        ("--client c --stored-bytes default", "--stored-bytes is a limit of tenants"),
        ("--client c --stored-bytes 0", "--stored-bytes is a limit of tenants"),
        ("--tenant t --requests-per-minute -1", "'-1' is neither a number up to"),
        ("--tenant t --requests-per-minute 9007199254740993", "is neither a number up to"),
        ("--tenant t --requests-per-minute many", "'many' is neither a number up to"),
    ],
)
def test_what_cannot_be_set_is_wrong_usage(bureau: Bureau, words: str, problem: str) -> None:
    done = bureau.run(quota, "set", *words.split())

    assert done.exit_code == 2
    assert problem in done.stderr
    assert bureau.asked == []


def test_the_table_names_the_owner_of_each_limit(bureau: Bureau) -> None:
    item: dict[str, Any] = {"quota": "bytes_per_day", "limit": 7, "set_by": "tenant", "used": 3}
    shown = {
        "tenant": "t-1",
        "quotas": [item],
        "clients": [
            {"client_id": "c-1", "quotas": [{**item, "limit": 9}]},
            {"client_id": "c-2", "quotas": [item, {**item, "quota": "requests_per_minute"}]},
        ],
    }
    bureau.answer(quotas.SHOW, shown)

    heading, *rows = bureau.run(quota, "show", "--tenant", "t-1").stdout.splitlines()

    assert heading.split() == ["of", "id", "quota", "limit", "set", "by", "used"]
    assert [row.split() for row in rows] == [
        ["tenant", "t-1", "bytes_per_day", "7", "tenant", "3"],
        ["client", "c-1", "bytes_per_day", "9", "tenant", "3"],
        ["client", "c-2", "bytes_per_day", "7", "tenant", "3"],
        ["client", "c-2", "requests_per_minute", "7", "tenant", "3"],
    ]
    assert bureau.json(quota, "show", "--tenant", "t-1") == shown
