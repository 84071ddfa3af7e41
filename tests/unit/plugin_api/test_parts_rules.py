"""Patients, organizations and practitioners: how they are declared, and what is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fhirpub.errors import Issue
from fhirpub.fhir.terminology import Terminology
from fhirpub.plugin_api import Entry, Part, RuleContext
from fhirpub.plugin_api.parts import (
    organization,
    organization_rules,
    patient,
    patient_rules,
    practitioner,
    practitioner_rules,
)

Rules = Callable[[Entry, RuleContext], Iterator[Issue]]
TODAY = "2026-11-25"
OURS = "https://registry.example/laboratories"
TERMINOLOGY = Terminology.load()
WHOLE: dict[str, Any] = {
    "identifier": [{"system": "https://registry.example/persons", "value": "1"}],
    "name": [{"family": "Ashdown"}],
    "birthDate": "1984-03-09",
}


def found(
    rules: Rules, resource: dict[str, Any], *, namespaces: tuple[str, ...] = ()
) -> list[tuple[str, str, str]]:
    """Return severity, code and path of each issue."""
    context = RuleContext(
        tenant_id="0042",
        today=TODAY,
        terminology=TERMINOLOGY,
        organization_namespaces=namespaces,
    )
    return [
        (issue.severity, str(issue.details), issue.expression)
        for issue in rules(Entry(resource, "Entry[0]"), context)
    ]


@pytest.mark.parametrize(
    ("part", "name", "type_name", "rules", "in_events"),
    [
        (patient(referred_by="subject"), "patient", "Patient", patient_rules, False),
        (
            organization(referred_by="performer"),
            "organization",
            "Organization",
            organization_rules,
            False,
        ),
        (
            practitioner(referred_by="resultsInterpreter"),
            "practitioner",
            "Practitioner",
            practitioner_rules,
            True,
        ),
    ],
    ids=["patient", "organization", "practitioner"],
)
def test_a_part_is_of_its_type_and_has_its_rules(
    part: Part, name: str, type_name: str, rules: Rules, *, in_events: bool
) -> None:
    assert (part.name, part.type, part.rules) == (name, type_name, rules)
    assert part.include_in_events is in_events


def test_a_part_is_referred_to_by_the_element_that_is_given() -> None:
    made = (patient, organization, practitioner)

    assert [make(referred_by="author").referred_by for make in made] == ["author"] * 3


def test_patient_and_organization_are_required_unless_declared_otherwise() -> None:
    assert patient(referred_by="subject").required
    assert organization(referred_by="performer").required
    assert not patient(referred_by="subject", required=False).required
    assert not organization(referred_by="performer", required=False).required


def test_a_practitioner_is_never_required() -> None:
    assert not practitioner(referred_by="author").required


@pytest.mark.parametrize(
    ("part", "rules"),
    [
        (patient(referred_by="subject"), patient_rules),
        (organization(referred_by="performer"), organization_rules),
        (practitioner(referred_by="author"), practitioner_rules),
    ],
    ids=["patient", "organization", "practitioner"],
)
def test_the_example_of_a_part_keeps_its_rules(part: Part, rules: Rules) -> None:
    assert part.example is not None
    assert part.example["resourceType"] == part.type
    assert found(rules, dict(part.example)) == []


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        (patient_rules, ["identifier", "name", "birthDate"]),
        (organization_rules, ["identifier", "name"]),
        (practitioner_rules, ["identifier", "name"]),
    ],
    ids=["patient", "organization", "practitioner"],
)
def test_what_is_missing_is_recommended(rules: Rules, names: list[str]) -> None:
    nothing = found(rules, {})
    assert nothing == [("warning", "element-recommended", "Entry[0]")] * len(names)

    for name in names:
        others = {known: value for known, value in WHOLE.items() if known != name}
        assert found(rules, others) == nothing[:1], name


@pytest.mark.parametrize(
    ("birth_date", "issues"),
    [
        ("2026-11-24", []),
        (TODAY, []),  # a newborn
        ("2026-11-26", [("warning", "date-in-future", "Entry[0].birthDate")]),
        ("2027-01", [("error", "time-invalid", "Entry[0].birthDate")]),
        ("1984", [("error", "time-invalid", "Entry[0].birthDate")]),
    ],
)
def test_a_birth_date_is_whole_and_not_in_the_future(
    birth_date: str, issues: list[tuple[str, str, str]]
) -> None:
    assert found(patient_rules, {**WHOLE, "birthDate": birth_date}) == issues


def test_each_telecom_is_checked_at_its_place() -> None:
    telecom = [{"system": "email", "value": "x"}, {"value": "x"}, {"system": "fax", "use": "old"}]

    assert found(patient_rules, {**WHOLE, "telecom": telecom}) == [
        ("error", "code-not-allowed", f"Entry[0].{place}")
        for place in ("telecom[1].system", "telecom[2].system", "telecom[2].use")
    ]


PASSPORT = {"coding": [{"system": "http://terminology.hl7.org/CodeSystem/v2-0203", "code": "PPN"}]}


@pytest.mark.parametrize("rules", [patient_rules, organization_rules, practitioner_rules])
@pytest.mark.parametrize(
    ("system", "is_right"),
    [
        ("http://hl7.org/fhir/sid/de", True),
        ("http://hl7.org/fhir/sid/DE", True),
        ("http://hl7.org/fhir/sid/dE", False),
        ("http://hl7.org/fhir/sid/xx", False),
        ("http://hl7.org/fhir/sid/deu", False),
        ("https://hl7.org/fhir/sid/de", False),
        (None, False),
    ],
)
def test_a_passport_is_of_a_country(rules: Rules, system: str | None, *, is_right: bool) -> None:
    identifier = {"type": PASSPORT, "value": "1"} | ({"system": system} if system else {})

    issues = found(rules, {**WHOLE, "identifier": [{"value": "0"}, identifier]})

    expected = ("warning", "identifier-questionable", "Entry[0].identifier[1].system")
    assert issues == ([] if is_right else [expected])


def test_the_system_of_another_kind_of_identifier_is_free() -> None:
    kind = {"coding": [{**PASSPORT["coding"][0], "code": "MR"}]}
    identifier = {"type": kind, "value": "1", "system": "urn:oid:1.2.3"}

    assert found(patient_rules, {**WHOLE, "identifier": [identifier]}) == []


@pytest.mark.parametrize("rules", [patient_rules, organization_rules, practitioner_rules])
def test_the_type_of_an_identifier_is_looked_up_at_its_place(rules: Rules) -> None:
    coding = {"system": "http://terminology.hl7.org/CodeSystem/v2-0203", "code": "NOPE"}
    kinds = [{"text": "free"}, {"coding": [PASSPORT["coding"][0] | {"code": "MR"}, coding]}]
    identifiers = [{"type": kind, "value": "1", "system": "urn:oid:1.2.3"} for kind in kinds]

    issues = found(rules, {**WHOLE, "identifier": identifiers})

    (path,) = {path for _severity, _code, path in issues}
    assert path.startswith("Entry[0].identifier[1].type.coding[1]")


@pytest.mark.parametrize(
    ("system", "value", "is_refused"),
    [
        (OURS, "0042", False),
        (OURS, "0043", True),
        (OURS, None, False),
        (f"{OURS}/", "0043", True),
        ("http://REGISTRY.example/laboratories", "0043", True),
        ("https://registry.example/Laboratories", "0043", False),
        ("https://registry.example/others", "0043", False),
        ("urn:oid:1.2.3", "0043", False),
        (None, "0043", False),
    ],
)
def test_in_our_namespace_an_organization_is_that_of_the_token(
    system: str | None, value: str | None, *, is_refused: bool
) -> None:
    given = {"system": system, "value": value}
    identifier = {name: text for name, text in given.items() if text is not None}
    lab = {"name": "North Quay", "identifier": [{"value": "x"}, identifier]}

    issues = found(organization_rules, lab, namespaces=("urn:oid:9", OURS))

    refused = [("error", "organization-mismatch", "Entry[0].identifier[1].value")]
    assert issues == (refused if is_refused else [])


@pytest.mark.parametrize(
    ("namespace", "system", "is_ours"),
    [
        ("urn:oid:1.2", "urn:oid:1.2", True),
        ("urn:oid:1.2", "urn:oid:1.2.3", False),
        ("http://Registry.example:8080/a/", "https://registry.example:8080/a", True),
        ("https://registry.example:8080/a", "https://registry.example/a", False),
        ("https://registry.example/", "http://registry.example", True),
        ("https://registry.example/a?x=1", "http://registry.example/a?x=1", True),
        ("https://registry.example/a?x=1", "https://registry.example/a", False),
        ("https://registry.example/a?x=1", "https://registry.example/a?x=2", False),
        ("https://registry.example/a#b", "https://registry.example/a", False),
    ],
)
def test_a_namespace_is_compared_by_what_names_it(
    namespace: str, system: str, *, is_ours: bool
) -> None:
    lab = {"name": "North Quay", "identifier": [{"system": system, "value": "0043"}]}

    assert bool(found(organization_rules, lab, namespaces=(namespace,))) == is_ours


def test_every_identifier_in_our_namespaces_is_checked() -> None:
    identifiers = [{"system": "urn:a", "value": one} for one in ("0042", "1", "2")]
    identifiers.append({"system": "urn:b", "value": "3"})
    lab = {"name": "North Quay", "identifier": identifiers}

    issues = found(organization_rules, lab, namespaces=("urn:a", "urn:b"))

    assert [path.split(".")[1] for _, _, path in issues] == [
        f"identifier[{index}]" for index in (1, 2, 3)
    ]


def test_the_id_of_an_organization_is_compared_without_case() -> None:
    lab = {"name": "Ward", "identifier": [{"system": OURS, "value": "WARD-7"}]}
    context = RuleContext(
        tenant_id="ward-7",
        today=TODAY,
        terminology=TERMINOLOGY,
        organization_namespaces=(OURS,),
    )

    assert [*organization_rules(Entry(lab, "Entry[0]"), context)] == []


def test_without_namespaces_an_organization_may_have_any_identifier() -> None:
    lab = {"name": "Ward", "identifier": [{"system": OURS, "value": "7"}]}

    assert found(organization_rules, lab) == []


def test_a_gender_is_refused_at_its_place() -> None:
    assert found(patient_rules, {**WHOLE, "gender": "F"}) == [
        ("error", "code-not-allowed", "Entry[0].gender")
    ]
