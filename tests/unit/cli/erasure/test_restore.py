"""``fhirpub restore``: orders and holds of a file are repeated, tenant by tenant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fhirpub.administration import tenants
from fhirpub.administration.erasure import operations
from fhirpub.administration.erasure.work import MAX_AT_ONCE
from fhirpub.cli.erasure.restore import restore
from tests.unit.cli.bureau import Bureau, run_without_store
from tests.unit.cli.erasure.records import erased


def an_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def an_order(number: int = 1, *, tenant: str = "t-1", **changes: Any) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "type": "DiagnosticReport",
        "id": an_id(number),
        "ordered": 1,
        "operator": "ana",
        "reason": "why",
        "allows_reuse": True,
        "version": 3,
        "finished": 2,
        **changes,
    }


def a_hold(number: int = 1, *, tenant: str = "t-1") -> dict[str, Any]:
    return {
        "tenant": tenant,
        "type": "Patient",
        "id": an_id(number),
        "since": 1,
        "operator": "ana",
        "reason": "why",
    }


def answer(**changes: Any) -> dict[str, Any]:
    """Return the answer to orders of one report."""
    return {"erased": [erased(id=an_id(1), **changes)], "refused": []}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "erasures.jsonl"


def write(file: Path, *records: Any) -> None:
    file.write_text("".join(json.dumps(one) + "\n" for one in records))


def test_an_order_is_repeated_as_one_that_is_not_carried_out(bureau: Bureau, file: Path) -> None:
    write(file, an_order())
    bureau.answer(tenants.LIST, [{"id": "t-1"}])
    bureau.answer(operations.REPEAT, answer())

    shown = bureau.json(restore, "--erasures", str(file))

    assert shown == {"erased": answer()["erased"], "unknown_tenants": []}
    (asked,) = bureau.asked[1:]
    assert asked.command == operations.REPEAT.command
    assert asked.arguments == {
        "tenant": "t-1",
        "orders": [an_order(version=0, finished=None)],
    }


def test_erasures_come_before_holds_that_would_forbid_them(bureau: Bureau, file: Path) -> None:
    write(file, a_hold(), an_order())
    bureau.answer(tenants.LIST, [{"id": "t-1"}])
    bureau.answer(operations.REPEAT, answer())

    bureau.json(restore, "--erasures", str(file))

    assert [sorted(one.arguments) for one in bureau.asked[1:]] == [
        ["orders", "tenant"],
        ["holds", "tenant"],
    ]
    assert bureau.asked[-1].arguments["holds"] == [a_hold()]


def test_each_tenant_gets_its_own(bureau: Bureau, file: Path) -> None:
    write(file, an_order(2, tenant="t-2"), an_order(1), a_hold(3, tenant="t-2"))
    bureau.answer(tenants.LIST, [{"id": "t-1"}, {"id": "t-2"}, {"id": "t-3"}])
    bureau.answer(operations.REPEAT, answer())

    bureau.json(restore, "--erasures", str(file))

    sent = [
        (one.arguments["tenant"], record["tenant"], record["id"])
        for one in bureau.asked[1:]
        for record in one.arguments.get("orders") or one.arguments["holds"]
    ]
    assert sent == [
        ("t-1", "t-1", an_id(1)),
        ("t-2", "t-2", an_id(2)),
        ("t-2", "t-2", an_id(3)),
    ]


def test_orders_of_a_tenant_that_the_store_lacks_are_passed_over(
    bureau: Bureau, file: Path
) -> None:
    write(file, an_order(tenant="t-9"), an_order(tenant="t-8"))
    bureau.answer(tenants.LIST, [{"id": "t-1"}])

    result = bureau.run(restore, "--erasures", str(file))

    assert result.stdout == "The file has no orders.\n"
    assert result.stderr.splitlines() == [
        "The store has no tenant t-8: its orders were passed over.",
        "The store has no tenant t-9: its orders were passed over.",
    ]
    assert len(bureau.asked) == 1


def test_not_more_holds_are_sent_at_once_than_an_operation_takes(
    bureau: Bureau, file: Path
) -> None:
    write(file, *map(a_hold, range(MAX_AT_ONCE + 1)))
    bureau.answer(tenants.LIST, [{"id": "t-1"}])

    bureau.json(restore, "--erasures", str(file))

    sent = [one.arguments["holds"] for one in bureau.asked[1:]]
    assert list(map(len, sent)) == [MAX_AT_ONCE, 1]
    assert [one["id"] for page in sent for one in page] == list(map(an_id, range(MAX_AT_ONCE + 1)))


def test_every_line_that_was_not_exported_is_named_and_nothing_is_done(
    bureau: Bureau, file: Path
) -> None:
    write(file, an_order(), {"tenant": "t-1"}, an_order(id="x"), [1], a_hold(), 7, None)
    file.write_text(file.read_text() + "{\n")

    result = bureau.run(restore, "--erasures", str(file))

    assert result.exit_code == 1
    assert result.stderr.strip().endswith(
        f"{file}: not written by `fhirpub erase export`: line 2, 3, 4, 6, 7, 8"
    )
    assert bureau.asked == []


def test_what_is_left_to_know_is_printed_apart(bureau: Bureau, file: Path) -> None:
    write(file, an_order())
    bureau.answer(tenants.LIST, [{"id": "t-1"}])
    bureau.answer(operations.REPEAT, answer(documents_later=2))

    result = bureau.run(restore, "--erasures", str(file))

    assert result.stdout.splitlines()[1].startswith(f"DiagnosticReport/{an_id(1)}")
    assert result.stderr.startswith("2 documents were added within the last hour")


def test_no_store_is_created_to_be_restored(tmp_path: Path, file: Path) -> None:
    write(file, an_order())

    assert not run_without_store(tmp_path, restore, "--erasures", str(file)).exists()


def test_what_was_erased_of_all_tenants_is_shown(bureau: Bureau, file: Path) -> None:
    write(file, an_order(1), an_order(2, tenant="t-2"), a_hold(3, tenant="t-2"))
    bureau.answer(tenants.LIST, [{"id": "t-1"}, {"id": "t-2"}])
    second = {"erased": [erased(id=an_id(2))], "refused": []}
    bureau.answer(operations.REPEAT, answer(), second, {"erased": [], "refused": []})

    shown = bureau.json(restore, "--erasures", str(file))

    assert [one["id"] for one in shown["erased"]] == [an_id(1), an_id(2)]
