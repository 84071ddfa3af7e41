"""What requests share unless it is made otherwise: their turns, and their ids."""

from __future__ import annotations

import re
from itertools import islice

from fhirpub.testing.service import RunningService
from fhirpub.web.admission.quotas import Ticket
from fhirpub.web.services import Services


def defaults() -> dict[str, object]:
    fields = Services.__dataclass_fields__
    return {
        name: field.default_factory()
        for name, field in fields.items()
        if callable(field.default_factory)
    }


def test_ids_of_requests_differ_and_those_of_processes_too() -> None:
    one, other = (defaults()["request_ids"] for _ in range(2))

    ids = [*islice(one, 2), *islice(other, 2)]  # type: ignore[call-overload]
    assert len({*ids}) == 4
    assert all(re.fullmatch("[0-9a-f]{12}-[0-9a-f]{8}", each) for each in ids)
    assert ids[0].endswith("-00000001")


def test_turns_are_those_of_all_requests_and_of_one_tenant() -> None:
    made = defaults()

    found = [
        (made[name]._free, made[name]._per_owner)  # type: ignore[attr-defined]
        for name in ("entry_turns", "audit_turns")
    ]
    assert found == [(96, 48), (4, 2)]


def test_the_default_ticket_counts_a_request(service: RunningService) -> None:
    assert service.services.ticket_type is Ticket
    assert service.services.tracer is None
