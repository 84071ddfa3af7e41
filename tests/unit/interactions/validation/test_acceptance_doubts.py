"""The first doubt ends the short way; what it accepts, the long way accepts in the same words."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal

import pytest

from fhirpub.app.context import create_context
from fhirpub.config.patients import PatientsConfig
from fhirpub.config.settings import Config, FhirConfig
from fhirpub.errors import Issue
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.interactions.submission.contained import from_contained
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.validation.acceptance import accept
from fhirpub.interactions.validation.usual import find_plain
from fhirpub.interactions.validation.validation import normalize, take_documents
from fhirpub.problems import ContentProblem
from fhirpub.runtime.stages import run_to_completion
from tests.bodies import document, organization, register_body, self_contained
from tests.panels import panel, result, specimen
from tests.unit.interactions.validation.test_acceptance import FAST, TENANT, TYPE, prepared

KEY = "http://hl7.org/fhir/sid/AR"
OWN_ID = "12345678-1234-4234-9234-123456789abc"
KNOWN = Issue.information(ContentProblem.ELEMENT_RECOMMENDED, "is known", "x")
Body = dict[str, Any]
Change = Callable[[Body], object]


def remarks(body: Any, context: Any = FAST) -> list[Issue] | None:
    """Return what the short way remarks on a body; None if it leaves it to the long way."""
    submission = from_parameters(loads(dumps(body)), context.types[TYPE])
    take_documents(submission)
    normalize(submission, context)
    find_plain(submission, context)
    return run_to_completion(accept(submission, [KNOWN], context, TENANT.id))


def entry(body: Body, number: int) -> Body:
    resource: Body = body["parameter"][number]["resource"]
    return resource


def changed(change: Change, body: Body | None = None) -> Body:
    copied = deepcopy(body or register_body("A-1"))
    change(copied)
    return copied


def alike(body: Body, context: Any = FAST) -> bool:
    """Return whether both ways store the same, or refuse it with the same words."""
    slow = replace(context, accepts_fast=False)
    return repr(prepared(dumps(body), context)) == repr(prepared(dumps(body), slow))


PANEL = panel(
    "A-1", result("a"), result("b"), specimen(), specimen=[{"reference": "Specimen/blood"}]
)
NARRATIVE = {
    "status": "generated",
    "div": '<div xmlns="http://www.w3.org/1999/xhtml">a</div>',
}
NOTE = {"url": "urn:note", "valueString": "x"}
RIGHT: dict[str, Body] = {
    "usual": register_body("A-1"),
    "with results": PANEL,
    "with an extension": changed(lambda body: entry(body, 2).update(extension=[NOTE])),
    "with an extension of a part": changed(lambda body: entry(body, 0).update(extension=[NOTE])),
    "with a narrative": changed(lambda body: entry(body, 2).update(text=NARRATIVE)),
    "with an id of the envelope": changed(lambda body: body.update(id="e")),
    "with an entry that is not taken": changed(
        lambda body: body["parameter"].append({"name": "note", "valueString": "x"})
    ),
    "with several documents": changed(
        lambda body: entry(body, 2)["presentedForm"].append(document(b"more"))
    ),
    "with a wrong hash": changed(
        lambda body: entry(body, 2)["presentedForm"][0].update(hash="0" * 64)
    ),
    "with an unknown code": changed(
        lambda body: entry(body, 2)["category"][0]["coding"][0].update(code="nonsense")
    ),
    "with a further reference": changed(
        lambda body: entry(body, 2).update(encounter={"display": "ward 7"})
    ),
    "with a patient without an identifier": changed(lambda body: entry(body, 0).pop("identifier")),
}
WRONG: dict[str, Body] = {
    "an entry twice": changed(lambda body: body["parameter"].append(body["parameter"][0])),
    "a part without an id": changed(lambda body: entry(body, 0).pop("id")),
    "a part that is not sent": changed(lambda body: body["parameter"].pop(1)),
    "a status of updates": changed(lambda body: entry(body, 2).update(status="entered-in-error")),
    "no status": changed(lambda body: entry(body, 2).pop("status")),
    "no document": changed(lambda body: entry(body, 2).pop("presentedForm")),
    "no identifier": changed(lambda body: entry(body, 2).pop("identifier")),
    "two identifiers": changed(
        lambda body: entry(body, 2)["identifier"].append({"system": "urn:s", "value": "2"})
    ),
    "an unknown element": changed(lambda body: entry(body, 2).update(nonsense=1)),
    "an unknown element of a part": changed(lambda body: entry(body, 1).update(nonsense=1)),
    "an unknown element of the envelope": changed(lambda body: body.update(nonsense=1)),
    "a modifier": changed(lambda body: entry(body, 2).update(modifierExtension=[NOTE])),
    "a modifier of a part": changed(lambda body: entry(body, 0).update(modifierExtension=[NOTE])),
    "rules of the envelope": changed(lambda body: body.update(implicitRules="urn:rules")),
    "another patient": changed(
        lambda body: entry(body, 2).update(subject={"reference": "Patient/p2"})
    ),
    "no patient": changed(lambda body: entry(body, 2).pop("subject")),
    "a broken rule of FHIR": changed(
        lambda body: entry(body, 0).update(
            contact=[{"extension": [NOTE], "gender": "female"}], extension=[NOTE]
        )
    ),
    "a wrong contained resource": changed(
        lambda body: entry(body, 0).update(
            contained=[{"resourceType": "Practitioner", "id": "d", "nonsense": 1}],
            generalPractitioner=[{"reference": "#d"}],
        )
    ),
    "a reference to an entry that is not taken": changed(
        lambda body: (
            body["parameter"].append(
                {"name": "visit", "resource": {"resourceType": "Encounter", "id": "v1"}}
            ),
            entry(body, 2).update(encounter={"reference": "Encounter/v1"}),
        )
    ),
    "an identifier in the namespace of the tenant": changed(
        lambda body: entry(body, 2)["identifier"][0].update(system=f"urn:uuid:{TENANT.id}")
    ),
    "an identifier in the namespace of the organization": changed(
        lambda body: (
            entry(body, 1)["identifier"][0].update(value=OWN_ID),
            entry(body, 2)["identifier"][0].update(system=f"urn:uuid:{OWN_ID}"),
        )
    ),
    "a result with a wrong status": panel("A-1", result("a", status="entered-in-error")),
    "a result that leads nowhere": panel(
        "A-1", result("a", hasMember=[{"reference": "Observation/x"}])
    ),
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_accepted_the_short_way(body: Body) -> None:
    assert remarks(body) is not None


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_stored_alike_both_ways(body: Body) -> None:
    assert alike(body)


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_left_to_the_long_way(body: Body) -> None:
    assert remarks(body) is None


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused_alike_both_ways(body: Body) -> None:
    assert alike(body)


def test_a_document_that_cannot_be_read_is_refused_alike_both_ways() -> None:
    assert alike(changed(lambda body: entry(body, 2)["presentedForm"][0].update(data="?")))


def test_a_wrong_hash_is_left_to_the_long_way_where_it_is_refused() -> None:
    config = replace(Config(), fhir=FhirConfig(hash_check="strict"))
    context = create_context(config, clock=lambda: 1_800_000_000_000)

    assert remarks(RIGHT["with a wrong hash"], context) is None
    assert alike(RIGHT["with a wrong hash"], context)


def test_what_was_known_before_is_remarked_first() -> None:
    found = remarks(RIGHT["with an unknown code"])

    assert found is not None
    assert found[0] is KNOWN
    assert len(found) > 1


def test_a_remark_stands_where_the_code_stands() -> None:
    found = remarks(RIGHT["with an unknown code"])

    assert found is not None
    assert "Parameters.parameter[2].resource.category[0].coding[0].code" in {
        issue.expression for issue in found
    }


def test_a_remark_on_a_part_stands_in_its_entry() -> None:
    found = remarks(RIGHT["with a patient without an identifier"])

    assert found is not None
    assert any(one.expression.startswith("Parameters.parameter[0].resource") for one in found)


def test_an_identifier_of_two_persons_is_left_to_the_long_way() -> None:
    config = replace(Config(), patients=PatientsConfig(person_systems=[KEY]))
    context = create_context(config, clock=lambda: 1_800_000_000_000)
    two = [{"system": KEY, "value": value} for value in ("1", "2")]
    body = changed(lambda one: entry(one, 0).update(identifier=two))

    assert remarks(body) is not None
    assert alike(body, context)


def test_an_identifier_of_two_persons_is_remarked_where_its_system_names_persons() -> None:
    config = replace(Config(), patients=PatientsConfig(person_systems=[KEY]))
    context = create_context(config, clock=lambda: 1_800_000_000_000)
    two = [{"system": KEY, "value": value} for value in ("1", "2")]
    body = changed(lambda one: entry(one, 0).update(identifier=two))
    said = f"has 2 identifiers in {KEY}: none of them stands for the person"

    assert said in {issue.diagnostics for issue in remarks(body, context) or ()}
    assert said not in {issue.diagnostics for issue in remarks(body) or ()}


def test_an_identifier_of_two_persons_is_remarked_beside_other_remarks() -> None:
    config = replace(Config(), patients=PatientsConfig(person_systems=[KEY]))
    context = create_context(config, clock=lambda: 1_800_000_000_000)
    two = [{"system": KEY, "value": value} for value in ("1", "2")]

    def change(body: dict[str, Any]) -> None:
        entry(body, 0).update(identifier=two)
        entry(body, 2).update(encounter={"reference": "Encounter/nowhere"})

    found = {issue.diagnostics for issue in remarks(changed(change), context) or ()}

    assert f"has 2 identifiers in {KEY}: none of them stands for the person" in found
    assert [one for one in found if one.startswith("refers to nothing that is held here")]


def test_an_organization_in_the_namespace_of_others_is_looked_at() -> None:
    systems = changed(
        lambda body: entry(body, 1).update(
            organization(identifier=[{"system": f"urn:uuid:{TENANT.id}", "value": "1"}])
        )
    )

    assert alike(systems)


@pytest.mark.parametrize("system", ["urn:s", f"urn:uuid:{TENANT.id}"])
def test_a_resource_that_contains_its_parts_is_accepted_if_it_is_right(system: str) -> None:
    submission = from_contained(self_contained("A-1", system=system), FAST.types[TYPE])
    take_documents(submission)
    normalize(submission, FAST)
    find_plain(submission, FAST)

    found = run_to_completion(accept(submission, [], FAST, TENANT.id))

    assert (found is not None) is (system == "urn:s")


def test_an_id_in_a_namespace_is_that_of_the_tenant_that_sends() -> None:
    body = WRONG["an identifier in the namespace of the tenant"]
    submission = from_parameters(loads(dumps(body)), FAST.types[TYPE])
    take_documents(submission)
    normalize(submission, FAST)
    find_plain(submission, FAST)

    assert run_to_completion(accept(submission, [], FAST, OWN_ID)) is not None


@pytest.mark.parametrize("severity", ["warning", "error"])
def test_the_rules_of_the_type_itself_are_asked(severity: Literal["warning", "error"]) -> None:
    found = Issue(severity, "business-rule", "is odd", "code")
    ruled = replace(FAST.types[TYPE], rules=lambda _entry, _about: [found])
    context = replace(FAST, types={**FAST.types, TYPE: ruled})

    remarked = remarks(register_body("A-1"), context)

    assert remarked == (None if severity == "error" else [KNOWN, found])


def test_rules_between_elements_are_asked_of_the_parts_of_a_plain_report() -> None:
    period = {"start": "2026-11-21", "end": "2026-11-20"}
    body = changed(lambda one: entry(one, 0).update(name=[{"family": "Ash", "period": period}]))
    submission = from_parameters(loads(dumps(body)), FAST.types[TYPE])
    take_documents(submission)
    find_plain(submission, FAST)

    assert submission.entry.is_plain
    assert remarks(body) is None


@pytest.mark.parametrize(("element", "is_right"), [({}, True), ({"nickname": "a"}, False)])
def test_a_contained_resource_without_a_schema_is_looked_at(
    element: dict[str, Any], *, is_right: bool
) -> None:
    device = {"resourceType": "Device", "id": "d", **element}

    def change(body: Body) -> None:
        entry(body, 2).update(contained=[device], imagingStudy=[{"reference": "#d"}])

    body = changed(change)

    assert (remarks(body) is not None) is is_right
    assert alike(body)
