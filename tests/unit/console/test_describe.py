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


@pytest.mark.parametrize("reference", ["#p1", "urn:uuid:1", "javascript:alert(1)"])
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
