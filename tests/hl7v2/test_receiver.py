"""What is acknowledged of a message, by what became of its reports."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from structlog.testing import capture_logs
from tornado.httpclient import HTTPResponse

from fhirpub_hl7v2.acknowledgement import Acknowledgement
from fhirpub_hl7v2.problems import Code, Problem
from fhirpub_hl7v2.receiver import Receiver, endless_pauses
from tests.canned import (
    Canned,
    created,
    different,
    found,
    issue,
    outcome,
    response,
    stored,
)
from tests.hl7v2.messages import SETTINGS, message, obr, obx, pid

TWO = message(pid(), obr(), obx(), obr({3: "NQ-2^LIS"}), obx())


async def receive(raw: bytes, *responses: HTTPResponse | Exception) -> Acknowledgement:
    return await Receiver(Canned(*responses).publisher, SETTINGS, 30.0).receive(raw)


async def test_a_message_whose_reports_are_all_stored_is_accepted() -> None:
    replayed = created(Idempotent_Replayed="true")

    assert await receive(TWO, created(), replayed) == Acknowledgement("AA", warnings=[])


async def test_one_report_that_is_not_stored_is_an_error_of_its_obr() -> None:
    answer = await receive(TWO, created(), response(403))

    text = "the service refused the report: 403 Forbidden"
    assert answer.code == "AE"
    assert answer.problems == [Problem(text, "OBR", 2, code=Code.INTERNAL)]
    assert answer.text == f"OBR[2]: {text}"


async def test_a_late_state_is_a_duplicate_at_its_status() -> None:
    answer = await receive(message(), different(), found(stored(status="corrected")))

    (problem,) = answer.problems
    assert (answer.code, problem.place, problem.code) == ("AE", "OBR[1]-25", Code.DUPLICATE)


async def test_problems_of_the_service_have_their_places_and_codes() -> None:
    refusal = outcome(
        issue("value-required", "DiagnosticReport.code", "DiagnosticReport.status"),
        issue("value-unknown", severity="warning"),
        issue("body-invalid", severity="fatal"),
    )

    answer = await receive(message(), response(422, refusal))

    assert [problem.text for problem in answer.problems] == [
        "DiagnosticReport.code, DiagnosticReport.status: It is wrong. (value-required)",
        "It is wrong. (body-invalid)",
    ]
    assert {(problem.place, problem.code) for problem in answer.problems} == {
        ("OBR[1]", Code.INTERNAL)
    }


async def test_what_stays_as_registered_is_a_warning() -> None:
    refusal = response(422, outcome(issue("element-not-updatable", "DiagnosticReport.category")))
    known = found(stored(category=[]))

    answer = await receive(message(), different(), known, refusal, response(200, ETag='W/"2"'))

    assert answer.code == "AA"
    assert ["DiagnosticReport.category" in each.text for each in answer.warnings] == [True]


@pytest.mark.parametrize(
    ("raw", "code", "place"),
    [
        (message(msh={12: "2.8"}), "AR", "MSH[1]-12"),
        (message(msh={18: "EBCDIC"}), "AR", "MSH[1]-18"),
        (message(pid()), "AE", "MSH[1]"),
        (b"no message", "AE", ""),
        (message(pid({5: "\u00fc"})).decode().encode("latin-1"), "AE", "MSH[1]-18"),
    ],
)
async def test_what_cannot_be_mapped_is_an_error_and_what_is_not_supported_is_rejected(
    raw: bytes, code: str, place: str
) -> None:
    answer = await receive(raw)

    assert (answer.code, answer.problems[0].place) == (code, place)
    assert answer.text == str(answer.problems[0])


@pytest.mark.parametrize("failure", [ConnectionRefusedError(), response(503)])
async def test_a_service_that_is_away_asks_for_a_repetition(failure: Any) -> None:
    answer = await receive(message(), failure)

    assert (answer.code, answer.text) == (
        "AE",
        "the service cannot be reached; send the message again",
    )
    assert [problem.code for problem in answer.problems] == [Code.INTERNAL]


async def test_a_failure_between_two_reports_asks_for_a_repetition_of_all() -> None:
    answer = await receive(TWO, created(), response(503))

    assert answer.text.endswith("send the message again")


async def test_the_deadline_is_that_of_the_whole_message() -> None:
    class Silent(Canned):
        async def _send(self, _call: Any) -> HTTPResponse:
            await asyncio.Event().wait()
            raise AssertionError

    answer = await Receiver(Silent().publisher, SETTINGS, 0.01).receive(message())

    assert answer.text.endswith("send the message again")


async def test_the_deadline_is_not_one_for_each_report() -> None:
    class Slow(Canned):
        async def _send(self, call: Any) -> HTTPResponse:
            await asyncio.sleep(0.07)
            return await super()._send(call)

    service = Slow(created(), created())

    answer = await Receiver(service.publisher, SETTINGS, 0.15).receive(TWO)

    assert answer.text.endswith("send the message again")


async def test_a_service_that_grants_no_token_asks_for_a_repetition() -> None:
    class Denied(Canned):
        async def _send(self, _call: Any) -> HTTPResponse:
            return response(401, {"error": "invalid_client"})

    answer = await Receiver(Denied().publisher, SETTINGS, 30.0).receive(message())

    assert (answer.code, answer.text) == (
        "AE",
        "the service cannot be reached; send the message again",
    )


async def test_what_stays_of_each_report_is_a_warning() -> None:
    refusal = response(422, outcome(issue("element-not-updatable", "DiagnosticReport.category")))
    steps = [different(), found(stored(category=[])), refusal, response(200, ETag='W/"2"')]
    again = response(422, outcome(issue("element-not-updatable", "DiagnosticReport.category")))
    steps += [different(), found(stored(category=[])), again, response(200, ETag='W/"2"')]

    answer = await receive(TWO, *steps)

    assert (answer.code, len(answer.warnings)) == ("AA", 2)


async def test_of_several_problems_of_a_message_the_first_is_the_text() -> None:
    answer = await receive(message(pid(), obr({4: "", 25: "?"}), obx({11: "?"})))

    assert len(answer.problems) > 1
    assert answer.text == str(answer.problems[0])


async def test_of_several_problems_of_a_header_the_first_is_the_text() -> None:
    answer = await receive(message(msh={11: "T", 12: "2.8"}))

    assert (answer.code, len(answer.problems)) == ("AR", 2)
    assert answer.text == str(answer.problems[0])


async def test_problems_of_each_report_are_reported() -> None:
    answer = await receive(TWO, response(403), response(403))

    assert [problem.place for problem in answer.problems] == ["OBR[1]", "OBR[2]"]
    assert answer.text == str(answer.problems[0])


async def test_what_keeps_the_service_away_is_logged() -> None:
    with capture_logs() as logs:
        await receive(message(), response(503))

    (line,) = logs
    assert (line["event"], line["log_level"]) == ("service unreachable", "warning")
    assert "503" in line["reason"]


async def test_a_fault_of_ours_ends_no_connection_and_shows_nothing() -> None:
    with capture_logs() as logs:
        answer = await receive(message(), RuntimeError("Ashdown"))

    assert [(line["event"], line["kind"]) for line in logs] == [
        ("processing failed", "RuntimeError")
    ]

    assert (answer.code, answer.text) == ("AE", "the message could not be processed")
    assert "Ashdown" not in str(answer)


async def test_a_fault_of_ours_in_the_mapping_is_acknowledged_as_one() -> None:
    receiver = Receiver(Canned().publisher, replace(SETTINGS, time_zone="Mars/Base"), 5.0)

    with capture_logs() as logs:
        answer = await receiver.receive(message(msh={7: ""}))

    assert [line["kind"] for line in logs] == ["ZoneInfoNotFoundError"]
    assert (answer.code, answer.text) == ("AE", "the message could not be processed")


def test_pauses_grow_to_four_seconds_and_do_not_end() -> None:
    assert list(islice(endless_pauses(), 600)) == [0.5, 1.0, 2.0] + 597 * [4.0]
