"""Reports of a plan are registered once, and what happens to them later is done once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from fhirpub.administration import tenants
from fhirpub.app.administration import open_administration
from fhirpub.cli.sample.fill import Filling
from fhirpub.cli.sample.reports import Plan, Step
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.errors import InvalidContent
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant

FIRST_DAY = date(2025, 1, 1)
WHOLE = Plan(seed="a", first_day=FIRST_DAY, patients=2)


@cache
def further() -> dict[int, str]:
    """Return what happens to each of 60 reports later; empty: nothing."""
    return {
        number: steps[1].action if len(steps) > 1 else ""
        for number in range(60)
        for steps in [list(WHOLE.steps(number))]
    }


@dataclass(frozen=True)
class Chosen:
    """A plan that has only some of the reports, each with so many of its steps."""

    numbers: tuple[int, ...]
    steps_of_each: int = 9

    def steps(self, number: int) -> list[Step]:
        return list(WHOLE.steps(self.numbers[number]))[: self.steps_of_each]


@dataclass
class Lab:
    """A store with a tenant, in which plans are filled."""

    store: Store
    tenant: Tenant
    context: Any
    shown: int = 0
    done: list[int] = field(default_factory=list)
    """How many reports were done each time that it was shown."""

    async def fill(self, plan: Any, reports: int) -> dict[str, int]:
        def show() -> None:
            self.shown += 1
            self.done.append(filling.done)

        filling = Filling(self.tenant, self.context, cast("Plan", plan))
        self.done = []
        await filling.run(reports, show=show)
        assert filling.done == reports
        return dict(filling.counts)

    async def versions(self) -> list[int]:
        rows = [version for _, version in await self.store.scan(limit=1_000)]
        return sorted(row.version for row in rows if row.type == "DiagnosticReport")


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    config = Config(storage=StorageConfig(url=f"sqlite:///{tmp_path}/lab.db"))
    async with open_administration(config) as administration:
        added = await tenants.add(administration, name="Lab")
        (tenant,) = [one for one in await administration.store.tenants() if one.id == added["id"]]
        yield Lab(administration.store, tenant, await administration.context())


def number_of(action: str) -> int:
    return next(number for number, found in further().items() if found == action)


async def test_reports_are_registered_once(lab: Lab) -> None:
    plan = Chosen((number_of(""),))

    first, again = await lab.fill(plan, 1), await lab.fill(plan, 1)

    assert (first, again) == ({"registered": 1}, {"there already": 1})
    assert lab.shown == 2
    assert await lab.versions() == [1]


@pytest.mark.parametrize(("action", "word"), [("revise", "revised"), ("update", "updated")])
async def test_what_was_interrupted_goes_on_where_it_was(lab: Lab, action: str, word: str) -> None:
    number = number_of(action)

    first = await lab.fill(Chosen((number,), 1), 1)
    rest = await lab.fill(Chosen((number,)), 1)
    again = await lab.fill(Chosen((number,)), 1)

    assert first == {"registered": 1}
    assert rest == {"there already": 1, word: 1}
    assert again == {"there already": 1}
    assert await lab.versions() == [1, 2]


async def test_a_report_of_other_content_is_left_as_it_is(lab: Lab) -> None:
    number = number_of("revise")
    await lab.fill(Chosen((number,), 1), 1)
    other = Plan(seed="a", first_day=date(2024, 1, 1), patients=2)

    @dataclass(frozen=True)
    class Same:
        def steps(self, _number: int) -> list[Step]:
            return list(other.steps(number))

    assert await lab.fill(Same(), 1) == {"of other content": 1}
    assert await lab.versions() == [1]


async def test_a_report_that_is_refused_stops_the_filling_with_its_reason(lab: Lab) -> None:
    class Wrong:
        def steps(self, _number: int) -> list[Step]:
            body = next(iter(WHOLE.steps(number_of("")))).body
            return [Step("register", body.replace(b'"status":"final"', b'"status":"x"'))]

    with pytest.raises(InvalidContent):
        await lab.fill(Wrong(), 1)

    assert await lab.versions() == []


async def test_more_reports_than_are_on_their_way_at_once_are_all_done(lab: Lab) -> None:
    number = number_of("")
    await lab.fill(Chosen((number,)), 1)

    counts = await lab.fill(Chosen((number,) * 34), 34)

    assert (counts, lab.shown) == ({"there already": 34}, 35)


async def test_what_is_shown_after_a_report_includes_it(lab: Lab) -> None:
    number = number_of("")

    await lab.fill(Chosen((number,) * 3), 3)

    assert sorted(lab.done) == [1, 2, 3]
