"""URIs that identify clearly, and ids of elements that are used once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.fhir.identity import identity_problems, repeated_element_ids
from fhirpub.plugin_api import Entry

UUID = "5f0c3a52-8d1e-4b7a-9c55-0a7d3e1b2c4f"
CLEAR = [
    "http://loinc.org",
    "https://lab.example/codes",
    "urn:oid:2.16.840.1.113883.6.1",
    "urn:oid:1.2.3",
    "urn:oid:2.16",
    f"urn:uuid:{UUID}",
    "urn:ietf:rfc:3986",
    "urn:example:codes",
    "mailto:lab@example.org",
    "tag:lab.example,2026:codes",
]
UNCLEAR = [
    "LOCAL",
    "codes/local",
    "/codes",
    "#codes",
    "lab.example/codes",
    "://codes",
    "x:",
    "oid:2.16.840.1.113883.6.1",
    f"uuid:{UUID}",
    "urn:oid:",
    "urn:oid:2",
    "urn:oid:3.16.840.1",
    "urn:oid:2.16.0840.1",
    "urn:oid:2.16.840.1.",
    "urn:oid:2.16.840.x",
    f"urn:uuid:{UUID.upper()}",
    f"urn:uuid:{UUID[:-1]}",
    f"urn:uuid:{UUID.replace('-', '')}",
]


def places(**elements: Any) -> list[str]:
    entry = Entry({"resourceType": "DiagnosticReport", **elements}, "DiagnosticReport")
    found = [
        *identity_problems(entry.identified, entry.rule_targets, entry.place_of),
        *repeated_element_ids(entry.resource, entry.identified, entry.place_of),
    ]
    assert {(issue.severity, issue.code) for issue in found} <= {("error", "exception")}
    return [issue.expression for issue in found]


def everywhere(uri: str) -> dict[str, Any]:
    """Return elements with a URI in each of the places where it must identify."""
    return {
        "identifier": [{"system": uri, "value": "urn:example:1"}],
        "code": {"coding": [{"system": uri, "code": "1"}]},
        "meta": {"profile": [uri]},
        "extension": [{"url": uri, "valueString": "x"}],
        "_status": {"extension": [{"url": uri, "valueString": "x"}]},
    }


@pytest.mark.parametrize("uri", CLEAR)
def test_a_clear_uri_may_stand_anywhere(uri: str) -> None:
    assert places(**everywhere(uri)) == []
    assert places(subject={"reference": uri}) == []


@pytest.mark.parametrize("uri", UNCLEAR)
def test_an_unclear_uri_may_stand_nowhere(uri: str) -> None:
    found = places(**everywhere(uri))

    expected = {"identifier[0].system", "code.coding[0].system", "extension[0].url"}
    profile = set() if uri.startswith("#") else {"meta.profile[0]"}
    assert {*found} == {*expected, *profile, "status.extension[0].url"}


def test_a_url_of_an_extension_in_another_may_be_a_name() -> None:
    inner = [{"url": "first", "valueString": "x"}, {"url": "urn:oid:2", "valueString": "x"}]

    assert places(extension=[{"url": "https://x.example/outer", "extension": inner}]) == [
        "extension[0].extension[1].url"
    ]


def test_a_profile_may_have_a_version() -> None:
    assert places(meta={"profile": ["urn:oid:2.16.840.1|2.0", "https://x.example/p|1"]}) == []


def test_a_canonical_is_absolute_or_leads_to_what_is_contained() -> None:
    canonicals = ["https://x.example/plan|1", "#plan", "urn:oid:2.16.840.1", "plan", "urn:oid:2"]
    wrong = [f"instantiatesCanonical[{index}]" for index in (3, 4)]

    assert places(instantiatesCanonical=canonicals) == wrong
    assert places(extension=[{"url": "https://x.example", "valueCanonical": "plan"}]) == [
        "extension[0].valueCanonical"
    ]


def test_the_system_of_a_telecom_is_a_code() -> None:
    assert places(telecom=[{"system": "phone", "value": "1"}]) == []


@pytest.mark.parametrize(
    ("reference", "wrong"),
    [
        ("Patient/1", []),
        ("#p1", []),
        ("Practitioner?identifier=https://registry.example|1", []),
        (f"urn:uuid:{UUID}", []),
        ("urn:uuid:1", ["reference"]),
        ("Patient/1 ", ["reference"]),
        (" Patient/1", ["reference"]),
        ("https://lab.example/Patient/one two", ["reference"]),
    ],
)
def test_a_reference_is_without_white_space_and_a_urn_well_formed(
    reference: str, wrong: list[str]
) -> None:
    assert places(subject={"reference": reference}) == [f"subject.{name}" for name in wrong]


def test_the_value_of_an_identifier_that_is_a_uri_is_absolute() -> None:
    system = "urn:ietf:rfc:3986"

    assert places(identifier=[{"system": system, "value": f"urn:uuid:{UUID}"}]) == []
    assert places(identifier=[{"system": system, "value": "77"}]) == ["identifier[0].value"]


@pytest.mark.parametrize("value", ["12:34", ":x", "urn:", "a b:c", "_a:b"])
def test_a_value_with_a_colon_is_not_absolute_for_that(value: str) -> None:
    identifier = [{"system": "urn:ietf:rfc:3986", "value": value}]

    assert places(identifier=identifier) == ["identifier[0].value"]


def test_a_reference_and_its_extension_may_both_be_wrong() -> None:
    subject = {"reference": "a b", "extension": [{"url": "x", "valueString": "y"}]}

    assert places(subject=subject) == ["subject.reference", "subject.extension[0].url"]


def test_an_id_of_an_element_is_used_once() -> None:
    name = [{"id": "n1", "text": "x"}, {"id": "n2"}, {"id": "n1"}]

    assert places(id="n1", name=name[:2]) == []
    assert places(id="r", name=name, _status={"id": "n2"}) == ["name[2].id", "status.id"]


def test_each_contained_resource_has_ids_of_its_own() -> None:
    def contained(resource_id: str, *ids: str) -> dict[str, Any]:
        names = [{"id": element_id, "text": "x"} for element_id in ids]
        return {"resourceType": "Patient", "id": resource_id, "name": names}

    assert places(name=[{"id": "n"}], contained=[contained("a", "n"), contained("b", "n")]) == []
    twice = [contained("a", "n"), contained("b", "n", "n")]
    assert places(contained=twice) == ["contained[1].name[1].id"]


@given(uri=st.text(max_size=20) | st.sampled_from(UNCLEAR), value=st.text(max_size=5))
def test_no_uri_is_reported_twice_at_one_place(uri: str, value: str) -> None:
    found = places(**everywhere(uri), other=[{"system": uri, "value": value}])

    assert len(found) == len(set(found))
