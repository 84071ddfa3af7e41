"""``fhirpub audit verify --checkpoints``: files with more lines than one call takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fhirpub.administration.audit import operations
from fhirpub.cli.audit.command import audit
from tests.unit.cli.bureau import Bureau


def verdict(text: str = "right", *, checkpoints: int = 3) -> dict[str, Any]:
    return {
        "tenant": "t-1",
        "records": 1,
        "blocks": 1,
        "checkpoints": checkpoints,
        "verdict": text,
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with 1,500 checkpoints of a chain, and as many of the service."""
    lines = [
        {"tenant": tenant, "checkpoint": f"{tenant}.{number}"}
        for number in range(1_500)
        for tenant in ("t-1", "")
    ]
    path = tmp_path / "checkpoints.ndjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def sent(bureau: Bureau) -> list[list[str]]:
    """Return the checkpoints of each call that had some."""
    every = [one.arguments.get("checkpoints") for one in bureau.asked]
    return [some for some in every if some]


def test_all_checkpoints_of_a_chain_are_sent_a_thousand_at_a_time(
    bureau: Bureau, file: Path
) -> None:
    bureau.answer(operations.VERIFY, verdict())

    bureau.run(audit, "verify", "--tenant", "lab", "--checkpoints", str(file))

    assert [len(some) for some in sent(bureau)] == [1_000, 500]
    assert [one for some in sent(bureau) for one in some] == [f"t-1.{n}" for n in range(1_500)]


def test_the_checkpoints_of_all_calls_are_counted_once(bureau: Bureau, file: Path) -> None:
    bureau.answer(operations.VERIFY, verdict(), verdict(checkpoints=1_003), verdict())

    result = bureau.run(audit, "verify", "--tenant", "lab", "--checkpoints", str(file), "--json")

    assert [one["checkpoints"] for one in json.loads(result.stdout)] == [1_503]


def test_a_chain_that_is_wrong_by_later_checkpoints_is_wrong(bureau: Bureau, file: Path) -> None:
    wrong = verdict("the chain ends here")
    bureau.answer(operations.VERIFY, verdict(), verdict(), wrong)

    result = bureau.run(audit, "verify", "--tenant", "lab", "--checkpoints", str(file))

    assert result.exit_code == 1


def test_a_chain_that_is_wrong_is_not_followed_again(bureau: Bureau, file: Path) -> None:
    bureau.answer(operations.VERIFY, verdict(), verdict("block 3 was changed"), verdict())

    result = bureau.run(audit, "verify", "--tenant", "lab", "--checkpoints", str(file))

    assert result.exit_code == 1
    assert len(sent(bureau)) == 1


def test_a_thousand_lines_are_sent_by_one_call(bureau: Bureau, tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.ndjson"
    path.write_text('{"checkpoint": "a.b.c"}\n' * 1_000)
    bureau.answer(operations.VERIFY, verdict())

    bureau.run(audit, "verify", "--tenant", "t-1", "--checkpoints", str(path))

    assert [len(one.arguments["checkpoints"]) for one in bureau.asked] == [1_000]


def test_a_line_that_names_no_chain_is_sent_for_each(bureau: Bureau, tmp_path: Path) -> None:
    path = tmp_path / "checkpoints.ndjson"
    path.write_text('{"checkpoint": "a.b.c"}\n' * 1_001)
    bureau.answer(operations.VERIFY, verdict())

    bureau.run(audit, "verify", "--tenant", "t-1", "--checkpoints", str(path))

    assert [len(some) for some in sent(bureau)] == [1_000, 1]
