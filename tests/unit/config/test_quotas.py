"""Nothing is limited by a quota unless the settings set one."""

from __future__ import annotations

import dataclasses

from fhirpub.config.quotas import QuotasConfig


def test_nothing_is_limited_unless_set() -> None:
    assert dataclasses.asdict(QuotasConfig()) == {
        "tenant_requests_per_minute": 0,
        "client_requests_per_minute": 0,
        "tenant_requests_at_a_time": 0,
        "client_requests_at_a_time": 0,
        "tenant_bytes_per_day": 0,
        "client_bytes_per_day": 0,
        "tenant_registrations_per_day": 0,
        "client_registrations_per_day": 0,
        "tenant_stored_bytes": 0,
    }
