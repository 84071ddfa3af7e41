"""The next version that an update makes, and what it is refused for."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.config.settings import Config, LimitsConfig
from fhirpub.errors import BrokenRule, InvalidContent, TooLarge
from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.storage.contract import Version
from tests.bodies import PDF, document
from tests.unit.interactions.updating import (
    CLINICAL,
    CONTEXT,
    LATER,
    NOW,
    SECOND,
    body_of,
    refused,
    registered,
    updated,
)

FIRST = registered()
XML = b'<DiagnosticReport xmlns="http://hl7.org/fhir"><status value="amended"/></DiagnosticReport>'
DIV = '<div xmlns="http://www.w3.org/1999/xhtml">All is well</div>'


def stored(version: Version = FIRST, **changes: Any) -> Version:
    """Return a report as an older release may have stored it, which validated less."""
    body = loads_stored(version.body) | changes
    return replace(
        version, body=dumps({name: one for name, one in body.items() if one is not None})
    )


def limited(**limits: int) -> Any:
    return replace(LATER, config=replace(Config(), limits=LimitsConfig(**limits)))


# The next version


def test_the_next_version_has_the_key_and_the_beginning_of_the_one_before() -> None:
    version = updated(FIRST, status="amended").version

    assert (version.id, version.type) == (FIRST.id, "DiagnosticReport")
    assert (version.system, version.value) == (FIRST.system, FIRST.value)
    assert (version.version, version.created, version.updated) == (2, NOW, NOW + SECOND)
    assert version.status == "amended"
    assert not version.is_first
    assert (version.response, version.parts, version.digest, version.members) == (
        b"",
        b"",
        b"",
        (),
    )


def test_the_number_follows_that_of_the_latest_version() -> None:
    later = replace(FIRST, version=7)

    made = updated(later, status="amended")

    assert (made.version.version, body_of(made)["meta"]["versionId"]) == (8, "8")


@pytest.mark.parametrize("now", [NOW - SECOND, NOW, NOW + 1])
def test_a_version_is_at_least_a_millisecond_later_than_the_one_before(now: int) -> None:
    made = updated(FIRST, status="amended", context=replace(CONTEXT, clock=lambda: now))

    assert made.version.updated == NOW + 1
    assert body_of(made)["meta"]["lastUpdated"] == "2027-01-15T08:00:00.001Z"


def test_a_field_is_replaced_and_the_others_stay() -> None:
    after = body_of(updated(FIRST, conclusion="Corrected"))

    before = loads_stored(FIRST.body)
    assert {name for name in after if after[name] != before[name]} == {"meta", "conclusion"}
    assert after.keys() == before.keys()
    assert after["id"] == FIRST.id


def test_the_version_is_found_by_its_new_status() -> None:
    made = updated(FIRST, status="amended").version

    assert b'"amended"' in made.search
    assert b'"final"' not in made.search


def test_the_events_of_a_change_are_made_with_it() -> None:
    (event,) = loads_stored(updated(FIRST, status="amended").version.events)

    assert event["id"] == f"{FIRST.id}.2.1"


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("merge-patch", {"status": "amended"}),
        ("json-patch", [{"op": "replace", "path": "/status", "value": "amended"}]),
        (
            "fhir",
            XML,
        ),
    ],
)
def test_each_form_of_an_update_makes_the_same_version(form: Any, content: Any) -> None:
    assert updated(FIRST, content, form=form) == updated(FIRST, status="amended")


# Documents


def test_documents_that_are_not_named_stay() -> None:
    made = updated(FIRST, status="amended")

    assert made.version.documents == FIRST.documents
    assert made.version.attached == FIRST.attached
    assert made.blobs == ()


def test_a_small_document_is_held_by_the_version_that_brings_it() -> None:
    made = updated(FIRST, presentedForm=[document(PDF + b"new")])

    assert [blob.data for blob in made.version.attached] == [PDF + b"new"]
    assert made.version.documents == (made.version.attached[0].sha256,)
    assert made.blobs == ()


def test_a_document_that_comes_again_is_held_once() -> None:
    made = updated(FIRST, presentedForm=[document(), document(PDF + b"new")])

    assert [blob.data for blob in made.version.attached] == [PDF, PDF + b"new"]


def test_a_large_document_is_kept_apart_and_counts_for_the_size() -> None:
    large = b"%PDF" + b"x" * 100_000

    made = updated(FIRST, presentedForm=[document(large)])

    assert [blob.data for blob in made.blobs] == [large]
    assert made.version.attached == ()
    assert made.size == made.version.size + len(large)


def test_a_document_above_the_limit_is_refused_and_one_at_it_is_not() -> None:
    data = PDF.ljust(1_000, b"x")
    updated(FIRST, presentedForm=[document(data)], context=limited(attachment_bytes=1_000))

    with pytest.raises(TooLarge) as refusal:
        updated(
            FIRST,
            presentedForm=[document(), document(data)],
            context=limited(attachment_bytes=999),
        )

    (issue,) = refusal.value.issues
    assert issue.expression == "DiagnosticReport.presentedForm[1].data"


def test_a_resource_above_the_limit_is_refused_without_its_documents() -> None:
    size = len(updated(FIRST, conclusion="x" * 500).version.body)
    updated(FIRST, conclusion="x" * 500, context=limited(resource_bytes=size))

    with pytest.raises(TooLarge):
        updated(FIRST, conclusion="x" * 501, context=limited(resource_bytes=size))


def test_data_that_are_no_base64_are_refused_with_fields_that_cannot_change() -> None:
    wrong = document() | {"data": "?"}

    places = refused(InvalidContent, FIRST, presentedForm=[wrong], code={})

    assert set(places) == {"DiagnosticReport.presentedForm[0].data", "DiagnosticReport.code"}


def test_a_remark_on_a_document_is_kept_with_the_update() -> None:
    made = updated(FIRST, presentedForm=[document(hash="00" * 32)])

    assert [(issue.severity, issue.expression) for issue in made.remarks] == [
        ("warning", "DiagnosticReport.presentedForm[0].hash")
    ]
    assert updated(FIRST, status="amended").remarks == ()


def test_a_time_without_an_offset_is_stored_with_that_of_the_settings() -> None:
    made = updated(FIRST, presentedForm=[document(creation="2026-11-20T10:05:00")])

    (attachment,) = body_of(made)["presentedForm"]
    assert attachment["creation"].startswith("2026-11-20T10:05:00")
    assert attachment["creation"].endswith(("Z", "+00:00"))
    assert base64.b64encode(PDF).decode() not in attachment["data"]


# Refusals


def test_what_is_wrong_in_a_field_that_is_named_is_refused() -> None:
    assert refused(InvalidContent, FIRST, conclusion=7) == ["DiagnosticReport.conclusion"]


def test_fields_that_cannot_change_are_refused_after_wrong_values() -> None:
    assert refused(InvalidContent, FIRST, conclusion="", code={}) == [
        "DiagnosticReport.conclusion",
        "DiagnosticReport.code",
    ]


def test_fields_that_cannot_change_are_refused_beside_right_values() -> None:
    assert refused(BrokenRule, FIRST, conclusion="x", code={}) == ["DiagnosticReport.code"]


@pytest.mark.parametrize("status", ["registered", "done", 7])
def test_a_status_that_no_update_gives_is_refused(status: object) -> None:
    assert refused(InvalidContent, FIRST, status=status) == ["DiagnosticReport.status"]


def test_an_old_status_that_no_update_gives_may_stay() -> None:
    draft = registered(status="registered")

    assert updated(draft, conclusion="x").version.status == "registered"


def test_what_was_wrong_before_may_stay_in_fields_that_are_not_named() -> None:
    old = stored(language="?", issued="soon")

    assert body_of(updated(old, conclusion="x"))["issued"] == "soon"


def test_what_was_wrong_before_is_refused_in_a_field_that_is_named() -> None:
    old = stored(conclusion="")

    assert body_of(updated(old, status="amended"))["conclusion"] == ""
    assert refused(InvalidContent, old, conclusion="") == ["DiagnosticReport.conclusion"]


def test_what_an_update_brings_to_contain_is_looked_at() -> None:
    declared = LATER.types["DiagnosticReport"]
    open_ = replace(declared, updatable=declared.updatable | {"contained"})
    context = replace(LATER, types={**LATER.types, "DiagnosticReport": open_})
    sent = [{"resourceType": "Patient", "id": "p", "gender": 7}]

    with pytest.raises(InvalidContent) as refusal:
        updated(stored(contained=sent), context=context, contained=sent)

    assert [one.expression for one in refusal.value.issues] == [
        "DiagnosticReport.contained[0].gender"
    ]


def test_what_is_contained_is_not_looked_at_again() -> None:
    old = stored(contained=[{"resourceType": "Patient", "id": "p", "gender": 7}])

    assert "contained" in body_of(updated(old, status="amended"))


def test_an_id_of_an_element_that_is_repeated_is_refused_where_it_is_new() -> None:
    twice = [document(id="d"), document(PDF + b"new", id="d")]

    assert refused(InvalidContent, FIRST, presentedForm=twice) == [
        "DiagnosticReport.presentedForm[1].id"
    ]


def test_a_narrative_with_more_than_the_data_stands_in_the_way() -> None:
    old = registered(text={"status": "additional", "div": DIV})

    assert refused(BrokenRule, old, conclusion="x") == ["DiagnosticReport.text"]
    assert "text" in body_of(updated(old, status="entered-in-error"))


def test_a_narrative_that_was_made_from_the_data_is_dropped_if_they_change() -> None:
    old = registered(text={"status": "generated", "div": DIV})

    assert "text" not in body_of(updated(old, conclusion="x"))
    assert "text" in body_of(updated(old, conclusion="Within the reference ranges"))


def test_a_body_that_cannot_be_parsed_is_refused() -> None:
    with pytest.raises(InvalidContent):
        updated(FIRST, b"{")


# The order of statuses


def test_a_status_follows_the_one_before_where_that_is_checked() -> None:
    assert updated(FIRST, status="preliminary").version.status == "preliminary"

    assert refused(BrokenRule, FIRST, status="preliminary", context=CLINICAL) == [
        "DiagnosticReport.status"
    ]
    assert updated(FIRST, status="amended", context=CLINICAL).version.status == "amended"


def test_a_final_report_needs_another_status_with_its_change() -> None:
    assert refused(BrokenRule, FIRST, conclusion="x", context=CLINICAL) == [
        "DiagnosticReport.status"
    ]


def test_a_status_that_no_update_gives_is_refused_once() -> None:
    assert refused(InvalidContent, FIRST, status="registered", context=CLINICAL) == [
        "DiagnosticReport.status"
    ]
