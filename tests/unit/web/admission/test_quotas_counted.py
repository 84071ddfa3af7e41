"""What counts in which quotas, and until when, also of what is refused or could not be sent."""

from __future__ import annotations

import pytest

from fhirpub.config.quotas import QuotasConfig
from fhirpub.errors import QuotaExceeded, StoreUnavailable
from fhirpub.storage.quota_contract import QuotaOverride
from fhirpub.testing.clock import HandClock
from fhirpub.web.admission.quotas import Quotas
from tests.unit.web.admission.sharing import OTHER, THREE, TWO, Process, WatchedStore


def test_without_the_last_override_there_is_no_limit_again(clock: HandClock) -> None:
    quotas = Quotas(QuotasConfig(), clock)
    quotas.set_overrides([QuotaOverride(OTHER.id, "tenant_requests_per_minute", 3)])

    quotas.set_overrides([])

    assert not quotas.active
    assert quotas.ticket(THREE) is None


async def test_counts_that_could_not_be_sent_are_sent_though_no_more_requests_come(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, client_bytes_per_day=10)
    process.ticket().receive(8)
    store.problem = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        await process.exchange.exchange()
    clock.forward(seconds=120)
    store.problem = None

    await process.exchange.exchange()

    assert [count.used for count in store.put[-1]] == [8]
    assert process.quotas.recent() == []


def test_bytes_that_one_quota_refuses_are_counted_by_the_others_too(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, client_bytes_per_day=15, tenant_bytes_per_day=30)
    with pytest.raises(QuotaExceeded, match="client_bytes"):
        process.ticket().receive(20)

    with pytest.raises(QuotaExceeded, match="tenant_bytes"):
        process.ticket(TWO).check_bytes(11)
    process.ticket(TWO).check_bytes(10)


def test_a_part_of_a_request_counts_as_a_request_and_is_refused_like_one(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, client_requests_per_minute=5, tenant_requests_per_minute=3)
    ticket = process.enter()
    for _ in range(2):
        ticket.count_request()

    with pytest.raises(QuotaExceeded, match="tenant_requests"):
        ticket.count_request()
    assert process.admit(1, TWO) == 0


def test_a_registration_that_did_not_happen_counts_neither_for_the_client_nor_for_the_tenant(
    clock: HandClock, store: WatchedStore
) -> None:
    process = Process(store, clock, client_registrations_per_day=1, tenant_registrations_per_day=2)
    finish = process.ticket().reserve_registration(10)
    finish(created=False)

    process.ticket().reserve_registration(10)
    process.ticket(TWO).reserve_registration(10)

    with pytest.raises(QuotaExceeded, match="registrations_per_day"):
        process.ticket(TWO).reserve_registration(10)
