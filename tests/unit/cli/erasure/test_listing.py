"""``fhirpub erase list``, ``export`` and ``resume``: what they ask for, and what they print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fhirpub.administration import tenants
from fhirpub.administration.erasure import holds, operations
from fhirpub.cli.erasure.erase import erase
from tests.unit.cli.bureau import Bureau, run_without_store
from tests.unit.cli.erasure.records import erased

ORDER = {
    "tenant": "t-1",
    "type": "DiagnosticReport",
    "id": "r-1",
    "version": 3,
    "ordered": 1_700_000_000_000,
    "operator": "ana",
    "reason": "why",
    "finished": 1_700_000_000_001,
}
HOLD = {"tenant": "t-1", "type": "Patient", "id": "é"}


def page(*orders: dict[str, Any], following: str | None = None) -> dict[str, Any]:
    return {"orders": list(orders), "following": following}


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ((), {"unfinished": False, "after": ""}),
        (("--unfinished",), {"unfinished": True, "after": ""}),
        (("--tenant", "t-1"), {"tenant": "t-1", "unfinished": False, "after": ""}),
    ],
)
def test_orders_are_listed_as_they_are_asked_for(
    bureau: Bureau, words: tuple[str, ...], arguments: dict[str, Any]
) -> None:
    bureau.answer(operations.LIST, page(ORDER))

    assert bureau.json(erase, "list", *words) == [ORDER]
    assert bureau.only() == ("erase list", arguments)


def test_all_pages_are_listed(bureau: Bureau) -> None:
    other = {**ORDER, "id": "r-2"}
    bureau.answer(operations.LIST, page(ORDER, following="x"), page(other))

    assert bureau.json(erase, "list", "--tenant", "t-1", "--unfinished") == [ORDER, other]
    common = {"tenant": "t-1", "unfinished": True}
    assert [one.arguments for one in bureau.asked] == [
        {**common, "after": ""},
        {**common, "after": "x"},
    ]


@pytest.mark.parametrize(("finished", "text"), [(None, "no"), (0, "yes")])
def test_a_row_states_whether_an_order_is_finished(
    bureau: Bureau, finished: int | None, text: str
) -> None:
    bureau.answer(operations.LIST, page({**ORDER, "finished": finished}))

    lines = bureau.run(erase, "list").stdout.splitlines()

    assert lines[0].split() == ["resource", "tenant", "ordered", "operator", "reason", "finished"]
    assert lines[1].split() == [
        *("DiagnosticReport/r-1", "t-1", "2023-11-14T22:13:20.000Z", "ana", "why", text)
    ]


def test_an_empty_list_is_one_sentence(bureau: Bureau) -> None:
    bureau.answer(operations.LIST, page())

    assert bureau.run(erase, "list").stdout == "Nothing was erased.\n"


def test_orders_and_the_holds_of_all_tenants_are_exported(bureau: Bureau, tmp_path: Path) -> None:
    bureau.answer(operations.LIST, page(ORDER, {**ORDER, "version": 0}))
    bureau.answer(tenants.LIST, [{"id": "t-1"}, {"id": "t-2"}])
    bureau.answer(holds.LIST, [HOLD], [])

    result = bureau.run(erase, "export", str(tmp_path / "f"))

    assert result.exit_code == 0, result.output
    text = (tmp_path / "f").read_text(encoding="utf-8")
    assert [json.loads(line) for line in text.splitlines()] == [ORDER, HOLD]
    assert '"é"' in text
    assert [one.arguments["tenant"] for one in bureau.asked if one.command == "hold list"] == [
        "t-1",
        "t-2",
    ]


def test_what_is_exported_of_one_tenant_is_only_of_it(bureau: Bureau) -> None:
    bureau.answer(operations.LIST, page(ORDER))
    bureau.answer(holds.LIST, [HOLD])

    result = bureau.run(erase, "export", "--tenant", "t-1")

    assert [json.loads(line) for line in result.stdout.splitlines()] == [ORDER, HOLD]
    assert [(one.command, one.arguments["tenant"]) for one in bureau.asked] == [
        ("erase list", "t-1"),
        ("hold list", "t-1"),
    ]


def test_without_an_interrupted_order_there_is_nothing_to_resume(bureau: Bureau) -> None:
    bureau.answer(operations.RESUME, {"erased": [], "following": None})

    result = bureau.run(erase, "resume", "--tenant", "t-1")

    assert result.stdout == "No order was interrupted.\n", result.output
    assert bureau.asked[0].arguments["tenant"] == "t-1"


def test_the_tenant_of_what_is_resumed_must_be_named(bureau: Bureau) -> None:
    assert bureau.run(erase, "resume").exit_code == 2


@pytest.mark.parametrize("words", [("list",), ("export",), ("resume", "--tenant", "t-1")])
def test_no_store_is_created_to_find_nothing_in_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert not run_without_store(tmp_path, erase, *words).exists()


ERASED = erased(documents_later=1_200, is_complete=False)


def test_what_is_resumed_is_a_table_and_what_is_left_is_beside_it(bureau: Bureau) -> None:
    bureau.answer(operations.RESUME, {"erased": [ERASED], "following": None})

    result = bureau.run(erase, "resume", "--tenant", "t-1")

    heading, row = result.stdout.splitlines()
    assert heading.split()[0] == "resource"
    assert row.split() == ["DiagnosticReport/r-1", "2", "3", "4", "1", "9"]
    assert result.stderr.startswith("1,200 documents were added within the last hour")
    assert result.stderr.count("\n") == 1


def test_json_of_what_is_resumed_is_alone(bureau: Bureau) -> None:
    other = {**ERASED, "id": "r-2"}
    bureau.answer(
        operations.RESUME,
        {"erased": [ERASED], "following": "x"},
        {"erased": [other], "following": None},
    )

    result = bureau.run(erase, "resume", "--tenant", "t-1", "--json")

    assert json.loads(result.stdout) == [ERASED, other]
    assert result.stderr == ""
    assert [one.arguments["after"] for one in bureau.asked] == ["", "x"]
