"""The limits of deliveries and leases that engines share."""

from __future__ import annotations

from fhirpub.storage import webhook_contract


def test_the_log_of_a_delivery_keeps_thirty_attempts() -> None:
    assert webhook_contract.MAX_ATTEMPTS_KEPT == 30


def test_a_lease_that_ends_ten_times_as_late_as_ours_is_of_a_wrong_clock() -> None:
    assert webhook_contract.MAX_LEASE_MULTIPLE == 10
