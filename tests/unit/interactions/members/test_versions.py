"""Members become versions: their ids follow from the resource, their numbers from its version."""

from __future__ import annotations

import json

from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.interactions.members.versions import (
    first_versions,
    ids_of_members,
    parameters_of_members,
)
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.submission.record import Submission
from fhirpub.storage.contract import Version
from fhirpub.testing.samples import new_id
from tests.panels import RESULTS, panel, result, specimen
from tests.unit.interactions.erasure.registered import OTHER_TENANT, TENANT
from tests.unit.interactions.updating import CONTEXT, NOW

ID = new_id()


def named(local_id: str, value: str) -> dict[str, object]:
    return result(local_id, identifier=[{"system": RESULTS, "value": value}])


def submitted(*entries: dict[str, object]) -> Submission:
    body = panel("R-1", *(entries or (named("a", "1"), named("b", "2"), specimen())))
    return from_parameters(loads(dumps(body)), CONTEXT.types["DiagnosticReport"])


def versions(submission: Submission, number: int = 1) -> tuple[Version, ...]:
    ids = ids_of_members(submission, TENANT, ID)
    return first_versions(submission, ids, {}, number=number, now=NOW, context=CONTEXT)


def test_ids_follow_from_the_resource_and_the_key() -> None:
    ids = ids_of_members(submitted(), TENANT, ID)

    assert len({*ids.values()}) == 3
    assert ids == ids_of_members(submitted(), TENANT, ID)
    turned = submitted(named("b", "2"), named("a", "1"))
    assert {*ids_of_members(turned, TENANT, ID).values()} < {*ids.values()}


def test_members_of_another_tenant_or_resource_have_other_ids() -> None:
    mine = {*ids_of_members(submitted(), TENANT, ID).values()}

    assert mine.isdisjoint(ids_of_members(submitted(), OTHER_TENANT, ID).values())
    assert mine.isdisjoint(ids_of_members(submitted(), TENANT, new_id()).values())


def test_each_member_has_the_number_and_the_time_of_its_resource() -> None:
    for number in (1, 4):
        found = versions(submitted(), number)
        assert [one.type for one in found] == ["Observation", "Observation", "Specimen"]
        for one in found:
            assert (one.version, one.created, one.updated) == (number, NOW, NOW)
            body = json.loads(one.body)
            assert (body["id"], body["meta"]["versionId"]) == (one.id, str(number))
            assert body["meta"]["lastUpdated"].startswith("2027-01-15T08:00:00")


def test_a_member_has_its_own_status_or_none() -> None:
    assert [one.status for one in versions(submitted())] == ["final", "final", ""]


def test_a_member_is_found_by_its_own_values() -> None:
    first, second, _specimen = versions(submitted())

    assert b'"1"' in first.search
    assert b'"1"' not in second.search
    assert (first.system, first.value) == ("", "")


def test_the_response_names_each_member_with_its_address() -> None:
    submission = submitted()
    found = versions(submission)

    assert list(parameters_of_members(submission, found)) == [
        {"name": name, "valueReference": {"reference": f"{one.type}/{one.id}"}}
        for name, one in zip(("observation", "observation", "specimen"), found, strict=True)
    ]
