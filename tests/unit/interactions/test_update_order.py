"""What an update is refused for first, and what stands beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.config.settings import Config, LimitsConfig
from fhirpub.errors import MAX_ISSUES, BrokenRule, InvalidContent, Issue, TooLarge
from fhirpub.fhir import strict_json
from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.interactions.context import Context
from fhirpub.plugin_api import Entry, IdentifierRule, RuleContext
from fhirpub.storage.contract import Version
from tests.bodies import PDF, document
from tests.unit.interactions.updating import LATER, TENANT, body_of, refused, registered, updated

FIRST = registered()
FORM = "DiagnosticReport.presentedForm[0]"


def stored(**changes: Any) -> Version:
    """Return a report as an older release may have stored it."""
    return replace(FIRST, body=dumps(loads_stored(FIRST.body) | changes))


def limited(**limits: int) -> Context:
    return replace(LATER, config=replace(Config(), limits=LimitsConfig(**limits)))


def with_reference(reference: dict[str, Any]) -> dict[str, Any]:
    """Return a document with an extension that refers to something."""
    return document(extension=[{"url": "urn:x", "valueReference": reference}])


def values_in(value: Any) -> int:
    """Return how many values are in one."""
    if not isinstance(value, dict | list):
        return 0
    members = [*value.values()] if isinstance(value, dict) else value
    return len(members) + sum(values_in(member) for member in members)


# The order


def test_fields_that_cannot_change_alone_are_refused_before_all_else() -> None:
    assert refused(BrokenRule, FIRST, code={}, issued="soon") == [
        "DiagnosticReport.code",
        "DiagnosticReport.issued",
    ]


def test_an_update_that_names_nothing_is_refused_in_words() -> None:
    with pytest.raises(InvalidContent) as refusal:
        updated(FIRST)

    assert str(refusal.value.issues[0].diagnostics) == (
        "names no field to update; fields that can: conclusion, presentedForm, status"
    )


def test_a_document_that_is_too_large_is_refused_before_wrong_values() -> None:
    context = limited(attachment_bytes=len(PDF) - 1)

    assert refused(TooLarge, FIRST, presentedForm=[document()], status="", context=context) == [
        f"{FORM}.data"
    ]


def test_wrong_values_are_refused_before_a_resource_that_is_too_large() -> None:
    context = limited(resource_bytes=1_000)

    assert refused(InvalidContent, FIRST, conclusion="x" * 1_000, status="done", context=context)
    assert refused(BrokenRule, FIRST, conclusion="x" * 1_000, code={}, context=context)
    assert refused(TooLarge, FIRST, conclusion="x" * 1_000, context=context)


def test_a_hundred_problems_are_listed_at_most() -> None:
    wrong = [{"contentType": 7} for _ in range(MAX_ISSUES)]

    assert refused(InvalidContent, FIRST, presentedForm=wrong) == [
        f"DiagnosticReport.presentedForm[{number}].contentType" for number in range(MAX_ISSUES)
    ]
    assert len(refused(InvalidContent, FIRST, presentedForm=[*wrong, wrong[0]])) == MAX_ISSUES


def test_what_operations_copy_is_limited_as_the_resource_is() -> None:
    copies = [{"op": "copy", "from": "/presentedForm/0", "path": "/presentedForm/-"}] * 9
    updated(FIRST, copies, form="json-patch")

    with pytest.raises(TooLarge) as refusal:
        updated(FIRST, copies, form="json-patch", context=limited(resource_bytes=1_500))

    assert [issue.diagnostics for issue in refusal.value.issues] == [
        "the operations make the resource too large"
    ]


def test_the_problems_of_rules_are_refused_beside_those_of_the_schema() -> None:
    wrong = document(contentType="nothing", extension=[{"url": "urn:x"}])

    places = refused(InvalidContent, FIRST, presentedForm=[wrong], conclusion=7)

    assert set(places) == {
        "DiagnosticReport.conclusion",
        f"{FORM}.contentType",
        f"{FORM}.extension[0]",
    }


def test_a_time_that_cannot_be_stored_is_refused_in_its_place() -> None:
    wrong = document(creation="9999-12-31T23:59:00-14:00")

    assert refused(InvalidContent, FIRST, presentedForm=[wrong]) == [f"{FORM}.creation"]
    assert refused(InvalidContent, FIRST, presentedForm=[wrong], conclusion=7) == [
        "DiagnosticReport.conclusion",
        f"{FORM}.creation",
    ]


def test_a_time_without_an_offset_is_remarked_in_its_place() -> None:
    made = updated(FIRST, presentedForm=[document(creation="2026-11-20T10:05:00")])

    assert [(issue.severity, issue.expression, issue.diagnostics) for issue in made.remarks] == [
        ("warning", f"{FORM}.creation", "has no offset: read as UTC")
    ]


def test_a_remark_is_no_refusal_and_not_listed_beside_one() -> None:
    unsure = document(creation="2026-11-20T10:05:00")

    assert refused(BrokenRule, FIRST, presentedForm=[unsure], code={}) == ["DiagnosticReport.code"]


# References and ids


def test_a_reference_to_nothing_that_is_contained_is_refused() -> None:
    assert refused(InvalidContent, FIRST, presentedForm=[with_reference({"reference": "#p"})]) == [
        f"{FORM}.extension[0].value.reference"
    ]


def test_a_reference_may_lead_to_what_was_contained_before() -> None:
    old = stored(contained=[{"resourceType": "Patient", "id": "p"}])

    made = updated(old, presentedForm=[with_reference({"reference": "#p"})])

    assert "contained" in body_of(made)
    assert refused(
        InvalidContent,
        old,
        presentedForm=[with_reference({"reference": "#p", "type": "Organization"})],
    ) == [f"{FORM}.extension[0].value.type"]


def test_a_reference_that_names_another_type_is_refused() -> None:
    wrong = with_reference({"reference": "Patient/1", "type": "Organization"})

    assert refused(InvalidContent, FIRST, presentedForm=[wrong]) == [
        f"{FORM}.extension[0].value.type"
    ]


def test_a_system_that_identifies_nothing_is_refused_where_it_is_new() -> None:
    extension = {"url": "urn:x", "valueIdentifier": {"system": "lab"}}

    assert refused(InvalidContent, FIRST, presentedForm=[document(extension=[extension])]) == [
        f"{FORM}.extension[0].value.system"
    ]
    old = stored(code={"text": "x", "coding": [{"system": "lab", "code": "1"}]})
    assert updated(old, conclusion="x").version.version == 2


def test_references_that_were_wrong_before_may_stay_in_fields_that_are_not_named() -> None:
    old = stored(resultsInterpreter=[{"reference": "#x"}])

    assert body_of(updated(old, conclusion="x"))["resultsInterpreter"] == [{"reference": "#x"}]


def test_what_breaks_a_rule_of_fhir_is_refused_once_its_field_is_named() -> None:
    empty = {"extension": [{"url": "urn:x"}]}
    old = stored(_conclusion=empty)

    assert updated(old, status="amended").version.status == "amended"
    assert refused(InvalidContent, old, conclusion="x", _conclusion=empty) == [
        "DiagnosticReport.conclusion.extension[0]"
    ]


def test_an_id_that_was_repeated_before_may_stay() -> None:
    old = stored(_issued={"id": "a"}, _effectiveDateTime={"id": "a"})

    assert updated(old, conclusion="x").version.version == 2


def test_an_id_may_not_be_given_to_another_element() -> None:
    old = stored(_issued={"id": "a"})

    with pytest.raises(InvalidContent) as refusal:
        updated(old, status="amended", _status={"id": "a"})

    (issue,) = refusal.value.issues
    assert issue.diagnostics == "must not be the id of another element"


def test_extensions_that_were_wrong_before_are_refused_with_their_field() -> None:
    old = stored(_conclusion={"id": 7})

    assert updated(old, status="amended").version.status == "amended"
    assert refused(InvalidContent, old, conclusion="x", _conclusion={"id": 7}) == [
        "DiagnosticReport.conclusion.id"
    ]


def test_an_extension_alone_is_of_the_field_that_it_stands_at() -> None:
    old = stored(_conclusion={"id": 7})

    with pytest.raises(InvalidContent) as refusal:
        updated(old, {"_conclusion": {"id": 7}}, form="merge-patch")

    assert [issue.expression for issue in refusal.value.issues] == [
        "DiagnosticReport.conclusion.id"
    ]


def test_what_is_contained_may_not_lose_the_last_reference_to_it() -> None:
    referring = with_reference({"reference": "#p"})
    old = stored(contained=[{"resourceType": "Patient", "id": "p"}], presentedForm=[referring])

    assert refused(InvalidContent, old, presentedForm=[document()]) == [
        "DiagnosticReport.contained[0]"
    ]


def test_many_old_wrongs_hide_no_new_one() -> None:
    wrong = [{"resourceType": "Patient", "id": f"p{n}", "gender": 7} for n in range(MAX_ISSUES)]
    first = {"resourceType": "DiagnosticReport", "contained": wrong}
    old = replace(FIRST, body=dumps(first | loads_stored(FIRST.body)))

    assert refused(InvalidContent, old, conclusion=7) == ["DiagnosticReport.conclusion"]


def test_many_values_that_are_right_may_be_too_many_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = values_in(body_of(updated(FIRST, conclusion="x")))
    monkeypatch.setattr(strict_json, "MAX_NODES", values)
    updated(FIRST, conclusion="x")
    monkeypatch.setattr(strict_json, "MAX_NODES", values - 1)

    with pytest.raises(InvalidContent) as refusal:
        updated(FIRST, conclusion="x")

    assert str(refusal.value) == "the body holds too many values"


# The rules of a type


class Rules:
    """The rules of a type, which note the tenants that they are asked for."""

    def __init__(self) -> None:
        self.tenants: list[str] = []

    def __call__(self, _entry: Entry, context: RuleContext) -> Iterator[Issue]:
        self.tenants.append(context.tenant_id)
        yield from ()


def of_type(**changes: Any) -> Context:
    """Return a context with another declaration of the reports."""
    report = replace(LATER.types["DiagnosticReport"], **changes)
    return replace(LATER, types={**LATER.types, "DiagnosticReport": report})


def test_the_rules_of_a_plugin_are_asked_for_the_tenant() -> None:
    asked = Rules()

    updated(FIRST, conclusion="x", context=of_type(rules=asked))

    assert asked.tenants == [TENANT.id]


def key_of(resource: Mapping[str, Any]) -> tuple[str, str]:
    return "https://lab.example/made", str(resource.get("conclusion"))


def test_an_update_may_not_change_the_key_that_a_function_makes() -> None:
    context = of_type(identifier=IdentifierRule(key=key_of))

    assert updated(FIRST, status="amended", context=context).version.status == "amended"
    assert refused(BrokenRule, FIRST, conclusion="x", context=context) == ["DiagnosticReport"]


# The identifier


def test_an_identifier_that_is_wrong_by_now_may_stay() -> None:
    old = stored(identifier=[])

    assert body_of(updated(old, conclusion="x"))["identifier"] == []


def test_a_body_that_is_no_report_is_refused() -> None:
    with pytest.raises(InvalidContent):
        updated(FIRST, [])
