"""Which status a revision may have, where the order of statuses is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.config.settings import TypeConfig
from tests.unit.interactions.patients.people import Ward
from tests.unit.interactions.revision.revising import (
    REPORT,
    numbered,
    refused,
    registered,
    revised,
)


@pytest.fixture
def flow(monkeypatch: pytest.MonkeyPatch) -> Callable[[Ward, Any], None]:
    """Let the reports of a ward have a ``state_flow``."""

    def set_flow(ward: Ward, state_flow: Any) -> None:
        context = ward.context
        by_type = {"diagnosticreport": TypeConfig(state_flow=state_flow)}
        changed = replace(context, config=replace(context.config, by_type=by_type))
        monkeypatch.setattr(Ward, "context", property(lambda _ward: changed))

    return set_flow


async def places(ward: Ward, *args: Any, **changes: Any) -> list[str]:
    return [place for place, _rule in await refused(ward, *args, **changes)]


async def test_with_a_clinical_state_flow_a_final_report_stays_final(
    ward: Ward, flow: Callable[..., None]
) -> None:
    report = await registered(ward, numbered(1), status="final")
    flow(ward, "clinical")

    found = await places(ward, report, numbered(1), status="preliminary")

    assert found == ["DiagnosticReport.status"]


async def test_with_an_open_state_flow_any_status_of_updates_may_follow(
    ward: Ward, flow: Callable[..., None]
) -> None:
    report = await registered(ward, numbered(1), status="final")
    flow(ward, "open")

    assert (await revised(ward, report, numbered(1), status="preliminary")).created


@pytest.mark.parametrize("changes", [{"value": 7.5}, {"conclusion": "x"}])
async def test_with_a_clinical_state_flow_final_does_not_follow_final(
    ward: Ward, flow: Callable[..., None], changes: dict[str, Any]
) -> None:
    report = await registered(ward, numbered(1), status="final")
    flow(ward, "clinical")
    entry = numbered(1, changes.pop("value", 13.2))

    assert await places(ward, report, entry, status="final", **changes) == [
        "DiagnosticReport.status"
    ]
    assert (await revised(ward, report, entry, status="amended", **changes)).created


async def test_with_a_clinical_state_flow_a_repetition_stores_nothing(
    ward: Ward, flow: Callable[..., None]
) -> None:
    report = await registered(ward, numbered(1), status="final")
    flow(ward, "clinical")

    again = await revised(ward, report, numbered(1), status="final")

    assert again.created is False


async def test_with_a_clinical_state_flow_preliminary_follows_preliminary(
    ward: Ward, flow: Callable[..., None]
) -> None:
    report = await registered(ward, numbered(1))
    flow(ward, "clinical")

    assert (await revised(ward, report, numbered(1, 7.5), status="preliminary")).created


async def test_a_status_that_no_update_may_have_is_refused_once(
    ward: Ward, flow: Callable[..., None]
) -> None:
    report = await registered(ward, numbered(1), status="final")
    flow(ward, "clinical")
    served = ward.context.types[REPORT]
    one = min(served.create_statuses - served.update_statuses)

    assert await places(ward, report, numbered(1), status=one) == ["DiagnosticReport.status"]
