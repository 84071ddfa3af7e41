"""No identifier of a resource embeds the id of the organization that sends it."""

from __future__ import annotations

import pytest

from fhirpub.interactions.checks.organization_ids import organization_in_system
from tests.unit.interactions.checks.submitted import Places, places, submitted

TENANT_ID = "0b7e2a54-6d1c-4f0e-9a58-3c41f7d2e901"
OWN = "f3c9d4e1-58aa-4b6f-8e07-92d1a6b0c735"
RULE = "must not contain the organization's id: it comes from the access token"


def found(system: str, *own: str) -> Places:
    identifiers = [{"value": one} for one in own]
    submission = submitted(
        report_changes={"identifier": [{"system": system, "value": "R-1"}]},
        organization_changes={"identifier": identifiers} if own else None,
    )
    return places(organization_in_system(submission, TENANT_ID))


@pytest.mark.parametrize(
    "system",
    [
        TENANT_ID,
        f"https://lab.example/{TENANT_ID}/reports",
        f"urn:uuid:{TENANT_ID.upper()}",
        f"urn:x:{TENANT_ID.replace('-', '')}",
        f"urn:x:{TENANT_ID.replace('-', '%2D')}",
        f"urn:x:{TENANT_ID.replace('-', '%2d')}",
        f"urn:x:%30{TENANT_ID[1:].upper()}",
        f"urn:x:0%42{TENANT_ID[2:]}",
    ],
)
def test_the_id_of_the_tenant_is_refused_in_any_form(system: str) -> None:
    ((place, rule),) = found(system)

    assert place.endswith("identifier[0].system")
    assert rule == RULE


@pytest.mark.parametrize(
    "system", ["https://lab.example/reports", f"urn:{TENANT_ID[:-1]}", f"urn:{OWN}", "", "%"]
)
def test_any_other_system_is_accepted(system: str) -> None:
    assert found(system) == []


@pytest.mark.parametrize("own", [OWN, OWN.upper(), OWN.replace("-", "")])
def test_the_ids_that_the_organization_has_itself_are_refused(own: str) -> None:
    ((place, _rule),) = found(f"https://lab.example/{OWN}", "77", own)

    assert place.endswith("identifier[0].system")


@pytest.mark.parametrize("own", ["77", f"x{OWN}", OWN[:-1]])
def test_only_a_uuid_is_an_id_of_an_organization(own: str) -> None:
    assert found(f"https://lab.example/{own}", own) == []


def test_the_identifiers_of_a_patient_are_none_of_an_organization() -> None:
    submission = submitted(
        report_changes={"identifier": [{"system": f"urn:{OWN}", "value": "R-1"}]},
        patient_changes={"identifier": [{"value": OWN}]},
    )

    assert places(organization_in_system(submission, TENANT_ID)) == []


def test_a_value_may_be_the_id() -> None:
    submission = submitted(
        report_changes={"identifier": [{"system": "urn:x", "value": TENANT_ID}]}
    )

    assert places(organization_in_system(submission, TENANT_ID)) == []


def test_an_identifier_without_a_system_is_not_looked_at() -> None:
    submission = submitted(report_changes={"identifier": [{"value": "R-1"}]})

    assert places(organization_in_system(submission, TENANT_ID)) == []
