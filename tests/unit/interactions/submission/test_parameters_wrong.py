"""Entries of Parameters that are of another form than they should be: refused, never a failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.interactions.submission import parameters
from fhirpub.interactions.submission.parameters import from_parameters, from_wrapped
from fhirpub.plugin_api import Part
from tests.unit.interactions.submission.test_parameters_entries import (
    BASIC,
    PANEL,
    PATIENT,
    USUAL,
    entry,
    observation,
    read,
    sent,
)


@pytest.mark.parametrize("resource", [None, "x", 5, [], [PATIENT]])
def test_an_entry_whose_resource_is_no_object_is_wrong(resource: Any) -> None:
    submission = read(entry("patient", resource), entry("basic", BASIC))

    (issue,) = submission.wrong
    assert (issue.expression, issue.details) == ("Parameters.parameter[0]", "entry-invalid")
    assert submission.parts == {}


def test_an_entry_with_a_name_and_a_value_is_looked_at() -> None:
    note = {"name": "note", "valueString": "x"}

    submission = read(*USUAL, note)

    assert submission.envelope is not None
    assert submission.envelope.resource["parameter"][-1] == note


def test_an_entry_that_is_no_object_stays_around_what_is_validated() -> None:
    submission = from_wrapped(sent("x", entry("resource", {**BASIC, "contained": []})), PANEL)

    assert submission.envelope is not None
    assert submission.envelope.resource["parameter"][0] == "x"


def test_only_an_attachment_of_the_resource_itself_is_moved_into_it() -> None:
    deeper = {"content.attachment": [{"title": "x"}]}

    submission = read(entry("patient", PATIENT), entry("basic", dict(BASIC), **deeper))

    assert submission.entry.resource == BASIC


def test_entries_of_all_names_that_repeat_are_counted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parameters, "MAX_MEMBERS", 3)
    note = Part(name="note", type="Basic", referred_by="", repeats=True, required=False)
    declared = replace(PANEL, parts=(*PANEL.parts, note))
    results = [observation(str(number)) for number in range(2)]
    notes = [entry("note", {"resourceType": "Basic", "id": f"n{number}"}) for number in range(2)]

    few = from_parameters(sent(*USUAL, *results, *notes[:1]), declared)
    many = from_parameters(sent(*USUAL, *results, *notes), declared)

    assert few.wrong == []
    assert [issue.details for issue in many.wrong] == ["entries-too-many"]
