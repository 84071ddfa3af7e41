"""What the next version takes over from the one before, and what its events are made from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.interactions.context import Context
from fhirpub.interactions.update import Update
from fhirpub.plugin_api import Change, Event
from fhirpub.storage.contract import SMALL_BYTES
from tests.bodies import PDF, document
from tests.unit.interactions.updating import LATER, body_of, registered, updated

FIRST = registered()
LONG = replace(LATER, accepts_fast=False)


class Noted:
    """The events of a type, which note the changes that they are made from."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def __call__(self, change: Change) -> Iterator[Event]:
        self.changes.append(change)
        yield Event(type="report.changed", data={"number": 1})
        yield Event(type="report.changed", data={"number": 2})

    @property
    def context(self) -> Context:
        report = replace(LATER.types["DiagnosticReport"], events=self)
        return replace(LATER, types={**LATER.types, "DiagnosticReport": report})


@pytest.fixture
def noted() -> Noted:
    return Noted()


# Events


def test_events_are_made_from_both_versions(noted: Noted) -> None:
    made = updated(FIRST, conclusion="Corrected", context=noted.context)

    (change,) = noted.changes
    assert (change.id, change.version) == (FIRST.id, 2)
    assert change.before == loads_stored(FIRST.body)
    assert change.after == body_of(made)


def test_events_are_made_with_the_key_and_the_parts_that_came_with_the_report(
    noted: Noted,
) -> None:
    updated(FIRST, conclusion="Corrected", context=noted.context)

    (change,) = noted.changes
    assert change.identifier == {"system": FIRST.system, "value": FIRST.value}
    assert change.parts == loads_stored(FIRST.parts)
    assert change.parts.keys() == {"patient", "organization"}


def test_the_events_of_a_version_without_parts_have_none(noted: Noted) -> None:
    updated(replace(FIRST, parts=b""), conclusion="Corrected", context=noted.context)

    assert [change.parts for change in noted.changes] == [{}]


def test_the_events_of_a_later_version_are_made_with_the_parts_that_it_comes_with(
    noted: Noted,
) -> None:
    second = replace(updated(FIRST, status="amended").version, parts=FIRST.parts)

    updated(second, conclusion="Corrected", context=noted.context)

    assert [change.parts.keys() for change in noted.changes] == [{"patient", "organization"}]


def test_events_are_numbered_behind_the_version(noted: Noted) -> None:
    made = updated(FIRST, conclusion="Corrected", context=noted.context)

    assert loads_stored(made.version.events) == [
        {"id": f"{FIRST.id}.2.{number}", "type": "report.changed", "data": {"number": number}}
        for number in (1, 2)
    ]


# What it is found by


def test_the_next_version_is_found_by_its_patient_and_its_own_parts() -> None:
    made = updated(FIRST, conclusion="Corrected").version

    before, after = (loads_stored(version.search) for version in (FIRST, made))
    assert after == [item for item in before if item in after]
    assert ["subject:Patient.identifier", "AAB123456", "http://hl7.org/fhir/sid/AR"] in after
    assert ["performer", "", "Organization"] in after
    assert ["subject", "", "Patient"] in after


# Content


def test_the_short_and_the_long_way_make_the_same_version() -> None:
    content: dict[str, Any] = {
        "status": "amended",
        "conclusion": "x",
        "presentedForm": [document(PDF + b"new")],
    }

    assert updated(FIRST, **content, context=LONG) == updated(FIRST, **content)


def test_a_field_can_be_taken_away() -> None:
    made = updated(FIRST, {"conclusion": None}, form="merge-patch")

    assert loads_stored(FIRST.body).keys() - body_of(made).keys() == {"conclusion"}


def test_the_body_of_the_version_before_stays_as_it_is() -> None:
    body = FIRST.body

    updated(FIRST, conclusion="Corrected", presentedForm=[document(PDF + b"new")])

    assert body == FIRST.body
    assert loads_stored(body)["conclusion"] == "Within the reference ranges"


def test_the_meta_of_the_sender_stays_beside_that_of_the_service() -> None:
    body = loads_stored(FIRST.body)
    tagged = {**body["meta"], "tag": [{"code": "x"}]}

    made = updated(replace(FIRST, body=dumps({**body, "meta": tagged})), conclusion="x")

    assert body_of(made)["meta"] == {
        "versionId": "2",
        "lastUpdated": "2027-01-15T08:00:01.000Z",
        "tag": [{"code": "x"}],
    }


# Documents


def attached(made: Update) -> list[bytes]:
    return [blob.data for blob in made.version.attached]


def test_a_document_that_is_replaced_is_not_held_any_more() -> None:
    second = updated(FIRST, presentedForm=[document(PDF + b"new")]).version

    third = updated(second, presentedForm=[document(PDF + b"newer")])

    assert attached(third) == [PDF + b"newer"]


def test_what_is_held_already_has_its_room_before_what_is_new() -> None:
    first = registered(presentedForm=[document(PDF.ljust(SMALL_BYTES // 2, b"x"))])
    (held,) = first.attached
    large = PDF.ljust(SMALL_BYTES // 2 + 1, b"y")

    made = updated(first, presentedForm=[document(large), document(held.data)])

    assert attached(made) == [held.data]
    assert [blob.data for blob in made.blobs] == [large]
    assert len(made.version.documents) == 2


def test_a_document_that_is_sent_twice_is_stored_once() -> None:
    large = PDF.ljust(SMALL_BYTES + 1, b"x")

    made = updated(FIRST, presentedForm=[document(large), document(large)])

    assert [blob.data for blob in made.blobs] == [large]
    assert made.size == made.version.size + len(large)


def test_remarks_on_fields_that_are_not_named_come_with_each_update() -> None:
    coding = {"system": "http://terminology.hl7.org/CodeSystem/v2-0074", "code": "?"}
    old = replace(
        FIRST, body=dumps({**loads_stored(FIRST.body), "category": [{"coding": [coding]}]})
    )

    for made in (updated(old, conclusion="x"), updated(old, presentedForm=[document()])):
        assert [(issue.severity, issue.expression) for issue in made.remarks] == [
            ("warning", "DiagnosticReport.category[0].coding[0].code")
        ]
        assert isinstance(made.remarks, tuple)
        assert made.blobs == ()


def test_a_narrative_made_from_the_data_goes_with_a_field_that_is_taken_away() -> None:
    div = '<div xmlns="http://www.w3.org/1999/xhtml">Within the reference ranges</div>'
    old = registered(text={"status": "generated", "div": div})

    made = updated(old, {"conclusion": None}, form="merge-patch")

    assert not {"conclusion", "text"} & body_of(made).keys()
