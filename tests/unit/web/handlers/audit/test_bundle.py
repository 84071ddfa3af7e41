"""The Bundle of events: addresses, links, parts, and remarks about the search."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps
from fhirpub.testing.service import RunningService
from fhirpub.web.handlers.audit.bundle import make_bundle

EVENT = {
    "resourceType": "AuditEvent",
    "id": "e-1",
    "meta": {"versionId": "1"},
    "recorded": "2027-01-15T08:00:00Z",
    "outcome": "0",
}


def bundle(service: RunningService, *events: dict[str, Any], **changes: Any) -> Any:
    given: dict[str, Any] = {
        "bodies": [dumps(event) for event in events],
        "links": [("self", "u"), ("next", "v")],
        "search": ("", ""),
        "unused": ((), ()),
    }
    return make_bundle(service.services.context, **given | changes)


def test_each_event_is_a_match_under_its_address(service: RunningService) -> None:
    made = bundle(service, EVENT)

    assert made["entry"] == [
        {
            "fullUrl": f"{service.base_url}/fhir/r4/AuditEvent/e-1",
            "resource": EVENT,
            "search": {"mode": "match"},
        }
    ]
    assert made["link"] == [{"relation": "self", "url": "u"}, {"relation": "next", "url": "v"}]


def test_without_events_there_are_no_entries(service: RunningService) -> None:
    assert "entry" not in bundle(service)


def test_the_elements_that_are_asked_for_are_shown_with_the_id(service: RunningService) -> None:
    event = {**EVENT, "outcomeDesc": "refused"}

    (entry,) = bundle(service, event, search=("", "outcome"))["entry"]

    assert "outcomeDesc" not in entry["resource"]
    assert entry["resource"]["outcome"] == "0"
    assert entry["resource"]["id"] == "e-1"


def test_remarks_come_last_and_alone_if_nothing_was_found(service: RunningService) -> None:
    both = bundle(service, EVENT, unused=(("nonsense",), ("agent",)))["entry"]
    alone = bundle(service, unused=((), ("agent",)))["entry"]

    assert [entry["search"]["mode"] for entry in both] == ["match", "outcome"]
    assert len(both[1]["resource"]["issue"]) == 2
    assert [entry["search"]["mode"] for entry in alone] == ["outcome"]


def test_events_are_a_bundle_of_a_search(service: RunningService) -> None:
    made = bundle(service, EVENT)

    assert (made["resourceType"], made["type"]) == ("Bundle", "searchset")


@pytest.mark.parametrize(
    ("search", "names"),
    [
        (("", ""), {"resourceType", "id", "meta", "recorded", "outcome"}),
        (("data", ""), {"resourceType", "id", "meta", "recorded", "outcome"}),
        (("", "outcome"), {"resourceType", "id", "meta", "recorded", "outcome"}),
        (("", "id"), {"resourceType", "id", "meta", "recorded"}),
    ],
)
def test_a_part_of_an_event_says_that_it_is_one(
    service: RunningService, search: tuple[str, str], names: set[str]
) -> None:
    (entry,) = bundle(service, EVENT, search=search)["entry"]

    tags = [tag["code"] for tag in entry["resource"]["meta"].get("tag", [])]
    assert entry["resource"].keys() == names
    assert tags == (["SUBSETTED"] if any(search) else [])
