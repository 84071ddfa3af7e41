"""The settings of quotas: how much one tenant and one client may use of the service."""

from __future__ import annotations

from dataclasses import dataclass

from fhirpub.config.reader import setting as _setting


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotasConfig:
    """How much one tenant or client may use. `fhirpub quota set` sets it for a certain one."""

    tenant_requests_per_minute: int = _setting(
        0,
        "Requests that the clients of one tenant may send per minute, counted over all processes. "
        "More get 429. 0: no limit, as in all of this group.",
    )
    client_requests_per_minute: int = _setting(
        0, "Requests that one client may send per minute. More get 429."
    )
    tenant_requests_at_a_time: int = _setting(
        0,
        "Requests of one tenant that may be in progress at the same time. More get 429.",
    )
    client_requests_at_a_time: int = _setting(
        0, "Requests of one client that may be in progress at the same time. More get 429."
    )
    tenant_bytes_per_day: int = _setting(
        0,
        "Bytes of request bodies that one tenant may send per day (UTC). More get 429.",
    )
    client_bytes_per_day: int = _setting(
        0, "Bytes of request bodies that one client may send per day (UTC). More get 429."
    )
    tenant_registrations_per_day: int = _setting(
        0,
        "Resources that one tenant may register per day (UTC). More get 429. Repeated "
        "registrations do not count and are always answered.",
    )
    client_registrations_per_day: int = _setting(
        0, "Resources that one client may register per day (UTC). More get 429."
    )
    tenant_stored_bytes: int = _setting(
        0,
        "Bytes that the versions and documents of one tenant may take in the store. "
        "Registrations and updates beyond it get 403.",
    )
