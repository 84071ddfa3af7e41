"""Which format a request is answered in, and which bodies are read."""

from __future__ import annotations

import pytest

from fhirpub.web.message.content_negotiation import (
    FHIR_JSON,
    FHIR_XML,
    FORM,
    NotAcceptable,
    UnsupportedMediaType,
    answer_type,
    body_type,
    check_form,
    check_json,
    is_xml,
    names_fhir,
    preference,
    prefers_fhir,
)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", FHIR_JSON),
        ("*/*", FHIR_JSON),
        ("application/*", FHIR_JSON),
        ("application/json", "application/json"),
        ("application/xml", "application/xml"),
        ("text/xml", "text/xml"),
        ("text/*", "text/json"),
        ("application/json+fhir", FHIR_JSON),
        ("application/xml+fhir", FHIR_XML),
        ("application/json, application/fhir+json", FHIR_JSON),
        (f"{FHIR_XML}, {FHIR_JSON}", FHIR_JSON),
        (f"{FHIR_XML}, {FHIR_JSON};q=0.9", FHIR_XML),
        (f"{FHIR_JSON};q=0.1, */*;q=0.2", FHIR_JSON),
        (f"{FHIR_JSON};q=0, */*", "application/json"),
        ("application/*;q=0, */*", "text/json"),
        ("Application/FHIR+XML", FHIR_XML),
        (f"{FHIR_XML};fhirVersion=4.0", FHIR_XML),
        (f"{FHIR_XML};fhirVersion=4.0.1", FHIR_XML),
        (f"{FHIR_XML};fhirVersion=5.0, {FHIR_JSON};q=0.1", FHIR_JSON),
        (f"{FHIR_XML};q=2, {FHIR_JSON};q=0.1", FHIR_JSON),
        (f"{FHIR_XML}, {FHIR_JSON};q=0.5, {FHIR_XML};q=0.2", FHIR_XML),
        (f"{FHIR_XML};q=0.2, {FHIR_JSON};q=0.5, {FHIR_XML}", FHIR_XML),
        ("text/html, application/xml;q=0.9, */*;q=0.8", FHIR_XML),
    ],
)
def test_the_answer_is_in_the_most_welcome_format(accept: str, chosen: str) -> None:
    assert answer_type(accept, "") == chosen


@pytest.mark.parametrize(
    "accept",
    ["text/html", f"{FHIR_JSON};q=0", f"{FHIR_JSON};fhirVersion=3.0", "*/*;q=0", "image/*"],
)
def test_a_client_that_accepts_no_format_is_refused(accept: str) -> None:
    with pytest.raises(NotAcceptable, match="Accept must allow"):
        answer_type(accept, "")


@pytest.mark.parametrize(
    ("form", "chosen"),
    [
        ("json", FHIR_JSON),
        ("xml", FHIR_XML),
        ("XML", FHIR_XML),
        ("application/fhir+xml", FHIR_XML),
        ("application/fhir xml", FHIR_XML),
        ("text/xml", FHIR_XML),
        ("application/json", FHIR_JSON),
        ("application/fhir+json; fhirVersion=4.0", FHIR_JSON),
    ],
)
def test_the_parameter_of_the_format_overrides_the_header(form: str, chosen: str) -> None:
    assert answer_type("text/html", form) == chosen


@pytest.mark.parametrize("form", ["ttl", "html", "application/fhir+xml;fhirVersion=3.0"])
def test_another_format_is_refused(form: str) -> None:
    with pytest.raises(NotAcceptable, match="_format must be json or xml"):
        answer_type("*/*", form)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (FHIR_JSON, FHIR_JSON),
        ("application/json; charset=UTF-8", "application/json"),
        ('text/xml;charset="utf8"', "text/xml"),
        ("application/xml; fhirVersion=4.0.1", "application/xml"),
        ("application/fhir+json;", FHIR_JSON),
    ],
)
def test_a_body_may_be_of_each_name_of_the_formats(given: str, name: str) -> None:
    assert body_type(given) == name


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("", "must be application/fhir\\+json or application/fhir\\+xml"),
        ("text/plain", "must be application/fhir\\+json or application/fhir\\+xml"),
        ("application/json; charset=latin1", "must be UTF-8"),
        ("application/json; fhirVersion=5.0", "fhirVersion=4.0"),
    ],
)
def test_a_body_of_another_type_is_refused(given: str, text: str) -> None:
    with pytest.raises(UnsupportedMediaType, match=text):
        body_type(given)


def test_a_further_type_is_read_where_it_is_accepted() -> None:
    also = ("application/json-patch+json",)

    assert body_type("application/json-patch+json", also=also) == also[0]
    with pytest.raises(UnsupportedMediaType, match=r"or application/json-patch\+json"):
        body_type("text/plain", also=also)


def test_json_and_forms_are_checked_by_their_names() -> None:
    check_json("application/json")
    check_json("application/fhir+json; charset=utf-8")
    check_form(FORM)
    with pytest.raises(UnsupportedMediaType, match="must be application/json"):
        check_json(FORM)
    with pytest.raises(UnsupportedMediaType, match="x-www-form-urlencoded"):
        check_form("application/json")


@pytest.mark.parametrize(
    ("accept", "prefers"),
    [
        (FHIR_JSON, True),
        (f"{FHIR_XML};q=0.5, text/html;q=0.4", True),
        (f"{FHIR_JSON};q=0.5, text/html;q=0.5", True),
        (f"{FHIR_JSON};q=0.4, text/html;q=0.5", False),
        (f"{FHIR_JSON};q=0.4, application/json", True),
        ("application/json", False),
        ("*/*", False),
        (f"{FHIR_JSON};q=0", False),
        ("", False),
    ],
)
def test_a_resource_is_preferred_if_it_is_named_and_nothing_is_more_welcome(
    accept: str, *, prefers: bool
) -> None:
    assert prefers_fhir(accept) is prefers


@pytest.mark.parametrize(
    ("form", "names"),
    [("json", True), ("other", True), ("application/fhir xml", True), ("application/pdf", False)],
)
def test_a_format_without_a_slash_is_one_of_fhir(form: str, *, names: bool) -> None:
    assert names_fhir(form) is names


@pytest.mark.parametrize(
    ("prefer", "name", "value"),
    [
        ("return=minimal", "return", "minimal"),
        ('handling=strict, Return = "representation"; a=b', "return", "representation"),
        ("return=minimal, return=representation", "return", "minimal"),
        ("return", "return", ""),
        ("x-return=minimal", "return", ""),
        ("", "return", ""),
    ],
)
def test_a_preference_is_found_by_its_name(prefer: str, name: str, value: str) -> None:
    assert preference(prefer, name) == value


def test_each_name_is_of_one_of_the_formats() -> None:
    assert [is_xml(name) for name in (FHIR_XML, "text/xml", FHIR_JSON, "text/json")] == [
        True,
        True,
        False,
        False,
    ]
