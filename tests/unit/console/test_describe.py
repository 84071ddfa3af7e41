"""Elements of resources in words."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.console.describe import documents_in, facts_of, words_of


@pytest.mark.parametrize(
    ("element", "words"),
    [
        ({"text": "Blood count", "coding": [{"code": "1"}]}, "Blood count"),
        ({"coding": [{"display": "Blood"}, {"code": "B"}]}, "Blood; B"),
        ({"value": 13.2, "unit": "g/dL", "code": "g/dL"}, "13.2 g/dL"),
        ({"value": 5, "code": "mg", "comparator": "<"}, "<5 mg"),
        ({"low": {"value": 1, "unit": "g"}, "high": {"value": 2, "unit": "g"}}, "1 g to 2 g"),
        ({"low": {"value": 1, "unit": "g"}}, "from 1 g"),
        ({"high": {"value": 2, "unit": "g"}}, "up to 2 g"),
        ({"low": {"value": 1}, "text": "adults"}, "adults"),
        ({"family": "López", "given": ["Ana", "Inés"]}, "Ana Inés López"),
        ({"start": "2026-01-01"}, "2026-01-01 to …"),
        ({"system": "https://lab.example", "value": "7"}, "7 (https://lab.example)"),
        ({"reference": "Patient/1", "display": "Ana"}, "Ana"),
        ([{"text": "a"}, {"text": "b"}], "a; b"),
        ({"valueQuantity": {"value": 1, "unit": "g"}}, "value quantity: 1 g"),
        (True, "yes"),
        (None, ""),
        ("", ""),
    ],
)
def test_a_data_type_is_described_by_what_a_reader_wants(element: Any, words: str) -> None:
    assert words_of(element) == words


def test_a_reference_to_a_resource_of_the_service_leads_to_its_page() -> None:
    resource = {"subject": {"reference": "Patient/1/_history/2"}}

    ((name, (value,)),) = facts_of(resource, without=frozenset())

    assert (name, value.path) == ("subject", "/console/resources/Patient/1")


@pytest.mark.parametrize("reference", ["#p1", "#x/Patient/1", "urn:uuid:1", "javascript:alert(1)"])
def test_other_references_lead_nowhere(reference: str) -> None:
    ((_name, (value,)),) = facts_of({"a": {"reference": reference}}, without=frozenset())

    assert value.path == ""


def test_long_texts_are_cut() -> None:
    assert len(words_of("x" * 5_000)) == 2_002


def test_only_documents_that_the_service_has_are_documents() -> None:
    def attachment(url: str) -> dict[str, str]:
        return {"contentType": "application/pdf", "url": url}

    resource = {
        "presentedForm": [attachment("http://s/fhir/r4/Binary/1.1.1"), attachment("javascript:1")]
    }

    assert [one.id for one in documents_in(resource)] == ["1.1.1"]


@pytest.mark.parametrize("step", [".", ".."])
def test_an_id_is_no_step_in_a_path(step: str) -> None:
    attachment = {"contentType": "application/pdf", "url": f"https://a.example/Binary/{step}"}
    resource = {"subject": {"reference": f"Patient/{step}"}, "presentedForm": [attachment]}

    assert not [*documents_in(resource)]
    assert next(iter(facts_of(resource, without=frozenset())))[1][0].path == ""


@pytest.mark.parametrize(
    ("element", "words"),
    [
        (False, "no"),
        (0, "0"),
        (1.5, "1.5"),
        ({}, ""),
        ({"coding": [{"system": "s"}]}, "s"),
        ({"coding": [{"code": "c", "display": "d"}]}, "d"),
        ({"coding": []}, ""),
        ({"code": "c", "system": "s"}, "c"),
        ({"value": "7"}, "7"),
        ({"value": 5, "unit": "g", "code": "x"}, "5 g"),
        ({"value": 5, "code": "1"}, "5 1"),
        ({"system": "", "value": "7"}, "7"),
        ({"end": "2026-02-01"}, "\u2026 to 2026-02-01"),
        ({"start": "a", "end": "b"}, "a to b"),
        ({"text": "Dr. Ada", "family": "Roe"}, "Dr. Ada"),
        ({"prefix": ["Dr."], "given": ["Ada"], "family": "Roe"}, "Dr. Ada Roe"),
        ({"given": ["Ada"]}, "Ada"),
        ({"reference": "Patient/1"}, "Patient/1"),
        ([None, "", "a"], "a"),
        ([["a", "b"], "c"], "a; b; c"),
        ({"a": 1, "bC": True}, "a: 1, b c: yes"),
    ],
)
def test_forms_that_are_not_complete_are_described_as_far_as_they_go(
    element: Any, words: str
) -> None:
    assert words_of(element) == words


def test_what_is_shown_otherwise_is_no_fact() -> None:
    resource = {
        "resourceType": "X",
        "id": "1",
        "meta": {},
        "text": {},
        "contained": [],
        "implicitRules": "x",
        "_status": {},
        "status": "final",
        "code": "c",
        "effectiveDateTime": "2026",
    }

    facts = [*facts_of(resource, without=frozenset({"code"}))]

    assert [name for name, _values in facts] == ["status", "effective date time"]


def test_an_element_of_documents_alone_is_no_fact() -> None:
    form = {"contentType": "application/pdf", "url": "http://s/fhir/r4/Binary/1"}

    assert not [*facts_of({"presentedForm": [form]}, without=frozenset())]
    ((_name, (value,)),) = facts_of({"content": [form, "x"]}, without=frozenset())
    assert value.words == "x"


def test_each_value_of_a_list_is_shown_apart() -> None:
    ((_name, values),) = facts_of(
        {"performer": [{"reference": "Organization/o"}, {"reference": "#c"}]}, without=frozenset()
    )

    assert [(one.words, one.path) for one in values] == [
        ("Organization/o", "/console/resources/Organization/o"),
        ("#c", ""),
    ]


@pytest.mark.parametrize(
    ("reference", "path"),
    [
        ("https://fhir.example.org/fhir/r4/Patient/1", "/console/resources/Patient/1"),
        (f"Patient/{'x' * 64}", f"/console/resources/Patient/{'x' * 64}"),
        (f"Patient/{'x' * 65}", ""),
        ("Patient/1/_history/x", ""),
        ("patient/1", ""),
        ("#Patient/1", ""),
        ("xPatient/1", ""),
    ],
)
def test_only_references_to_resources_lead_to_pages(reference: str, path: str) -> None:
    ((_name, (value,)),) = facts_of({"a": {"reference": reference}}, without=frozenset())

    assert value.path == path


def test_a_text_is_whole_up_to_its_limit() -> None:
    assert words_of("x" * 2_000) == "x" * 2_000
    assert words_of("x" * 2_001) == "x" * 2_000 + " \u2026"


def test_documents_are_found_wherever_they_are() -> None:
    form = {"contentType": "text/plain", "url": "http://s/fhir/r4/Binary/1", "size": 7}
    titled = {**form, "url": "http://s/fhir/r4/Binary/2", "title": "Report"}
    resource = {"content": [{"attachment": form}], "deep": {"er": [[titled]]}}

    first, second = documents_in(resource)

    assert (first.id, first.title, first.media_type, first.size) == (
        "1",
        "text/plain",
        "text/plain",
        7,
    )
    assert (second.id, second.title) == ("2", "Report")


def test_a_document_without_its_size_has_none() -> None:
    (found,) = documents_in({"contentType": "application/pdf", "url": "/Binary/1"})

    assert found.size is None
    assert found.is_pdf


def test_a_document_of_another_type_is_no_pdf() -> None:
    (found,) = documents_in({"contentType": "text/html", "url": "/Binary/1"})

    assert not found.is_pdf


def test_what_every_resource_has_is_no_fact() -> None:
    names = ("resourceType", "id", "meta", "text", "contained", "implicitRules", "_status")
    resource = {**dict.fromkeys(names, "x"), "status": "final"}

    assert [label for label, _values in facts_of(resource, without=frozenset())] == ["status"]
