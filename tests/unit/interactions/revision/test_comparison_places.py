"""What a refused revision names: where the identifier is, and which parts came later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.interactions.revision.comparison import (
    Stored,
    _changed_parts,
    _fixed_elements,
    _unlike_identity,
)
from fhirpub.plugin_api import IdentifierRule
from fhirpub.testing.samples import a_version, new_id
from tests.unit.interactions.patients.people import Ward
from tests.unit.interactions.revision.revising import (
    REPORT,
    body_of,
    candidate_of,
    numbered,
)


@pytest.mark.parametrize(
    ("elements", "place"),
    [
        (("identifier",), "identifier[0]"),
        (("masterIdentifier",), "masterIdentifier"),
        (("accessionIdentifier", "identifier"), "accessionIdentifier"),
    ],
)
def test_another_identifier_is_named_where_the_type_has_it(
    storeless_ward: Ward, elements: tuple[str, ...], place: str
) -> None:
    several = IdentifierRule(elements=elements, most=1 if len(elements) == 1 else 5)
    declared = replace(storeless_ward.context.types[REPORT], identifier=several)
    latest = a_version(type=REPORT)

    (issue,) = _unlike_identity(replace(latest, id=new_id()), latest, declared)

    assert (issue.expression, issue.severity) == (f"{REPORT}.{place}", "error")
    assert issue.details == "element-not-updatable"
    assert [*_unlike_identity(latest, latest, declared)] == []


def test_a_part_that_was_not_registered_is_named_as_such(storeless_ward: Ward) -> None:
    candidate = candidate_of(storeless_ward, body_of(numbered(1))).version
    parts = loads_stored(candidate.parts)
    before = dumps({"patient": parts["patient"]})

    (issue,) = _changed_parts(
        candidate, Stored(candidate, before, before, storeless_ward.tenant, {})
    )

    assert issue.diagnostics == (
        "the entry organization was not registered: it stays as it was registered"
    )
    assert issue.expression == "organization"


def test_a_part_that_is_left_out_is_no_change(storeless_ward: Ward) -> None:
    candidate = candidate_of(storeless_ward, body_of(numbered(1))).version
    parts = loads_stored(candidate.parts)
    more = dumps({**parts, "other": {"resourceType": "Organization", "id": "x"}})

    assert [
        *_changed_parts(candidate, Stored(candidate, more, more, storeless_ward.tenant, {}))
    ] == []


def test_a_part_that_is_left_out_hides_no_other(storeless_ward: Ward) -> None:
    candidate = candidate_of(storeless_ward, body_of(numbered(1))).version
    parts = loads_stored(candidate.parts)
    other = {"resourceType": "Organization", "id": "x"}
    before = dumps({**parts, "aide": other, "patient": {**parts["patient"], "gender": "other"}})

    found = _changed_parts(candidate, Stored(candidate, before, before, storeless_ward.tenant, {}))

    assert [issue.diagnostics for issue in found] == [
        "the entry patient differs in gender: it stays as it was registered"
    ]


def test_elements_of_identifiers_are_left_to_the_key(storeless_ward: Ward) -> None:
    rule = IdentifierRule(elements=("masterIdentifier", "container.identifier"), most=5)
    declared = replace(storeless_ward.context.types[REPORT], identifier=rule)
    names = {"masterIdentifier", "identifier", "code", "media"}

    found = _fixed_elements(names, declared)

    assert [issue.expression for issue in found] == [f"{REPORT}.code", f"{REPORT}.media"]
