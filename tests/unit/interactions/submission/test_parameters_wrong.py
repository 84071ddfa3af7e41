"""Entries of Parameters that are of another form than they should be: refused, never a failure."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.interactions.submission.parameters import from_wrapped
from tests.unit.interactions.submission.test_parameters_entries import (
    BASIC,
    PANEL,
    PATIENT,
    USUAL,
    entry,
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
