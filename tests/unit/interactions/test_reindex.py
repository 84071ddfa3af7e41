"""Search values are computed again when the rules change, and only then."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from fhirpub.errors import ConfigurationError
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions import reindex
from fhirpub.interactions.indexing import limits
from fhirpub.interactions.reindex import is_indexed, refuse_changed_keys, reindex_if_needed
from fhirpub.storage.contract import Version
from fhirpub.storage.criteria import decode
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.samples import a_version, successor
from tests.bodies import register_body
from tests.panels import panel, result
from tests.unit.interactions.erasure.registered import (
    OTHER_TENANT,
    TENANT,
    context_of,
    registered,
)

TYPE = "DiagnosticReport"
NOTHING = b"[]"
PERSONS = "http://hl7.org/fhir/sid/AR"
LAST = "ffffffff-ffff-4fff-bfff-ffffffffffff"


def searched(store: SqliteStore) -> Any:
    return context_of(store).searched


async def rules_in(store: SqliteStore) -> dict[str, str]:
    found: dict[str, str] = json.loads(await store.search_rules())
    return found


async def forget(store: SqliteStore, *versions: Version, tenant_id: str = TENANT.id) -> None:
    """Take the values of versions away, as if others had been declared."""
    for one in versions:
        await store.replace_search(tenant_id, one.id, one.version, NOTHING)


async def values(store: SqliteStore, version: Version, tenant_id: str = TENANT.id) -> bytes:
    found = await store.version(tenant_id, version.id, version.version)
    assert found is not None
    return found.search


@pytest.fixture
async def report(store: SqliteStore) -> Version:
    await store.put_tenant(TENANT)
    await store.put_tenant(OTHER_TENANT)
    return await registered(store, panel("R-1", result("a")))


async def test_an_empty_store_gets_the_rules_of_all_types(store: SqliteStore) -> None:
    assert not await is_indexed(store, searched(store))

    await reindex_if_needed(store, searched(store))

    assert await is_indexed(store, searched(store))
    rules = await rules_in(store)
    assert {*searched(store)} <= {*rules}


async def test_values_come_back_as_a_registration_had_them(
    store: SqliteStore, report: Version
) -> None:
    [member] = report.members
    before = [await values(store, one) for one in (report, member)]
    await forget(store, report, member)
    assert [await values(store, one) for one in (report, member)] == [NOTHING, NOTHING]

    await reindex_if_needed(store, searched(store))

    assert [await values(store, one) for one in (report, member)] == before
    assert NOTHING not in before


async def test_with_the_same_rules_nothing_is_read_again(
    store: SqliteStore, report: Version
) -> None:
    await reindex_if_needed(store, searched(store))
    await forget(store, report)

    await reindex_if_needed(store, searched(store))

    assert await values(store, report) == NOTHING


async def test_only_types_with_other_rules_are_read_again(
    store: SqliteStore, report: Version
) -> None:
    [member] = report.members
    await reindex_if_needed(store, searched(store))
    await store.put_search_rules(json.dumps({**await rules_in(store), TYPE: "others"}))
    await forget(store, report, member)

    await reindex_if_needed(store, searched(store))

    assert await values(store, report) == report.search
    assert await values(store, member) == NOTHING
    assert await is_indexed(store, searched(store))


async def test_a_type_whose_resources_all_come_with_others_is_read_again(
    store: SqliteStore, report: Version
) -> None:
    [member] = report.members
    await reindex_if_needed(store, searched(store))
    await store.put_search_rules(json.dumps({**await rules_in(store), member.type: "others"}))
    await forget(store, member)

    await reindex_if_needed(store, searched(store))

    assert await values(store, member) == member.search


async def test_the_log_counts_the_versions_whose_values_have_changed(
    store: SqliteStore, report: Version
) -> None:
    await registered(store, register_body("R-2"))
    await forget(store, report)

    with capture_logs() as lines:
        await reindex_if_needed(store, searched(store))

    assert [(one["event"], one.get("versions")) for one in lines] == [
        ("reindex started", None),
        ("reindex finished", 1),
    ]


async def test_rules_of_types_that_are_not_enabled_stay(store: SqliteStore) -> None:
    await reindex_if_needed(store, searched(store))
    await store.put_search_rules(json.dumps({**await rules_in(store), "Group": "of then"}))

    assert await is_indexed(store, searched(store))
    await store.put_search_rules(json.dumps({**await rules_in(store), TYPE: "others"}))
    await reindex_if_needed(store, searched(store))

    assert (await rules_in(store))["Group"] == "of then"


async def test_versions_of_several_tenants_and_pages_are_read(
    store: SqliteStore, report: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reindex, "_PAGE", 2)
    mine = [report, *[await registered(store, register_body(f"M-{n}")) for n in range(4)]]
    theirs = await registered(store, register_body("R-1"), tenant=OTHER_TENANT)
    later = successor(report, members=())
    await store.add(TENANT.id, later)
    await forget(store, *mine, later)
    await forget(store, theirs, tenant_id=OTHER_TENANT.id)

    await reindex_if_needed(store, searched(store))

    for one in mine:
        assert await values(store, one) == one.search
    assert await values(store, later) != NOTHING
    assert await values(store, theirs, OTHER_TENANT.id) == theirs.search


async def test_versions_of_no_tenant_are_passed_over(store: SqliteStore) -> None:
    version = await registered(store, register_body("R-1"))
    await forget(store, version)

    await reindex_if_needed(store, searched(store))

    assert await values(store, version) == NOTHING


async def test_an_interrupted_run_begins_again(
    store: SqliteStore, report: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    await forget(store, report)

    async def fail(*_arguments: Any, **_named: Any) -> None:
        raise OSError

    with monkeypatch.context() as failing:
        failing.setattr(store, "replace_search", fail)
        with pytest.raises(OSError):
            await reindex_if_needed(store, searched(store))
    assert not await is_indexed(store, searched(store))

    await reindex_if_needed(store, searched(store))

    assert await values(store, report) == report.search


async def test_other_keys_than_those_of_what_is_stored_are_refused(
    store: SqliteStore, report: Version
) -> None:
    await reindex_if_needed(store, searched(store))
    before = await store.search_rules()
    one = searched(store)[TYPE]
    rule = replace(one.type.identifier, uses=("official",))
    other: Any = _With(one, replace(one.type, identifier=rule))

    with pytest.raises(ConfigurationError):
        await refuse_changed_keys(store, {**searched(store), TYPE: other})
    assert await store.search_rules() == before


async def test_versions_of_a_tenant_that_is_gone_are_passed_over_between_others(
    store: SqliteStore,
) -> None:
    await store.put_tenant(TENANT)
    mine = [await registered(store, register_body(f"M-{number}")) for number in range(3)]
    theirs = [
        await registered(store, register_body(f"R-{number}"), tenant=OTHER_TENANT)
        for number in range(3)
    ]
    await forget(store, *mine)
    await forget(store, *theirs, tenant_id=OTHER_TENANT.id)

    await reindex_if_needed(store, searched(store))

    assert [await values(store, one) for one in mine] == [one.search for one in mine]
    assert {await values(store, one, OTHER_TENANT.id) for one in theirs} == {NOTHING}


async def test_values_that_were_stored_before_there_was_a_limit_are_taken_all_the_same(
    store: SqliteStore, report: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    [member] = report.members
    body = json.loads(report.body)
    body["category"] = [{"coding": [{"code": str(number)} for number in range(20)]}]
    later = successor(report, members=(), body=dumps(body))
    await store.add(TENANT.id, later)
    before = [await values(store, one) for one in (report, member)]
    await forget(store, report, member, later)
    monkeypatch.setattr(limits, "MAX_SEARCH_VALUES", 1)

    await reindex_if_needed(store, searched(store))

    assert [await values(store, one) for one in (report, member)] == before
    assert await values(store, later) != NOTHING


async def test_a_first_version_without_parts_has_nothing_of_the_resource_before_it(
    store: SqliteStore, report: Version
) -> None:
    body = {"resourceType": TYPE, "id": LAST, "status": "final", "meta": {"versionId": "1"}}
    alone = a_version(id=LAST, system="urn:s", value="1", body=dumps(body), search=report.search)
    await store.add(TENANT.id, alone)

    await reindex_if_needed(store, searched(store))

    assert {name for name, *_rest in decode(await values(store, alone))} == {"status"}


async def test_a_later_version_is_found_by_the_patient_of_the_first(
    store: SqliteStore, report: Version
) -> None:
    later = successor(report, members=(), search=NOTHING)
    await store.add(TENANT.id, later)

    await reindex_if_needed(store, searched(store))

    identifiers = [one for one in decode(report.search) if one[0].endswith(":Patient.identifier")]
    found = decode(await values(store, later))
    assert [one for one in found if one[0].endswith(":Patient.identifier")] == identifiers != []


async def test_a_later_version_is_found_by_what_it_states_of_its_patient(
    store: SqliteStore, report: Version
) -> None:
    parts = json.loads(report.parts)
    parts["patient"]["meta"]["versionId"] = f"{report.id}.2"
    parts["patient"]["identifier"] = [{"system": "urn:other", "value": "9"}]
    body = json.loads(report.body)
    body["meta"]["versionId"] = "2"
    later = replace(
        successor(report, members=(), search=NOTHING, body=dumps(body)), parts=dumps(parts)
    )
    await store.add(TENANT.id, later)

    await reindex_if_needed(store, searched(store))

    found = decode(await values(store, later))
    assert ("subject:Patient:later", "", "") in found
    assert ("subject:Patient.identifier", "9", "urn:other") in found


async def test_a_resource_is_found_by_its_person_again(store: SqliteStore) -> None:
    await store.put_tenant(TENANT)
    version = await registered(store, panel("R-1", result("a")), PERSONS)
    [member] = version.members
    before = [await values(store, one) for one in (version, member)]
    await forget(store, version, member)

    await reindex_if_needed(store, context_of(store, PERSONS).searched)

    assert [await values(store, one) for one in (version, member)] == before


async def test_a_resource_from_before_a_system_was_declared_is_found_by_its_person(
    store: SqliteStore, report: Version
) -> None:
    [member] = report.members
    person = TENANT.person_id(PERSONS, "AAB123456")

    await reindex_if_needed(store, context_of(store, PERSONS).searched)

    for version in (report, member):
        assert ("subject", person, "Patient") in decode(await values(store, version))


class _With:
    """What takes the values of a type that is declared in another way."""

    def __init__(self, inner: Any, declared: Any) -> None:
        self.inner = inner
        self.type = declared

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
