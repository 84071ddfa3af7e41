"""Orders are carried out some at a time, all of them once, and interrupted ones page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from fhirpub.administration.erasure import operations
from fhirpub.administration.erasure.work import MAX_AT_ONCE
from fhirpub.administration.operation import Operation
from fhirpub.cli import progress_line
from fhirpub.cli.erasure.carrying_out import carry_out, complete


@pytest.mark.parametrize(
    ("number", "sizes"),
    [
        (0, []),
        (MAX_AT_ONCE, [MAX_AT_ONCE]),
        (MAX_AT_ONCE + 1, [MAX_AT_ONCE, 1]),
        (2 * MAX_AT_ONCE, [MAX_AT_ONCE] * 2),
    ],
)
async def test_each_order_is_carried_out_once_in_its_order(number: int, sizes: list[int]) -> None:
    acted: list[list[int]] = []

    async def act(orders: Sequence[int]) -> dict[str, Any]:
        acted.append([*orders])
        return {"erased": [{"id": one} for one in orders], "refused": [f"{orders[0]}"]}

    erased, refused = await carry_out(range(number), act)

    assert [len(some) for some in acted] == sizes
    assert [one["id"] for one in erased] == [*range(number)]
    assert refused == [f"{some[0]}" for some in acted]


async def test_interrupted_orders_are_completed_page_by_page() -> None:
    asked: list[dict[str, Any]] = []

    async def call(operation: Operation, **given: Any) -> Any:
        assert operation is operations.RESUME
        asked.append(given)
        following = "next" if not given["after"] else None
        return {"erased": [{"after": given["after"]}], "following": following}

    erased = await complete(call, "t")

    assert asked == [{"tenant": "t", "after": ""}, {"tenant": "t", "after": "next"}]
    assert erased == [{"after": ""}, {"after": "next"}]


@pytest.mark.usefixtures("terminal")
async def test_progress_is_shown_on_a_terminal_and_ends_with_its_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_line, "_SECONDS_ON_TERMINAL", 0)

    async def act(_orders: Sequence[int]) -> dict[str, Any]:
        return {"erased": [], "refused": []}

    await carry_out(range(MAX_AT_ONCE + 1), act)

    total = f"of {MAX_AT_ONCE + 1:,} resources"
    shown = [f"0 {total}", f"{MAX_AT_ONCE:,} {total}"]
    assert capsys.readouterr().err == "".join(f"\r{text:<70}" for text in shown) + "\n"


@pytest.mark.usefixtures("terminal")
async def test_a_line_is_ended_before_an_error_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_line, "_SECONDS_ON_TERMINAL", 0)

    async def act(_orders: Sequence[int]) -> dict[str, Any]:
        raise LookupError

    with pytest.raises(LookupError):
        await carry_out([1], act)

    assert capsys.readouterr().err.endswith(" \n")


async def test_what_is_erased_at_once_shows_no_progress(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def act(_orders: Sequence[int]) -> dict[str, Any]:
        return {"erased": [], "refused": []}

    await carry_out([1], act)

    assert capsys.readouterr().err == ""
