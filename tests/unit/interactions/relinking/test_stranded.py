"""What would be left at a Patient that nothing states anything about any more."""

from __future__ import annotations

import pytest

from fhirpub.interactions.relinking import stranded
from fhirpub.interactions.relinking.relink import NotMovable, Relink, plan_relink
from fhirpub.interactions.relinking.stranded import left_behind, refuse_stranded
from fhirpub.interactions.relinking.targets import person_with
from fhirpub.storage.contract import Version
from tests.unit.interactions.patients.people import (
    NATIONAL,
    Ward,
    id_of,
    person,
)


async def planned(ward: Ward, *versions: Version, to: str = "2") -> list[Relink]:
    target = person_with(NATIONAL, to, **ward.named)
    return [await plan_relink(one.id, target, **ward.named) for one in versions]


async def left(ward: Ward, *versions: Version, to: str = "2") -> list[tuple[str, list[str]]]:
    moving = await planned(ward, *versions, to=to)
    return [one async for one in left_behind(moving, **ward.named)]


async def stating(ward: Ward, value: str) -> Version:
    return await ward.report(value, person((NATIONAL, "1")))


async def test_the_only_report_of_a_patient_leaves_nothing(ward: Ward) -> None:
    report = await stating(ward, "R-1")

    assert await left(ward, report) == []
    await refuse_stranded(await planned(ward, report), **ward.named)


async def test_a_report_with_a_reference_alone_would_be_left(ward: Ward) -> None:
    report = await stating(ward, "R-1")
    referring = await ward.referring("R-2", id_of(report))

    assert await left(ward, report) == [(id_of(report), [f"DiagnosticReport/{referring.id}"])]
    with pytest.raises(NotMovable) as refused:
        await refuse_stranded(await planned(ward, report), **ward.named)
    assert str(refused.value) == (
        f"DiagnosticReport/{referring.id} would stay with Patient/{id_of(report)}, of which "
        "nothing would be known any more: move first what was registered with a reference alone"
    )


async def test_what_moves_together_is_not_left(ward: Ward) -> None:
    report = await stating(ward, "R-1")
    referring = await ward.referring("R-2", id_of(report))

    assert await left(ward, report, referring) == []


async def test_another_statement_is_enough(ward: Ward) -> None:
    report, other = await stating(ward, "R-1"), await stating(ward, "R-3")
    await ward.referring("R-2", id_of(report))

    assert await left(ward, report) == []
    assert len(await left(ward, report, other)) == 1


async def test_a_vaccination_that_states_the_patient_is_enough(ward: Ward) -> None:
    report = await stating(ward, "R-1")
    await ward.referring("R-2", id_of(report))
    await ward.vaccination("V-1", person((NATIONAL, "1")))

    assert await left(ward, report) == []


async def test_a_statement_behind_a_batch_is_enough(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stranded, "_BATCH", 1)
    last = await stating(ward, "R-0")
    reports = [await stating(ward, f"R-{number}") for number in (1, 2)]
    await ward.referring("R-9", id_of(last))

    assert await left(ward, *reports) == []
    assert len(await left(ward, last, *reports)) == 1


async def test_a_report_that_states_nothing_leaves_nothing(ward: Ward) -> None:
    report = await stating(ward, "R-1")
    referring = await ward.referring("R-2", id_of(report))

    assert await left(ward, referring) == []


async def test_a_report_that_stays_leaves_nothing(ward: Ward) -> None:
    report = await stating(ward, "R-1")
    await ward.referring("R-2", id_of(report))

    assert await left(ward, report, to="1") == []


async def test_what_refers_to_the_patient_of_one_report_would_be_left(ward: Ward) -> None:
    report = await ward.report("R-1", person())
    referring = await ward.referring("R-2", id_of(report))

    assert await left(ward, report) == [(id_of(report), [f"DiagnosticReport/{referring.id}"])]


async def test_a_report_that_only_refers_leaves_nothing_of_the_patient_of_another(
    ward: Ward,
) -> None:
    report = await ward.report("R-1", person())
    first, _second = [await ward.referring(f"R-{one}", id_of(report)) for one in (2, 3)]

    assert await left(ward, first) == []


@pytest.mark.parametrize(("count", "named"), [(4, 4), (5, 5), (6, 5)])
async def test_a_few_of_what_would_be_left_are_named(ward: Ward, count: int, named: int) -> None:
    report = await stating(ward, "R-1")
    for number in range(count):
        await ward.referring(f"R-{number + 2}", id_of(report))

    ((_patient_id, addresses),) = await left(ward, report)

    assert len({*addresses}) == named


async def test_what_moves_does_not_hide_what_would_be_left(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stranded, "_MOST_NAMED", 1)
    report = await stating(ward, "R-1")
    staying = await ward.referring("R-2", id_of(report))
    moving = [await ward.referring(f"R-{number}", id_of(report)) for number in (3, 4)]

    ((_patient_id, addresses),) = await left(ward, report, *moving)

    assert addresses == [f"DiagnosticReport/{staying.id}"]


async def test_each_patient_is_named_once(ward: Ward) -> None:
    reports = [await stating(ward, f"R-{number}") for number in range(2)]
    await ward.referring("R-9", id_of(reports[0]))

    assert len(await left(ward, *reports)) == 1


async def test_what_refers_to_another_patient_is_not_left(ward: Ward) -> None:
    report = await stating(ward, "R-1")
    other = await ward.report("R-2", person((NATIONAL, "7")))
    await ward.referring("R-3", id_of(other))

    assert await left(ward, report) == []


async def test_a_patient_that_keeps_a_statement_does_not_hide_another(ward: Ward) -> None:
    kept = await stating(ward, "R-1")
    await stating(ward, "R-2")
    alone = await ward.report("R-3", person((NATIONAL, "7")))
    staying = await ward.referring("R-4", id_of(alone))

    assert await left(ward, kept, alone) == [(id_of(alone), [f"DiagnosticReport/{staying.id}"])]
