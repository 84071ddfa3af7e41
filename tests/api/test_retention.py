"""Resources that retention policies name: shown, and erased by the daily round (ADR 36)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fhirpub.app.retention import RetentionRound
from fhirpub.config.loader import load
from fhirpub.config.retention import RetentionConfig
from fhirpub.config.settings import Config
from fhirpub.errors import ConfigurationError
from fhirpub.runtime.clock import DAY_MS, now_ms
from fhirpub.storage.erasure.contract import Hold
from fhirpub.testing.service import Integrator, RunningService
from tests.api.test_erasure import BASE, address_of
from tests.bodies import register_body

WITHDRAWN = "DiagnosticReport?status=entered-in-error,cancelled after 10 days"
OLD = "DiagnosticReport after 100 days"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.moved = 0

    def __call__(self) -> int:
        return now_ms() + self.moved


class Lab:
    """A service with policies, whose clock is moved by days."""

    def __init__(self, service: RunningService, clock: Clock) -> None:
        self.service, self.clock = service, clock
        self.lab: Integrator = service.integrator()

    def register(self, value: str, status: str = "final") -> str:
        address = address_of(self.lab.register(register_body(value)))
        if status != "final":
            self.change(address, status=status)
        return address

    def change(self, address: str, **fields: str) -> None:
        body = {"resourceType": "DiagnosticReport", **fields}
        assert self.lab.patch(f"{BASE}/{address}", body, If_Match="*").status == 204

    def pass_days(self, days: int) -> None:
        self.clock.moved += days * DAY_MS
        self.lab.log_in()

    def make_round(self) -> Counter[str]:
        async def make() -> Counter[str]:
            return await RetentionRound(self.service.services).make()

        return self.service.call(make())

    def statuses(self, *addresses: str) -> list[int]:
        return [self.lab.get(f"{BASE}/{address}").status for address in addresses]


def settings(*, erase: bool) -> Config:
    return Config(
        retention=RetentionConfig(
            policies=[WITHDRAWN, OLD], erase=erase, erasures_per_minute=6_000
        )
    )


@pytest.fixture
def erasing(tmp_path: Path) -> Iterator[Lab]:
    clock = Clock()
    with RunningService(tmp_path, config=settings(erase=True), clock=clock) as service:
        yield Lab(service, clock)


def test_what_a_policy_names_is_erased_and_nothing_else(erasing: Lab) -> None:
    withdrawn, final = erasing.register("A", "entered-in-error"), erasing.register("B")
    erasing.pass_days(11)
    young = erasing.register("C", "entered-in-error")

    counts = erasing.make_round()

    assert erasing.statuses(withdrawn, final, young) == [410, 200, 200]
    assert counts == {WITHDRAWN: 1}


def test_the_time_begins_with_the_newest_version(erasing: Lab) -> None:
    changed, kept = erasing.register("A"), erasing.register("B")
    erasing.pass_days(60)
    erasing.change(changed, conclusion="changed")
    erasing.pass_days(60)

    erasing.make_round()

    assert erasing.statuses(changed, kept) == [200, 410]


def test_what_is_on_hold_stays(erasing: Lab) -> None:
    held, other = erasing.register("A"), erasing.register("B")
    type_name, _, id_ = held.partition("/")
    hold = Hold(
        tenant=erasing.lab.tenant.id, type=type_name, id=id_, since=1, operator="eve", reason="x"
    )
    erasing.service.call(erasing.service.services.store.put_hold(hold))
    erasing.pass_days(101)

    assert erasing.make_round() == {OLD: 1}
    assert erasing.statuses(held, other) == [200, 410]


def test_what_went_is_listed_with_the_policy(erasing: Lab) -> None:
    address = erasing.register("A")
    erasing.pass_days(101)
    erasing.make_round()

    (order,) = erasing.service.call(
        erasing.service.services.store.erasures(tenant=erasing.lab.tenant.id)
    )

    assert f"{order.type}/{order.id}" == address
    assert (order.operator, order.reason) == ("retention", OLD)
    assert order.finished is not None


def test_unless_it_is_set_the_round_only_counts(tmp_path: Path) -> None:
    clock = Clock()
    with RunningService(tmp_path, config=settings(erase=False), clock=clock) as service:
        lab = Lab(service, clock)
        address = lab.register("A")
        lab.pass_days(101)

        assert lab.make_round() == {OLD: 1}
        assert lab.statuses(address) == [200]


def test_more_than_a_page_is_erased(erasing: Lab) -> None:
    addresses = [erasing.register(str(number)) for number in range(105)]
    erasing.pass_days(101)

    assert erasing.make_round() == {OLD: 105}
    assert {*erasing.statuses(*addresses)} == {410}


@pytest.mark.parametrize(
    "policy",
    ["DiagnosticReport", "DiagnosticReport after 0 days", "x after 3 days", "A?b=c after 1 days"],
)
def test_a_policy_that_cannot_be_read_is_named(tmp_path: Path, policy: str) -> None:
    (tmp_path / "f.toml").write_text(f'[retention]\npolicies = ["{policy}"]\n')

    with pytest.raises(ConfigurationError, match=r"\[retention\] policies"):
        load(tmp_path / "f.toml", environment={})


def test_a_policy_of_a_type_that_is_not_served_prevents_the_start(tmp_path: Path) -> None:
    config = Config(retention=RetentionConfig(policies=["Basic after 3 days"]))
    service = RunningService(tmp_path, config=config)

    with pytest.raises(ConfigurationError, match="no enabled type"), service:
        pass
