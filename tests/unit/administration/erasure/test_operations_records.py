"""Which lines of an export can be carried out in another store."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.administration.erasure import operations
from fhirpub.errors import InvalidContent
from fhirpub.storage.erasure.contract import Erasure, Hold

LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999."""
ORDER: dict[str, Any] = {
    "tenant": "t-1",
    "type": "DiagnosticReport",
    "id": "00000000-0000-4000-8000-000000000001",
    "ordered": 1,
    "operator": "ana",
    "reason": "why",
    "allows_reuse": True,
    "version": 3,
    "finished": 2,
}
HOLD: dict[str, Any] = {
    **{name: ORDER[name] for name in ("tenant", "type", "id", "operator", "reason")},
    "since": 1,
}


def test_an_order_is_one_that_was_not_carried_out() -> None:
    found = operations.record_of(ORDER)

    assert isinstance(found, Erasure)
    assert (found.version, found.finished) == (0, None)
    assert (found.ordered, found.reason, found.allows_reuse) == (1, "why", True)


def test_a_line_with_a_beginning_is_a_hold() -> None:
    assert operations.record_of(HOLD) == Hold(**HOLD)


@pytest.mark.parametrize("moment", [0, 1, LATEST])
def test_a_moment_is_in_the_years_that_can_be_written(moment: int) -> None:
    order = operations.record_of({**ORDER, "ordered": moment})
    hold = operations.record_of({**HOLD, "since": moment})

    assert (isinstance(order, Erasure) and order.ordered) == moment
    assert (isinstance(hold, Hold) and hold.since) == moment


@pytest.mark.parametrize(
    ("record", "changes"),
    [
        (ORDER, {"ordered": -1}),
        (ORDER, {"ordered": LATEST + 1}),
        (HOLD, {"since": -1}),
        (HOLD, {"since": LATEST + 1}),
        (ORDER, {"ordered": "1"}),
        (ORDER, {"ordered": True}),
        (ORDER, {"allows_reuse": 1}),
        (ORDER, {"id": "a/b"}),
        (ORDER, {"reason": "x" * 2_001}),
        (HOLD, {"operator": "x" * 2_001}),
        (HOLD, {"type": "x" * 2_001}),
        (ORDER, {"other": 1}),
    ],
)
def test_what_the_service_cannot_have_written_is_refused(
    record: dict[str, Any], changes: dict[str, Any]
) -> None:
    with pytest.raises(InvalidContent) as refused:
        operations.record_of({**record, **changes}, "holds")

    (issue,) = refused.value.issues
    assert issue.expression == "holds"
    assert issue.diagnostics == "has one that was not written by `fhirpub erase export`"


def test_a_text_may_be_as_long_as_commands_take_it() -> None:
    longest = "x" * 2_000

    found = operations.record_of({**ORDER, "reason": longest, "operator": longest})

    assert found.reason == found.operator == longest
