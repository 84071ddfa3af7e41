"""Which requests publish a report, by the responses that they get."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fhirpub_hl7v2.delivery import Delivery, deliver
from fhirpub_hl7v2.mapping.reports import Report
from tests.canned import (
    BASE,
    Canned,
    conflicting,
    created,
    different,
    erased,
    found,
    issue,
    outcome,
    response,
    stored,
)
from tests.hl7v2.messages import mapped, message, obr, obx, pid, segment


def report(status: str = "F", issued: str = "20260302104000", *others: str) -> Report:
    raw = message(pid(), obr({25: status, 22: issued}), obx({11: status}), *others)
    (made,) = mapped(raw)
    return made


def paths(service: Canned) -> list[tuple[str, str]]:
    found = [(call.method, urlsplit(call.url).path) for call in service.calls]
    return [(method, path.removeprefix("/fhir/r4/DiagnosticReport")) for method, path in found]


async def test_a_new_report_takes_one_request() -> None:
    service = Canned(created())

    delivery = await deliver(service.publisher, report())

    assert delivery == Delivery(result="created", id="d-1", version="1")
    assert paths(service) == [("POST", "/$register")]


async def test_a_repetition_takes_one_request() -> None:
    service = Canned(created(4, Idempotent_Replayed="true"))

    delivery = await deliver(service.publisher, report())

    assert delivery == Delivery(result="replayed", id="d-1", version="4")
    assert len(service.calls) == 1


async def test_a_refused_registration_is_not_revised() -> None:
    service = Canned(response(422, outcome(issue("value-required"))))

    delivery = await deliver(service.publisher, report())

    assert (delivery.result, delivery.reason) == ("refused", "422 Unprocessable Entity")
    assert [each["severity"] for each in delivery.issues] == ["error"]
    assert len(service.calls) == 1


async def test_a_report_with_other_content_is_looked_up_and_revised() -> None:
    service = Canned(different(), found(stored(7)), response(200, ETag='W/"8"'))

    delivery = await deliver(service.publisher, report())

    assert delivery == Delivery(result="revised", id="d-1", version="8")
    assert paths(service) == [("POST", "/$register"), ("GET", ""), ("POST", "/d-1/$revise")]
    assert service.calls[2].headers["If-Match"] == 'W/"7"'


async def test_what_was_erased_is_refused_and_not_looked_up() -> None:
    service = Canned(erased())

    delivery = await deliver(service.publisher, report())

    assert (delivery.result, delivery.reason) == ("refused", "409 Conflict")
    assert [each["code"] for each in delivery.issues] == ["deleted"]
    assert paths(service) == [("POST", "/$register")]


async def test_a_conflict_is_looked_up_too() -> None:
    service = Canned(conflicting(), found(stored()), response(200, ETag='W/"2"'))

    assert (await deliver(service.publisher, report())).result == "revised"


async def test_a_revision_that_changes_nothing_is_a_repetition() -> None:
    service = Canned(different(), found(stored(7)), response(200, ETag='W/"7"'))

    assert (await deliver(service.publisher, report())).result == "replayed"


async def test_a_first_correction_is_registered_and_then_revised() -> None:
    final = stored(status="final")
    service = Canned(found(), created(), found(final), response(200, ETag='W/"2"'))

    delivery = await deliver(service.publisher, report("C"))

    assert delivery.result == "revised"
    assert [method for method, _ in paths(service)] == ["GET", "POST", "GET", "POST"]
    assert service.sent(1)["parameter"][2]["resource"]["status"] == "final"
    assert service.sent(3)["parameter"][2]["resource"]["status"] == "corrected"


async def test_a_correction_of_what_exists_is_not_registered() -> None:
    known = stored(status="final")
    service = Canned(found(known), found(known), response(200, ETag='W/"2"'))

    await deliver(service.publisher, report("C"))

    assert [method for method, _ in paths(service)] == ["GET", "GET", "POST"]


async def test_a_refused_first_correction_is_refused() -> None:
    service = Canned(found(), response(422))

    assert (await deliver(service.publisher, report("C"))).result == "refused"
    assert len(service.calls) == 2


async def test_a_lost_race_is_repeated_with_the_new_version() -> None:
    service = Canned(
        different(),
        found(stored(1)),
        response(412),
        found(stored(2)),
        response(200, ETag='W/"3"'),
    )

    delivery = await deliver(service.publisher, report())

    assert (delivery.result, delivery.version) == ("revised", "3")
    assert [service.calls[at].headers["If-Match"] for at in (2, 4)] == ['W/"1"', 'W/"2"']


async def test_the_third_lost_race_is_the_last() -> None:
    races = [each for at in range(3) for each in (found(stored(at)), response(412))]
    service = Canned(different(), *races)

    delivery = await deliver(service.publisher, report())

    assert (delivery.result, delivery.reason) == ("refused", "412 Precondition Failed")
    assert len(service.calls) == 7


async def test_another_refusal_of_a_revision_is_not_repeated() -> None:
    service = Canned(different(), found(stored()), response(403, outcome(issue("scope-missing"))))

    delivery = await deliver(service.publisher, report())

    assert (delivery.result, delivery.reason) == ("refused", "403 Forbidden")
    assert len(delivery.issues) == 1


async def test_a_report_that_cannot_be_found_is_refused() -> None:
    service = Canned(different(), response(403))

    delivery = await deliver(service.publisher, report())

    assert delivery.result == "refused"
    assert delivery.reason == "the report exists, but cannot be found"


async def test_the_search_names_the_identifier_and_what_it_refers_to() -> None:
    service = Canned(different(), found())
    (made,) = mapped(message(pid(), obr({3: "a,b\\F\\c$\\E\\^LIS"}), obx()))

    await deliver(service.publisher, made)

    query = parse_qs(urlsplit(service.calls[1].url).query)
    assert query["identifier"] == ["https://north-quay.example/reports|a\\,b\\|c\\$\\\\"]
    assert query["_include"] == [
        "DiagnosticReport:result",
        "DiagnosticReport:specimen",
        "DiagnosticReport:performer",
    ]
    assert service.calls[1].url.startswith(f"{BASE}/fhir/r4/DiagnosticReport?")


RANKS = [
    ("registered", "P", False),
    ("preliminary", "A", False),
    ("final", "P", True),
    ("final", "C", False),
    ("corrected", "F", True),
    ("amended", "C", False),
    ("appended", "F", True),
    ("cancelled", "C", True),
    ("corrected", "X", False),
    ("entered-in-error", "X", True),
    ("partial", "I", True),
    ("preliminary", "S", True),
]


@pytest.mark.parametrize(("before", "sent", "superseded"), RANKS)
async def test_no_report_goes_back(before: str, sent: str, *, superseded: bool) -> None:
    known = found(stored(3, status=before))
    first = [known] if sent in "CX" else [different()]
    service = Canned(*first, known, response(200, ETag='W/"4"'))

    delivery = await deliver(service.publisher, report(sent))

    assert (delivery.result == "superseded") is superseded
    assert delivery.version == ("3" if superseded else "4")
    assert delivery.id == "d-1"


@pytest.mark.parametrize(
    ("before", "superseded"),
    [
        ("2026-03-02T10:40:01+01:00", True),
        ("2026-03-02T10:40:00+01:00", False),
        ("2026-03-02T09:40:00Z", False),
        ("2026-03-02T10:30:00Z", True),
        ("2026-03-02T10:39:59+01:00", False),
        ("", False),
    ],
)
async def test_of_two_of_one_state_the_later_issue_stands(
    before: str, *, superseded: bool
) -> None:
    known = stored(3, status="final", **({"issued": before} if before else {}))
    service = Canned(different(), found(known), response(200, ETag='W/"4"'))

    delivery = await deliver(service.publisher, report())

    assert (delivery.result == "superseded") is superseded


async def test_a_message_without_an_issue_time_is_not_older() -> None:
    known = stored(3, status="final", issued="2026-03-02T10:40:01+01:00")
    service = Canned(different(), found(known), response(200, ETag='W/"4"'))

    assert (await deliver(service.publisher, report(issued=""))).result == "revised"


async def test_a_later_state_stands_although_it_was_issued_earlier() -> None:
    known = stored(3, status="final", issued="2026-03-02T10:40:01+01:00")
    service = Canned(found(known), found(known), response(200, ETag='W/"4"'))

    assert (await deliver(service.publisher, report("C"))).result == "revised"


async def test_the_report_is_found_among_what_else_a_search_returns() -> None:
    page = found(outcome(issue("x", severity="warning")), stored(7))
    service = Canned(different(), page, response(200, ETag='W/"8"'))

    await deliver(service.publisher, report())

    assert paths(service)[2] == ("POST", "/d-1/$revise")


@pytest.mark.parametrize("status", ["registered", "preliminary", "amended", "cancelled"])
async def test_a_result_of_any_other_status_stays(status: str) -> None:
    known = observation("NQ-1001/777-3", "other", status=status)
    service = Canned(different(), found(stored(), known), response(200, ETag='W/"2"'))

    await deliver(service.publisher, report())

    sent = service.sent(2)["parameter"][2]["resource"]
    assert sent["result"][1:] == [{"reference": "Observation/other"}]


def observation(value: str, number: str, **elements: Any) -> dict[str, Any]:
    identifier = [{"system": "s", "value": value}] if value else []
    return {
        "resourceType": "Observation",
        "id": number,
        "status": "final",
        "identifier": identifier,
        **elements,
    }


async def test_results_that_are_not_repeated_stay_unless_they_are_withdrawn() -> None:
    others = [
        observation("NQ-1001/718-7", "repeated"),
        observation("NQ-1001/777-3", "other"),
        observation("NQ-1001/1", "wrong", status="entered-in-error"),
    ]
    service = Canned(different(), found(stored(), *others), response(200, ETag='W/"2"'))

    await deliver(service.publisher, report())

    sent = service.sent(2)["parameter"][2]["resource"]
    assert sent["result"] == [
        {"reference": "Observation/result-1"},
        {"reference": "Observation/other"},
    ]


async def test_a_result_without_a_value_keeps_the_one_that_is_stored() -> None:
    known = observation("NQ-1001/718-7", "o-1", valueString="kept", valueQuantity={"value": 1})
    service = Canned(different(), found(stored(), known), response(200, ETag='W/"2"'))
    (made,) = mapped(message(pid(), obr(), obx({5: "", 6: ""})))

    await deliver(service.publisher, made)

    sent = service.sent(2)["parameter"][3]["resource"]
    assert (sent["valueString"], sent["valueQuantity"]) == ("kept", {"value": 1})


async def test_a_result_with_a_value_replaces_the_one_that_is_stored() -> None:
    known = observation("NQ-1001/718-7", "o-1", valueString="old")
    service = Canned(different(), found(stored(), known), response(200, ETag='W/"2"'))

    await deliver(service.publisher, report())

    assert "valueString" not in service.sent(2)["parameter"][3]["resource"]


async def test_each_specimen_without_a_number_is_taken_for_one_of_those_that_are_stored() -> None:
    known = [{"resourceType": "Specimen", "id": f"s-{at}"} for at in range(3)]
    service = Canned(different(), found(stored(), *known), response(200, ETag='W/"2"'))
    blood = segment("SPM", {4: "BLD"})

    await deliver(service.publisher, report("F", "20260302104000", blood, blood))

    sent = service.sent(2)["parameter"][2]["resource"]
    assert [each["reference"] for each in sent["specimen"]] == [
        "Specimen/specimen-1",
        "Specimen/specimen-2",
        "Specimen/s-2",
    ]
