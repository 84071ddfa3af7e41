"""Narratives that survive an update, and those that it may have made untrue."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.interactions.checks.narrative_truth import is_contradicted, refuse_untrue

BEFORE = {
    "status": "preliminary",
    "conclusion": "All is well",
    "presentedForm": [{"title": "Blood count", "hash": "aa", "data": "\0ab.1"}],
}


def contradicted(words: str, *, made: str = "generated", **changes: Any) -> bool:
    text = {"status": made, "div": f'<div xmlns="http://www.w3.org/1999/xhtml">{words}</div>'}
    before = {**BEFORE, "text": text}
    return is_contradicted(before, {**before, **changes}, {*changes}, ["presentedForm"])


@pytest.mark.parametrize("made", ["generated", "extensions"])
def test_an_update_that_changes_nothing_contradicts_nothing(made: str) -> None:
    assert not contradicted("preliminary", made=made, **BEFORE)


@pytest.mark.parametrize("name", ["conclusion", "_conclusion", "issued", "_status"])
def test_what_may_be_stated_in_any_words_contradicts(name: str) -> None:
    assert contradicted("<p>Ok</p>", **{name: "x"})


def test_a_status_contradicts_where_one_is_shown() -> None:
    assert not contradicted("<p>Blood count</p>", status="final")
    for words in (
        "<b>Preliminary</b> report",
        "Informe preliminar",
        "Estado: borrador",
        "&#xC9;tat",
        "Status: vorläufig",
    ):
        assert contradicted(words, status="final"), words


@pytest.mark.parametrize("status", ["entered-in-error", "cancelled"])
def test_a_narrative_does_not_hide_that_nothing_of_it_counts(status: str) -> None:
    assert contradicted("<p>Blood count</p>", status=status)


def test_documents_contradict_where_they_are_shown() -> None:
    other = [{"title": "Corrected", "hash": "bb", "data": "\0cd.1"}]
    again = [{"title": "Blood count", "hash": "bb", "data": "\0cd.1"}]

    assert not contradicted("<p>Hemoglobin</p>", presentedForm=other)
    assert contradicted("<p>See <i>blood\ncount</i></p>", presentedForm=other)
    assert not contradicted("<p>See blood count</p>", presentedForm=again)


@pytest.mark.parametrize("name", ["title", "url", "hash", "creation"])
def test_what_a_document_was_known_by_contradicts_where_it_is_shown(name: str) -> None:
    text = {"status": "generated", "div": "<div>2026-11-20T10:05:00Z is the value</div>"}
    before = {"text": text, "presentedForm": [{name: "2026-11-20T10:05:00Z"}]}
    after = {**before, "presentedForm": [{name: "2026-11-21T10:05:00Z"}]}

    assert is_contradicted(before, after, {"presentedForm"}, ["presentedForm"])
    assert not is_contradicted(after, before, {"presentedForm"}, ["presentedForm"])


def test_a_narrative_that_the_update_brings_is_its_own() -> None:
    assert not contradicted("x", text={"status": "generated", "div": "<div/>"}, conclusion="y")


@pytest.mark.parametrize("made", ["additional", "empty"])
def test_only_narratives_from_the_data_can_be_made_again(made: str) -> None:
    assert not contradicted("x", made=made, conclusion="y")


def test_what_people_wrote_stops_an_update_but_for_a_withdrawal() -> None:
    before = {**BEFORE, "text": {"status": "additional", "div": "<div/>"}}

    (issue,) = refuse_untrue(before, {**before, "status": "final"}, "DiagnosticReport")
    assert (issue.code, issue.expression) == ("business-rule", "DiagnosticReport.text")
    withdrawn = {**before, "status": "entered-in-error"}
    assert not [*refuse_untrue(before, withdrawn, "DiagnosticReport")]
    assert not [*refuse_untrue(BEFORE, {**BEFORE, "status": "final"}, "DiagnosticReport")]


@pytest.mark.parametrize("names", [{"conclusion"}, {"text"}])
def test_without_a_narrative_nothing_is_contradicted(names: set[str]) -> None:
    before = {**BEFORE, "text": {"status": "generated", "div": "<div>All is well</div>"}}

    assert not is_contradicted(before, {**BEFORE, "conclusion": "x"}, names, ["presentedForm"])
