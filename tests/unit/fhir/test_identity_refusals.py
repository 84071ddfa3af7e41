"""The words, kinds and places of what does not identify clearly, and what is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.errors import Issue
from fhirpub.fhir.identity import identity_problems, repeated_element_ids
from fhirpub.plugin_api import Entry
from fhirpub.problems import ContentProblem

UUID = "5f0c3a52-8d1e-4b7a-9c55-0a7d3e1b2c4f"
ABSOLUTE = "must be an absolute URI, such as https://lab.example/codes or urn:oid:2.999.1"
SCHEME = "must begin with urn:oid: or urn:uuid:"
WHOLE_OID = "must be a whole OID after urn:oid:"
LOWER_UUID = "must be a UUID in lower case after urn:uuid:"


def issues_of(**elements: Any) -> list[Issue]:
    entry = Entry({"resourceType": "DiagnosticReport", **elements}, "DiagnosticReport")
    return [
        *identity_problems(entry.identified, entry.rule_targets, entry.place_of),
        *repeated_element_ids(entry.resource, entry.identified, entry.place_of),
    ]


def issue_of(**elements: Any) -> Issue:
    (issue,) = issues_of(**elements)
    return issue


@pytest.mark.parametrize(
    ("uri", "rule"),
    [
        ("LOCAL", ABSOLUTE),
        ("x:", ABSOLUTE),
        ("oid:1.2", SCHEME),
        (f"uuid:{UUID}", SCHEME),
        ("urn:oid:3.1", WHOLE_OID),
        ("urn:uuid:1", LOWER_UUID),
    ],
)
def test_a_system_that_is_unclear_is_refused_with_what_would_be_clear(uri: str, rule: str) -> None:
    issue = issue_of(code={"coding": [{"system": uri}]})

    assert (issue.diagnostics, issue.details) == (rule, ContentProblem.URI_INVALID)
    assert (issue.severity, issue.expression) == ("error", "code.coding[0].system")


def test_the_value_that_is_a_uri_is_refused_with_the_system_that_says_so() -> None:
    issue = issue_of(identifier=[{"system": "urn:ietf:rfc:3986", "value": "77"}])

    assert issue.diagnostics == (
        "must be an absolute URI, which the system urn:ietf:rfc:3986 means"
    )


def test_a_value_of_another_system_is_any_text() -> None:
    assert issues_of(identifier=[{"system": "urn:ietf:rfc:3987", "value": "77"}]) == []


@pytest.mark.parametrize("value", [None, 7, ["77"]])
def test_a_value_that_is_no_text_is_left_to_the_schema(value: Any) -> None:
    assert issues_of(identifier=[{"system": "urn:ietf:rfc:3986", "value": value}]) == []


@pytest.mark.parametrize("system", [None, 7, ["LOCAL"], {}])
def test_a_system_that_is_no_text_is_left_to_the_schema(system: Any) -> None:
    assert issues_of(identifier=[{"system": system, "value": "1"}]) == []


@pytest.mark.parametrize("code", ["phone", "fax", "email", "pager", "url", "sms", "other"])
def test_each_code_of_a_telecom_is_no_uri(code: str) -> None:
    assert issues_of(telecom=[{"system": code}]) == []


def test_a_system_is_looked_at_beside_canonicals_of_the_same_element() -> None:
    found = issues_of(meta={"system": "LOCAL", "profile": ["plan"]})

    assert [issue.expression for issue in found] == ["meta.system", "meta.profile[0]"]


def test_what_follows_an_element_that_is_unclear_is_looked_at_too() -> None:
    found = issues_of(
        meta={"profile": [7, "#a", "plan", "https://x.example", "oid:1"]},
        identifier=[{"system": "A"}, {"system": "https://x.example"}, {"system": "B"}],
    )

    assert {issue.expression for issue in found} == {
        *("meta.profile[2]", "meta.profile[4]"),
        *("identifier[0].system", "identifier[2].system"),
    }


@pytest.mark.parametrize("uri", ["http://", "https://x y", "https:// "])
def test_what_begins_as_an_address_of_the_web_is_left_to_the_schema(uri: str) -> None:
    assert issues_of(code={"coding": [{"system": uri}]}, meta={"profile": [uri]}) == []


@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\r", "\x00", "\x1f"])
def test_a_reference_has_no_blank_anywhere(blank: str) -> None:
    issue = issue_of(subject={"reference": f"Patient/1{blank}2"})

    assert (issue.diagnostics, issue.details, issue.expression) == (
        "must not have white space",
        ContentProblem.URI_INVALID,
        "subject.reference",
    )


@pytest.mark.parametrize(
    ("literal", "rule"),
    [("urn:oid:5", WHOLE_OID), (f"urn:uuid:{UUID.upper()}", LOWER_UUID)],
)
def test_a_reference_by_urn_is_well_formed(literal: str, rule: str) -> None:
    assert issue_of(subject={"reference": literal}).diagnostics == rule


@pytest.mark.parametrize("literal", [None, 7, ["a b"], f"urn:uuid:{UUID}#p1", "\u00a0"])
def test_other_references_are_left_alone(literal: Any) -> None:
    assert issues_of(subject={"reference": literal}) == []


def test_a_canonical_that_stands_alone_has_no_number() -> None:
    issue = issue_of(extension=[{"url": "https://x.example", "valueCanonical": "plan|2"}])

    assert (issue.expression, issue.diagnostics) == ("extension[0].valueCanonical", ABSOLUTE)


def test_the_url_of_an_extension_of_a_document_is_a_uri() -> None:
    extension = [{"url": "name", "valueString": "x"}]
    document = {"contentType": "text/plain", "url": "https://x.example", "extension": extension}

    issue = issue_of(presentedForm=[document])

    assert (issue.expression, issue.diagnostics) == (
        "presentedForm[0].extension[0].url",
        ABSOLUTE,
    )


@pytest.mark.parametrize("extensions", [None, "x", {}, ["x"], [None], [{}], [{"url": 7}]])
def test_extensions_of_another_form_are_left_to_the_schema(extensions: Any) -> None:
    assert issues_of(extension=extensions) == []


def test_an_extension_after_others_is_looked_at() -> None:
    extensions = [{"url": "https://x.example"}, "x", {"url": 7}, {"url": "name"}]

    assert issue_of(extension=extensions).expression == "extension[3].url"


def test_an_id_that_is_used_again_is_refused_at_its_element() -> None:
    issue = issue_of(name=[{"id": "n"}, {"id": "m"}], photo={"id": "n"})

    assert (issue.diagnostics, issue.details, issue.severity) == (
        "must not be the id of another element",
        ContentProblem.ID_REPEATED,
        "error",
    )
    assert issue.expression == "photo.id"


def test_each_further_use_of_an_id_is_refused() -> None:
    found = issues_of(name=[{"id": "n"}, {"id": "n"}, {"id": "m"}, {"id": "n"}])

    assert [issue.expression for issue in found] == ["name[1].id", "name[3].id"]


def test_an_id_of_the_resource_is_none_of_its_elements() -> None:
    assert issues_of(id="n", name=[{"id": "n"}, {"id": "m"}, {"id": "o"}]) == []


def test_ids_that_are_no_texts_are_left_to_the_schema() -> None:
    assert issues_of(name=[{"id": 5}, {"id": 5}, {"id": None}, {"id": None}]) == []


def test_elements_without_an_id_repeat_nothing() -> None:
    assert issues_of(id="r", name=[{}, {"text": "x"}, {"text": "y"}], photo=[{}, {}]) == []


def test_the_container_and_what_is_contained_may_have_the_same_ids() -> None:
    contained = {"resourceType": "Patient", "id": "p", "name": [{"id": "n"}]}

    assert issues_of(name=[{"id": "n"}], contained=[contained, "x"]) == []
