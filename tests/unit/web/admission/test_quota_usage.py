"""What was used of a quota: at its limit and one beyond, and when a period ends."""

from __future__ import annotations

import pytest

from fhirpub.errors import QuotaExceeded, StorageQuotaExceeded
from fhirpub.storage.quota_contract import QuotaCount, QuotaUse
from fhirpub.web.admission.quota_policy import DAY, MINUTE, Limits, Policy
from fhirpub.web.admission.quota_usage import InFlight, Usage, Window

START = 1_795_000_000_000 // DAY * DAY
"""A midnight of UTC."""
NOW = START + 10_000


def a_usage(**limits: int) -> Usage:
    return Usage("tenant", "t1", Limits(**limits))


def a_count(*, period: int = 0, until: int = 0, used: int = 0) -> QuotaCount:
    return QuotaCount(owner="t1", quota="q", period=period, until=until, used=used)


# Counts within a period


def test_a_count_lasts_to_the_last_millisecond_of_its_period() -> None:
    window = Window(MINUTE)
    window.add(3, START)

    assert window.used(START + MINUTE - 1) == 3
    assert window.used(START + MINUTE) == 0


def test_with_a_period_end_the_counts_of_all_processes() -> None:
    window = Window(MINUTE)
    window.add(3, NOW)
    window.others = 4
    in_this_period = window.used(NOW)

    window.add(1, NOW + MINUTE)

    assert (in_this_period, window.used(NOW + MINUTE), window.others) == (7, 1, 0)


def test_what_did_not_happen_is_taken_back_and_never_below_zero() -> None:
    window = Window(MINUTE)
    window.add(3, NOW)

    window.add(-2, NOW)
    left = window.own
    window.add(-5, NOW)

    assert (left, window.own) == (1, 0)


def test_others_learn_a_count_once_until_it_changes() -> None:
    window = Window(MINUTE)
    nothing = window.unsent(NOW)
    window.add(1, NOW)
    first = window.unsent(NOW)
    window.mark_sent(a_count(period=START, used=1))
    sent = window.unsent(NOW)
    window.add(1, NOW)

    assert (nothing, sent) == (None, None)
    assert first == window.unsent(NOW) == (START, START + MINUTE)


def test_others_learn_that_a_count_went_down() -> None:
    window = Window(MINUTE)
    window.add(2, NOW)
    window.mark_sent(a_count(period=START, used=2))

    window.add(-1, NOW)

    assert window.unsent(NOW) == (START, START + MINUTE)


def test_of_a_new_period_nothing_was_sent() -> None:
    window = Window(MINUTE)
    window.add(2, NOW)
    window.mark_sent(a_count(period=START, used=2))

    window.add(2, NOW + MINUTE)

    assert window.unsent(NOW + MINUTE) == (START + MINUTE, START + 2 * MINUTE)


def test_a_count_that_was_sent_for_an_earlier_period_is_not_known_in_this_one() -> None:
    window = Window(MINUTE)
    window.add(2, NOW)
    window.add(2, NOW + MINUTE)

    window.mark_sent(a_count(period=START, used=2))

    assert window.unsent(NOW + MINUTE) == (START + MINUTE, START + 2 * MINUTE)


# Requests in flight


def test_requests_in_flight_have_no_period() -> None:
    in_flight = InFlight()
    in_flight.add(1, NOW)
    in_flight.add(1, NOW + DAY)
    in_flight.others = 3
    in_flight.add(-1, NOW + DAY)

    assert in_flight.used(NOW + 9 * DAY) == 4


def test_requests_in_flight_are_shown_for_five_seconds_and_again_after_two() -> None:
    in_flight = InFlight()
    in_flight.add(1, NOW)
    first = in_flight.unsent(NOW)
    in_flight.mark_sent(a_count(until=NOW + 5_000, used=1))

    assert first == (0, NOW + 5_000)
    assert in_flight.unsent(NOW + 1_999) is None
    assert in_flight.unsent(NOW + 2_000) == (0, NOW + 7_000)


def test_no_request_in_flight_is_shown_once() -> None:
    in_flight = InFlight()
    untouched = in_flight.unsent(NOW)
    in_flight.add(1, NOW)
    in_flight.mark_sent(a_count(until=NOW + 5_000, used=1))
    in_flight.add(-1, NOW)
    ended = in_flight.unsent(NOW)
    in_flight.mark_sent(a_count(until=NOW + 5_000))

    assert (untouched, ended, in_flight.unsent(NOW + DAY)) == (None, (0, NOW + 5_000), None)


# Checks


def test_as_many_requests_as_the_limit_may_be_in_flight() -> None:
    usage = a_usage(requests_at_a_time=2)
    usage.in_flight.add(1, NOW)
    usage.check_in_flight(NOW)
    usage.in_flight.others = 1

    with pytest.raises(QuotaExceeded) as refusal:
        usage.check_in_flight(NOW)

    assert (refusal.value.quota, refusal.value.retry_after) == ("tenant_requests_at_a_time", 1)


def test_a_minute_has_as_many_requests_as_the_limit() -> None:
    usage = a_usage(requests_per_minute=2)
    usage.requests.add(1, NOW)
    usage.check_request(NOW)
    usage.requests.add(1, NOW)

    with pytest.raises(QuotaExceeded) as refusal:
        usage.check_request(NOW)

    assert (refusal.value.quota, refusal.value.retry_after) == ("tenant_requests_per_minute", 50)
    usage.check_request(START + MINUTE)


def test_a_day_has_as_many_bytes_as_the_limit() -> None:
    usage = a_usage(bytes_per_day=100)
    usage.bytes.add(40, NOW)
    usage.check_bytes(60, NOW)

    with pytest.raises(QuotaExceeded) as refusal:
        usage.check_bytes(61, NOW)

    assert (refusal.value.quota, refusal.value.retry_after) == ("tenant_bytes_per_day", 86_390)
    assert usage.bytes.used(NOW) == 40
    usage.check_bytes(100, START + DAY)


def test_a_day_has_as_many_registrations_as_the_limit() -> None:
    usage = Usage("client", "c1", Limits(registrations_per_day=1))
    usage.check_registration(NOW)
    usage.registrations.add(1, NOW)

    with pytest.raises(QuotaExceeded) as refusal:
        usage.check_registration(NOW)

    assert refusal.value.quota == "client_registrations_per_day"


def test_as_many_bytes_as_the_limit_may_be_stored() -> None:
    usage = a_usage(stored_bytes=100)
    usage.add_stored(40)
    usage.check_stored(60)

    with pytest.raises(StorageQuotaExceeded) as refusal:
        usage.check_stored(61)

    assert (refusal.value.quota, usage.stored) == ("tenant_stored_bytes", 40)


def test_without_limits_nothing_is_refused() -> None:
    usage = a_usage()
    for counter in usage.counters.values():
        counter.add(10**9, NOW)
    usage.add_stored(10**15)

    usage.check_in_flight(NOW)
    usage.check_request(NOW)
    usage.check_bytes(10**9, NOW)
    usage.check_registration(NOW)
    usage.check_stored(10**9)


# Stored bytes


def test_bytes_that_were_not_stored_are_given_back() -> None:
    usage = a_usage()
    usage.reserve_stored(30)
    usage.reserve_stored(50)

    usage.finish_stored(30, created=False)
    usage.finish_stored(50, created=True)

    assert usage.stored == 50


def test_what_is_being_stored_while_the_store_counts_is_added_to_its_count() -> None:
    usage = a_usage()
    usage.add_stored(1_000)
    usage.reserve_stored(30)

    usage.begin_learning_stored()
    usage.add_stored(7)
    usage.learn_stored(500)

    assert usage.stored == 537


def test_all_that_is_being_stored_at_the_same_time_is_added_to_the_count_of_the_store() -> None:
    usage = a_usage()
    usage.reserve_stored(30)
    usage.reserve_stored(50)
    usage.reserve_stored(9)
    usage.finish_stored(9, created=True)

    usage.begin_learning_stored()
    usage.learn_stored(500)

    assert usage.stored == 580


def test_what_was_stored_before_the_store_counts_is_in_its_count() -> None:
    usage = a_usage()
    usage.reserve_stored(30)
    usage.finish_stored(30, created=True)

    usage.begin_learning_stored()
    usage.learn_stored(500)

    assert usage.stored == 500


# What is kept, and what others learn


def test_a_usage_is_recent_for_a_minute_or_while_a_request_is_in_flight() -> None:
    usage = a_usage()
    usage.seen = NOW

    assert usage.is_recent(NOW + 59_999)
    assert not usage.is_recent(NOW + 60_000)
    usage.in_flight.add(1, NOW)
    assert usage.is_recent(NOW + DAY)


def test_a_usage_is_idle_when_nothing_is_counted_and_it_is_not_recent() -> None:
    usage = a_usage()
    usage.seen = NOW
    usage.registrations.add(1, NOW)
    later = NOW + 2 * MINUTE

    assert not usage.is_idle(later)
    assert usage.is_idle(START + DAY)
    usage.seen = START + DAY
    assert not usage.is_idle(START + DAY + 1)


def test_what_others_counted_keeps_no_usage() -> None:
    usage = a_usage()
    usage.learn({QuotaUse("t1", "tenant_registrations_per_day", START): 5}, NOW)

    assert usage.is_idle(NOW + DAY - 20_000)


def test_only_counts_of_limited_quotas_are_sent() -> None:
    usage = a_usage(requests_per_minute=9, registrations_per_day=9)
    for counter in usage.counters.values():
        counter.add(2, NOW)

    assert [count for _counter, count in usage.unsent(NOW)] == [
        QuotaCount(
            owner="t1",
            quota="tenant_requests_per_minute",
            period=START,
            until=START + MINUTE,
            used=2,
        ),
        QuotaCount(
            owner="t1",
            quota="tenant_registrations_per_day",
            period=START,
            until=START + DAY,
            used=2,
        ),
    ]
    assert [counter for counter, _count in usage.unsent(NOW)] == [
        usage.requests,
        usage.registrations,
    ]


def test_what_others_count_is_that_of_this_owner_quota_and_period() -> None:
    usage = a_usage()
    usage.requests.others = usage.bytes.others = 9
    uses = {
        QuotaUse("t1", "tenant_requests_per_minute", START): 1,
        QuotaUse("t1", "tenant_requests_per_minute", START + MINUTE): 2,
        QuotaUse("t2", "tenant_requests_per_minute", START + MINUTE): 4,
        QuotaUse("t1", "tenant_registrations_per_day", START): 5,
        QuotaUse("t1", "tenant_requests_at_a_time", 0): 6,
    }

    usage.learn(uses, START + MINUTE)

    assert [counter.others for counter in usage.counters.values()] == [2, 6, 0, 5]


def test_the_quota_of_requests_is_shown_with_its_use() -> None:
    usage = a_usage(requests_per_minute=5)
    usage.requests.add(2, NOW)

    assert usage.policies(NOW) == [Policy("tenant_requests_per_minute", 5, 2)]
    assert usage.policies(NOW + MINUTE) == [Policy("tenant_requests_per_minute", 5, 0)]
    assert a_usage(bytes_per_day=5).policies(NOW) == []
