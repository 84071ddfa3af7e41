"""What a revision contains beside the message, and when another one is sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fhirpub_hl7v2.delivery import Delivery, deliver
from fhirpub_hl7v2.mapping.reports import Report
from tests.canned import Canned, created, different, found, issue, outcome, response, stored
from tests.hl7v2.messages import SETTINGS, mapped, message, obr, obx, pid, segment


def report(*others: str) -> Report:
    (made,) = mapped(message(pid(), obr(), obx(), *others))
    return made


def observation(number: str, *values: str, **elements: Any) -> dict[str, Any]:
    identifier = [{"system": "s", "value": value} for value in values]
    known = {"resourceType": "Observation", "id": number, "status": "final"}
    return {**known, "identifier": identifier, **elements}


def fixed(*places: str) -> dict[str, Any]:
    return issue("element-not-updatable", *places)


def revised() -> Any:
    return response(200, ETag='W/"2"')


async def sent_with(*others: dict[str, Any], made: Report | None = None) -> dict[str, Any]:
    """Return the report of the revision of one that is stored with others."""
    service = Canned(different(), found(stored(), *others), revised())
    await deliver(service.publisher, made or report())
    resource: dict[str, Any] = service.sent(2)["parameter"][2]["resource"]
    return resource


async def test_a_stored_result_is_repeated_by_any_of_its_numbers() -> None:
    sent = await sent_with(observation("o-1", "old/1", "NQ-1001/718-7"))

    assert sent["result"] == [{"reference": "Observation/result-1"}]


async def test_all_results_that_are_not_repeated_stay() -> None:
    others = [observation(f"o-{at}", f"NQ-1001/{at}") for at in range(60)]

    sent = await sent_with(*others)

    assert [each["reference"] for each in sent["result"][1:]] == [
        f"Observation/o-{at}" for at in range(60)
    ]


async def test_specimens_of_the_message_stand_before_those_that_stay() -> None:
    known = {"resourceType": "Specimen", "id": "s-1", "identifier": [{"value": "other"}]}

    sent = await sent_with(known, made=report(segment("SPM", {2: "own", 4: "BLD"})))

    assert [each["reference"] for each in sent["specimen"]] == [
        "Specimen/specimen-1",
        "Specimen/s-1",
    ]


@pytest.mark.parametrize("other", ["AA/1", "old/1"])
async def test_a_stored_value_of_any_of_its_numbers_is_kept(other: str) -> None:
    known = observation("o-1", other, "NQ-1001/718-7", valueBoolean=True)
    (made,) = mapped(message(pid(), obr(), obx({5: "", 6: ""})))
    service = Canned(different(), found(stored(), known), revised())

    await deliver(service.publisher, made)

    assert service.sent(2)["parameter"][3]["resource"]["valueBoolean"] is True


async def test_if_something_else_is_refused_nothing_is_kept() -> None:
    refusal = outcome(fixed("DiagnosticReport.category"), issue("value-required"))
    service = Canned(different(), found(stored(category=[])), response(422, refusal))

    delivery = await deliver(service.publisher, report())

    assert (delivery.result, delivery.kept, len(service.calls)) == ("refused", (), 3)
    assert len(delivery.issues) == 2


async def test_what_was_kept_is_looked_up_again_after_a_lost_race() -> None:
    service = Canned(
        different(),
        found(stored(1, category=[{"text": "first"}])),
        response(422, outcome(fixed("DiagnosticReport.category"))),
        response(412),
        found(stored(2, category=[{"text": "second"}])),
        response(422, outcome(fixed("DiagnosticReport.category"))),
        response(200, ETag='W/"3"'),
    )

    delivery = await deliver(service.publisher, report())

    assert delivery == Delivery(
        result="revised", id="d-1", version="3", kept=("DiagnosticReport.category",)
    )
    assert service.sent(5)["parameter"][2]["resource"]["category"] != [{"text": "first"}]
    assert service.sent(6)["parameter"][2]["resource"]["category"] == [{"text": "second"}]


async def test_a_race_that_is_lost_to_a_later_state_ends_the_revision() -> None:
    service = Canned(
        different(), found(stored(1)), response(412), found(stored(2, status="corrected"))
    )

    delivery = await deliver(service.publisher, report())

    assert delivery == Delivery(result="superseded", id="d-1", version="2")


async def test_a_report_that_is_gone_after_a_lost_race_is_refused_as_the_race_was() -> None:
    service = Canned(different(), found(stored(1)), response(412), found())

    delivery = await deliver(service.publisher, report())

    assert (delivery.result, delivery.reason) == ("refused", "412 Precondition Failed")


@pytest.mark.parametrize("entry", [{"search": {}}, {"fullUrl": "x"}])
async def test_an_entry_without_a_resource_is_passed_over(entry: dict[str, Any]) -> None:
    page = response(200, {"entry": [entry, {"resource": stored()}]})
    service = Canned(different(), page, revised())

    assert (await deliver(service.publisher, report())).result == "revised"


async def test_a_first_correction_that_was_registered_already_is_revised() -> None:
    (made,) = mapped(message(pid(), obr({25: "C"}), obx()))
    service = Canned(
        found(), created(Idempotent_Replayed="true"), found(stored(status="final")), revised()
    )

    assert (await deliver(service.publisher, made)).result == "revised"


async def test_the_issues_of_a_registration_are_those_of_its_delivery() -> None:
    answer = {
        "resourceType": "Parameters",
        "parameter": [
            {
                "name": "issues",
                "resource": outcome(
                    issue("resource-created", severity="information"),
                    issue("value-unknown", severity="warning"),
                ),
            }
        ],
    }
    location = "https://fhir.example.org/fhir/r4/DiagnosticReport/d-1/_history/1"
    service = Canned(response(201, answer, Location=location))

    delivery = await deliver(service.publisher, report())

    assert [each["severity"] for each in delivery.issues] == ["information", "warning"]


async def test_the_search_escapes_the_marks_of_a_system_too() -> None:
    settings = replace(SETTINGS, authorities={**SETTINGS.authorities, "LIS": "urn:x$1,2"})
    (made,) = mapped(message(), settings)
    service = Canned(different(), found())

    await deliver(service.publisher, made)

    query = parse_qs(urlsplit(service.calls[1].url).query)
    assert query["identifier"] == ["urn:x\\$1\\,2|NQ-1001"]
