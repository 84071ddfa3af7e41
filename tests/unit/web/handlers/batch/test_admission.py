"""What differs for an entry of a batch: its quotas, its memory, and the form of times."""

from __future__ import annotations

import pytest

from fhirpub.auth.caller import Caller
from fhirpub.config.quotas import QuotasConfig
from fhirpub.errors import QuotaExceeded
from fhirpub.tenant import Tenant
from fhirpub.testing.clock import HandClock
from fhirpub.testing.service import RunningService
from fhirpub.web.admission.quotas import Quotas
from fhirpub.web.handlers.batch.admission import EntryTicket, services_of_entries

CALLER = Caller(Tenant("t", "t", b"", 0), "c")


def ticket(**limits: int) -> tuple[Quotas, EntryTicket]:
    quotas = Quotas(QuotasConfig(**limits), HandClock(1_795_000_000_000))
    made = quotas.ticket(CALLER, EntryTicket)
    assert isinstance(made, EntryTicket)
    return quotas, made


def test_an_entry_counts_as_a_request() -> None:
    _, entry = ticket(client_requests_per_minute=1)

    entry.enter()

    with pytest.raises(QuotaExceeded):
        entry.enter()


def test_an_entry_is_no_request_in_flight() -> None:
    quotas, entry = ticket(client_requests_at_a_time=1)
    entry.enter()
    entry.enter()

    other = quotas.ticket(CALLER)

    assert other is not None
    other.enter()


def test_the_bytes_of_an_entry_were_counted_with_the_batch() -> None:
    _, entry = ticket(client_bytes_per_day=10)

    entry.check_bytes(100)
    entry.receive(100)
    entry.receive(100)


def test_times_of_entries_are_instants(service: RunningService) -> None:
    entries = services_of_entries(service.services)

    assert entries.config.fhir.last_modified_style == "specification"
    assert service.services.config.fhir.last_modified_style == "by-route"


def test_entries_are_not_in_flight_beside_their_batch(service: RunningService) -> None:
    entries = services_of_entries(service.services)

    assert entries.in_flight is not service.services.in_flight
    assert entries.ticket_type is EntryTicket
    assert entries.request_memory is not service.services.request_memory
    assert entries.request_memory._max > 2**62
