"""A rule that gives other keys to what is stored is refused, with the number of what it loses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fhirpub.errors import ConfigurationError
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.identity import stored_rules
from fhirpub.interactions.identity.stored_rules import (
    changed_rules,
    described_rules,
    is_found,
    refuse_other_keys,
)
from fhirpub.plugin_api import IdentifierRule, ResourceType, ValueForm
from fhirpub.storage.contract import KEY_RULES, SearchQuery, Version
from fhirpub.storage.erasure import contract
from fhirpub.storage.erasure.contract import Erasure
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import LAB, OTHER, a_version, new_id, successor

USES = IdentifierRule(most=3, uses=("official",))
UPPER = IdentifierRule(forms=(ValueForm(case="upper"),))
HOW_OUT = (
    "would no longer be found under their identifiers, and a repetition would register them "
    "twice. Go back to the release of the plugin with the earlier rule, or begin with an empty "
    "store and register the resources again"
)


def a_type(name: str = "Flag", rule: IdentifierRule | None = None) -> ResourceType:
    return ResourceType(
        name=name,
        parts=(),
        create_statuses=frozenset({"active"}),
        update_statuses=frozenset({"active"}),
        identifier=rule or IdentifierRule(),
    )


def types(**rules: IdentifierRule | None) -> dict[str, ResourceType]:
    return {name: a_type(name, rule) for name, rule in rules.items()}


async def stored(
    store: SqliteStore,
    value: str,
    *,
    type_name: str = "Flag",
    tenant: str = LAB,
    of: str = "",
    **changes: Any,
) -> Version:
    body = {"resourceType": type_name, "identifier": [{"system": "urn:s", "value": value}]}
    version = a_version(
        type=type_name, system="urn:s", value=of or value, body=dumps(body), **changes
    )
    await store.add(tenant, version)
    return version


@pytest.fixture
async def filled(store: SqliteStore) -> SqliteStore:
    """Return a store that knows two tenants."""
    for id_ in (LAB, OTHER):
        await store.put_tenant(Tenant(id=id_, name=id_, salt=b"s" * 32, created=0))
    return store


async def refusal(store: SqliteStore, before: dict[str, str], **rules: Any) -> str:
    with pytest.raises(ConfigurationError) as refused:
        await refuse_other_keys(store, types(**rules), before)
    return str(refused.value)


def test_a_rule_that_no_type_declares_is_not_recorded() -> None:
    assert described_rules(types(Flag=None), {}) == {}


def test_a_declared_rule_is_recorded_under_the_name_of_its_type() -> None:
    recorded = described_rules(types(Flag=USES, List=None), {})

    assert [*recorded] == [f"{KEY_RULES}Flag"]
    assert json.loads(recorded[f"{KEY_RULES}Flag"]) == {"uses": ["official"]}


def test_that_there_is_no_rule_any_more_is_recorded() -> None:
    before = described_rules(types(Flag=USES), {})

    assert described_rules(types(Flag=None), before) == {f"{KEY_RULES}Flag": ""}


def test_types_with_other_rules_than_before_are_named() -> None:
    before = described_rules(types(Flag=USES, List=USES), {})

    assert changed_rules(types(Flag=USES, List=None, Basic=UPPER), before) == ["List", "Basic"]
    assert changed_rules(types(Flag=USES, Basic=None), before) == []


async def test_an_empty_store_takes_any_rule(filled: SqliteStore) -> None:
    await refuse_other_keys(filled, types(Flag=UPPER), {})


async def test_a_rule_that_leaves_all_keys_as_they_are_is_taken(filled: SqliteStore) -> None:
    await stored(filled, "A-1")

    await refuse_other_keys(filled, types(Flag=UPPER), {})


async def test_a_store_is_not_read_for_a_rule_that_did_not_change(filled: SqliteStore) -> None:
    await stored(filled, "a-1")
    before = described_rules(types(Flag=UPPER), {})
    await filled.stop()

    await refuse_other_keys(filled, types(Flag=UPPER), before)


async def test_resources_that_would_have_another_key_are_counted(filled: SqliteStore) -> None:
    for value in ("a-1", "a-2", "A-3"):
        await stored(filled, value)

    assert await refusal(filled, {}, Flag=UPPER) == (
        "Flag: the plugin declares another rule for identifiers than the one by which the store "
        "was filled (forms: was the default, is {'': {'case': 'upper'}}). 2 of 3 resources "
        f"{HOW_OUT}"
    )


async def test_resources_of_all_tenants_are_counted(filled: SqliteStore) -> None:
    for tenant in (LAB, OTHER):
        await stored(filled, "a-1", tenant=tenant)

    assert "2 of 2 resources" in await refusal(filled, {}, Flag=UPPER)


async def test_what_only_the_last_tenant_has_is_found(filled: SqliteStore) -> None:
    await stored(filled, "a-1", tenant=max(LAB, OTHER))

    assert "1 of 1 resources" in await refusal(filled, {}, Flag=UPPER)


async def test_more_resources_than_a_page_has_are_counted(
    filled: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_rules, "_PAGE", 3)
    for number in range(7):
        await stored(filled, f"a-{number}")

    assert "7 of 7 resources" in await refusal(filled, {}, Flag=UPPER)


async def test_each_resource_counts_once_however_many_versions_it_has(
    filled: SqliteStore,
) -> None:
    first = await stored(filled, "a-1")
    await filled.add(LAB, successor(first))

    assert "1 of 1 resources" in await refusal(filled, {}, Flag=UPPER)


async def test_resources_of_other_types_are_not_counted(filled: SqliteStore) -> None:
    await stored(filled, "a-1")
    await stored(filled, "a-1", type_name="List")

    assert "1 of 1 resources" in await refusal(filled, {}, Flag=UPPER, List=None)


async def test_all_types_with_other_keys_are_named_in_order(filled: SqliteStore) -> None:
    await stored(filled, "a-1", type_name="List")
    await stored(filled, "a-1", type_name="Flag")
    await stored(filled, "A-1", type_name="Basic")

    lines = (await refusal(filled, {}, List=UPPER, Flag=UPPER, Basic=UPPER)).splitlines()

    assert [line.partition(":")[0] for line in lines] == ["Flag", "List"]


async def test_both_rules_are_shown_as_far_as_they_differ(filled: SqliteStore) -> None:
    await stored(filled, "a-1", of="A-1")
    both = replace(USES, forms=UPPER.forms)
    before = described_rules(types(Flag=both), {})

    said = await refusal(filled, before, Flag=replace(USES, systems=("urn:s",)))

    assert "uses" not in said.partition("(")[2].partition(")")[0]
    assert "forms: was {'': {'case': 'upper'}}, is the default" in said
    assert "systems: was the default, is ['urn:s']" in said


async def test_a_function_may_have_made_any_key(filled: SqliteStore) -> None:
    await stored(filled, "a-1")
    rule = IdentifierRule(elements=(), key=lambda _resource: ("urn:s", "a-1"))

    said = await refusal(filled, {}, Flag=rule)

    assert "key_version: was the default, is 1" in said
    assert "1 of 1 resources" in said


def erased(**changes: Any) -> Erasure:
    usual = Erasure(
        tenant=LAB, type="Flag", id=new_id(), ordered=1, operator="eve", reason="r", version=1
    )
    return replace(usual, **changes)


async def test_what_was_erased_for_good_would_have_another_key(filled: SqliteStore) -> None:
    await filled.put_erasure(erased())

    assert "1 of 1 resources" in await refusal(filled, {}, Flag=UPPER)


@pytest.mark.parametrize("changes", [{"type": "List"}, {"version": 0}, {"allows_reuse": True}])
async def test_an_erasure_that_leaves_no_key_does_not_count(
    filled: SqliteStore, changes: dict[str, Any]
) -> None:
    await filled.put_erasure(erased(**changes))

    await refuse_other_keys(filled, types(Flag=UPPER, List=None), {})


async def test_more_erasures_than_a_page_has_are_counted(
    filled: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "_PAGE", 3)
    for _ in range(7):
        await filled.put_erasure(erased())

    assert "7 of 7 resources" in await refusal(filled, {}, Flag=UPPER)


async def test_what_is_erased_and_what_is_not_are_counted_together(filled: SqliteStore) -> None:
    await filled.put_erasure(erased())
    await stored(filled, "a-1")
    await stored(filled, "A-2")

    assert "2 of 3 resources" in await refusal(filled, {}, Flag=UPPER)


async def test_a_search_finds_something_if_any_tenant_has_it(filled: SqliteStore) -> None:
    query = SearchQuery(type="Flag", limit=1, count_up_to=0)
    assert not await is_found(query, [LAB, OTHER], filled)
    await stored(filled, "a-1", tenant=OTHER)

    assert await is_found(query, [LAB, OTHER], filled)
    assert not await is_found(query, [LAB], filled)
