"""What a handler is given for an entry of a batch, where that differs from a single request.

The batch has its body in memory already, is one request in flight, and has counted its bytes. All
else is as for single requests: each entry is counted and checked like the request that it stands
for.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from fhirpub.web.admission.memory_budget import MemoryBudget
from fhirpub.web.admission.quotas import Ticket
from fhirpub.web.services import Services


class EntryTicket(Ticket):
    """The quotas of an entry: it is no request in flight, and its bytes are those of the batch."""

    __slots__ = ()

    def enter(self) -> None:
        """Count the entry as a request."""
        self.count_request()

    def check_bytes(self, size: int) -> None:
        """Check nothing: the batch was checked."""

    def receive(self, size: int) -> None:
        """Count nothing: the batch was counted."""


def services_of_entries(services: Services) -> Services:
    """Return the services for the entries of a batch."""
    fhir = replace(services.config.fhir, last_modified_style="specification")
    return replace(
        services,
        config=replace(services.config, fhir=fhir),  # an instant, as in entry.response
        ticket_type=EntryTicket,
        request_memory=MemoryBudget(sys.maxsize, patience_seconds=0),
        in_flight=set(),
    )
