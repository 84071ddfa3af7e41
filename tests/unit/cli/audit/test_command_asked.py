"""``fhirpub audit``: what it asks for, and what it prints of the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from fhirpub.administration.audit import operations
from fhirpub.cli.audit.command import audit
from tests.unit.cli.bureau import Bureau, run_without_store


def a_record(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "tenant": "t-1",
        "at": 1_772_448_300_000 + number,
        "client": "c-1",
        "address": "192.0.2.7",
        "action": "read",
        "status": 200,
        "what": [f"DiagnosticReport/{number}"],
        **changes,
    }


def page(*records: dict[str, Any], following: Any = None) -> dict[str, Any]:
    return {"records": list(records), "following": following}


def cells(bureau: Bureau, record: dict[str, Any]) -> list[str]:
    """Return what a row of the table has of a record."""
    bureau.answer(operations.LIST, page(record))
    *_heading, row = bureau.run(audit, "list", "--tenant", "t-1").stdout.splitlines()
    return [cell.strip() for cell in row.split("  ") if cell]


def verdict(chain: str, text: str = "right") -> dict[str, Any]:
    return {"tenant": chain, "records": 1, "blocks": 1, "checkpoints": 1, "verdict": text}


# Lists


def test_fifty_records_of_each_chain_are_listed(bureau: Bureau) -> None:
    bureau.answer(operations.CHAINS, ["service", "t-1"])
    bureau.answer(operations.LIST, page(a_record(2)), page(a_record(1)))

    assert bureau.json(audit, "list") == [a_record(2), a_record(1)]
    assert [(one.command, one.arguments) for one in bureau.asked] == [
        ("audit list", {}),
        ("audit list --tenant", {"chain": "service", "limit": 50}),
        ("audit list --tenant", {"chain": "t-1", "limit": 50}),
    ]


def test_records_are_listed_as_they_are_asked_for(bureau: Bureau) -> None:
    bureau.answer(operations.LIST, page())

    result = bureau.run(
        audit,
        *("list", "--tenant", "t-1", "--patient", "Patient/1", "--entity", "Organization/2"),
        *("--agent", "c-1", "--action", "read", "--limit", "7"),
        *("--since", "2026-03-02T08:00:00Z", "--until", "2026-03-03T00:00:00Z"),
    )

    assert result.output == "No records.\n"
    assert bureau.only()[1] == {
        "chain": "t-1",
        "patient": "Patient/1",
        "entity": "Organization/2",
        "agent": "c-1",
        "action": "read",
        "since": "2026-03-02T08:00:00.000Z",
        "until": "2026-03-03T00:00:00.000Z",
        "limit": 7,
    }


def test_the_examples_in_the_help_can_be_run(bureau: Bureau) -> None:
    bureau.answer(operations.LIST, page())
    lines = audit.get_command(click.Context(audit), "list").epilog.splitlines()  # type: ignore[union-attr]
    examples = [line.split()[2:] for line in lines if line.strip().startswith("fhirpub audit")]

    assert [bureau.run(audit, *words).exit_code for words in examples] == [0, 0]


def test_pages_are_read_until_there_are_as_many_as_wanted(bureau: Bureau) -> None:
    pages = [page(a_record(n), a_record(n - 1), following=f"p{n}") for n in (9, 7, 5)]
    bureau.answer(operations.LIST, *pages)

    found = bureau.json(audit, "list", "--tenant", "t-1", "--limit", "4")

    assert [one["at"] % 10 for one in found] == [9, 8, 7, 6]
    assert [(one.arguments["limit"], one.arguments.get("from")) for one in bureau.asked] == [
        (4, None),
        (2, "p9"),
    ]


def test_a_chain_that_ends_is_read_no_more(bureau: Bureau) -> None:
    bureau.answer(operations.LIST, page(a_record(2), following="p"), page(a_record(1)))

    assert len(bureau.json(audit, "list", "--tenant", "t-1")) == 2
    assert len(bureau.asked) == 2


@pytest.mark.parametrize("limit", ["0", "100001"])
def test_a_limit_that_is_too_small_or_large_is_refused(bureau: Bureau, limit: str) -> None:
    assert bureau.run(audit, "list", "--limit", limit).exit_code == 2
    assert bureau.asked == []


def test_a_row_has_who_did_what_from_where(bureau: Bureau) -> None:
    assert cells(bureau, a_record(1)) == [
        *("2026-03-02T10:45:00.001Z", "t-1", "c-1", "192.0.2.7", "read", "200"),
        "DiagnosticReport/1",
    ]


def test_a_row_of_an_operator_has_the_user_and_the_host(bureau: Bureau) -> None:
    record = a_record(client=None, address=None, user="ana", host="desk")

    assert cells(bureau, record)[2:4] == ["ana", "desk"]


@pytest.mark.parametrize(
    ("what", "shown"),
    [
        (["Observation/1"], "Patient/7, Observation/1"),
        (["Observation/1", "Observation/2"], "Patient/7, Observation/1, Observation/2"),
        (
            ["Observation/1", "Observation/2", "Observation/3"],
            "Patient/7, Observation/1, Observation/2, …",
        ),
    ],
)
def test_a_row_names_three_at_most_and_patients_first(
    bureau: Bureau, what: list[str], shown: str
) -> None:
    assert cells(bureau, a_record(patients=["Patient/7"], what=what))[-1] == shown


# Exports


def test_an_export_goes_on_behind_the_last_block(bureau: Bureau) -> None:
    bureau.answer(operations.CHAINS, ["service", "t-1"])
    pages = [page({"place": 1}, following=5), page({"place": 2}), page({"place": 3, "é": "ü"})]
    bureau.answer(operations.EXPORT, *pages)

    result = bureau.run(audit, "export")

    assert result.stdout.splitlines() == ['{"place": 1}', '{"place": 2}', '{"place": 3, "é": "ü"}']
    assert result.stderr == "3 records exported.\n"
    assert [(one.arguments["chain"], one.arguments["after"]) for one in bureau.asked[1:]] == [
        ("service", 0),
        ("service", 5),
        ("t-1", 0),
    ]


def test_an_export_to_a_file_prints_only_the_number(bureau: Bureau, tmp_path: Path) -> None:
    bureau.answer(operations.EXPORT, page({"place": 1}))
    file = tmp_path / "audit.ndjson"

    result = bureau.run(audit, "export", "--tenant", "t-1", "--out", str(file))

    assert (result.stdout, result.stderr) == ("", "1 records exported.\n")
    assert file.read_text() == '{"place": 1}\n'


# Verification


def test_every_chain_is_verified_and_one_that_is_wrong_is_a_failure(bureau: Bureau) -> None:
    bureau.answer(operations.CHAINS, ["service", "t-1"])
    bureau.answer(operations.VERIFY, verdict("service"), verdict("t-1", "block 3 was changed"))

    result = bureau.run(audit, "verify", "--json")

    assert result.exit_code == 1
    assert [one["tenant"] for one in json.loads(result.stdout)] == ["service", "t-1"]


def test_chains_that_are_right_are_no_failure(bureau: Bureau) -> None:
    bureau.answer(operations.VERIFY, verdict("t-1"))

    result = bureau.run(audit, "verify", "--tenant", "t-1")

    assert result.exit_code == 0
    assert bureau.only() == ("audit verify", {"chain": "t-1"})


def test_checkpoints_of_a_file_are_sent_with_each_chain(bureau: Bureau, tmp_path: Path) -> None:
    file = tmp_path / "checkpoints.ndjson"
    file.write_text('{"checkpoint": "a.b.c"}\n{"checkpoint": "d.e.f", "tenant": "t-1"}\n')
    bureau.answer(operations.CHAINS, ["service", "t-1"])
    bureau.answer(operations.VERIFY, verdict("t-1"))

    bureau.run(audit, "verify", "--checkpoints", str(file))

    assert [one.arguments.get("checkpoints") for one in bureau.asked[1:]] == [
        ["a.b.c", "d.e.f"]
    ] * 2


@pytest.mark.parametrize("words", [("list",), ("export",), ("verify",)])
def test_no_store_is_created_to_be_read(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert not run_without_store(tmp_path, audit, *words).exists()


def test_a_page_on_which_nothing_matches_is_not_the_last(bureau: Bureau) -> None:
    bureau.answer(operations.LIST, page(following="p"), page(a_record(1)))

    assert bureau.json(audit, "list", "--tenant", "t-1") == [a_record(1)]


def test_the_beginning_of_1970_is_a_time(bureau: Bureau) -> None:
    bureau.answer(operations.LIST, page())

    bureau.json(audit, "list", "--tenant", "t-1", "--since", "1970-01-01T00:00:00Z")

    assert bureau.only()[1]["since"] == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize("line", ["{}", "[]", "7", "null", "x", '{"checkpoint": "a"}\n[1]'])
def test_a_file_with_another_line_than_checkpoints_is_refused(
    bureau: Bureau, tmp_path: Path, line: str
) -> None:
    (tmp_path / "f").write_text(line)

    result = bureau.run(audit, "verify", "--checkpoints", str(tmp_path / "f"))

    assert (result.exit_code, bureau.asked) == (1, [])
    assert "is not a file of checkpoints" in result.stderr


def test_a_chain_that_is_wrong_is_a_failure_whichever_it_is(bureau: Bureau) -> None:
    bureau.answer(operations.CHAINS, ["service", "t-1"])
    bureau.answer(operations.VERIFY, verdict("service", "block 3 was changed"), verdict("t-1"))

    assert bureau.run(audit, "verify").exit_code == 1
