"""A condition means one resource, or none; one that is not understood as a whole means nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.config.settings import Config
from fhirpub.errors import InvalidSearch, SeveralMatch
from fhirpub.interactions.context import Context
from fhirpub.interactions.cursors import CURSOR, seal
from fhirpub.interactions.match import ABOUT_THE_ANSWER, the_match
from fhirpub.problems import OperationProblem
from fhirpub.storage.contract import Page, SearchQuery, Version
from fhirpub.storage.criteria import encode
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import OTHER, a_version, successor
from tests.unit.interactions.reading import INDEXER, NOW, OBSERVATION, TENANT

OTHER_TENANT = Tenant(id=OTHER, name="Other", salt=b"t" * 32, created=0)
NO_VALUE = "has no value, and a condition must be understood as a whole"


async def match(store: Any, *criteria: tuple[str, str], tenant: Tenant = TENANT) -> Version | None:
    context = SimpleNamespace(
        config=Config(), clock=lambda: NOW, searched={"Observation": INDEXER}, resources=store
    )
    return await the_match(
        criteria,
        resource_type=OBSERVATION,
        tenant=tenant,
        context=cast("Context", context),
    )


async def refusal(store: Any, *criteria: tuple[str, str]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSearch) as refused:
        await match(store, *criteria)
    return [(issue.expression, issue.diagnostics) for issue in refused.value.issues]


async def stored(
    store: SqliteStore, code: str = "a", *, tenant: Tenant = TENANT, **changes: Any
) -> Version:
    version = a_version(
        type="Observation", search=encode([("code", code, "urn:codes")]), **changes
    )
    await store.add(tenant.id, version)
    return version


class Answering:
    """A store with one answer to every search."""

    def __init__(self, *versions: Version, more: bool) -> None:
        self.page = Page(versions, None, more)
        self.asked: list[SearchQuery] = []

    async def search(self, tenant_id: str, query: SearchQuery) -> Page:
        self.asked.append(query)
        return self.page


async def test_nothing_matches_in_an_empty_store(store: SqliteStore) -> None:
    assert await match(store, ("code", "a")) is None


async def test_the_one_that_matches_is_returned(store: SqliteStore) -> None:
    wanted = await stored(store, "a")
    await stored(store, "b")

    found = await match(store, ("code", "a"))

    assert found is not None
    assert found.id == wanted.id


async def test_it_is_returned_as_it_is_now(store: SqliteStore) -> None:
    first = await stored(store)
    await store.add(TENANT.id, successor(first))

    found = await match(store, ("code", "a"))

    assert found is not None
    assert (found.id, found.version) == (first.id, 2)


async def test_what_matched_in_an_earlier_version_is_not_meant(store: SqliteStore) -> None:
    first = await stored(store)
    await store.add(TENANT.id, successor(first, search=encode([("code", "b", "urn:codes")])))

    assert await match(store, ("code", "a")) is None


async def test_two_that_match_are_refused_in_words(store: SqliteStore) -> None:
    await stored(store)
    await stored(store)

    with pytest.raises(SeveralMatch) as refused:
        await match(store, ("code", "a"))

    assert str(refused.value) == "more than one Observation matches the condition"


@pytest.mark.parametrize(
    "about", [("_count", "1"), ("_count", "0"), ("_summary", "count"), ("_total", "none")]
)
async def test_no_parameter_about_the_answer_hides_the_second(
    store: SqliteStore, about: tuple[str, str]
) -> None:
    await stored(store)
    await stored(store)

    with pytest.raises(SeveralMatch):
        await match(store, ("code", "a"), about)


async def test_more_than_a_page_could_hold_are_several() -> None:
    with pytest.raises(SeveralMatch):
        await match(Answering(a_version(), more=True), ("code", "a"))
    with pytest.raises(SeveralMatch):
        await match(Answering(more=True), ("code", "a"))


async def test_no_more_than_two_are_read() -> None:
    store = Answering(more=False)

    await match(store, ("code", "a"), ("_count", "100"))

    assert [(query.limit, query.after) for query in store.asked] == [(2, None)]


async def test_a_link_to_a_further_page_skips_no_match() -> None:
    criteria = ("code", "a")
    link = seal((NOW, "z"), TENANT, "Observation", [criteria])
    store = Answering(more=False)

    await match(store, criteria, (CURSOR, link))

    assert [query.after for query in store.asked] == [None]


async def test_all_conditions_must_hold(store: SqliteStore) -> None:
    await stored(store, "a")

    assert await match(store, ("code", "a"), ("code", "b")) is None


async def test_resources_of_other_tenants_are_not_meant(store: SqliteStore) -> None:
    await stored(store)
    other = await stored(store, tenant=OTHER_TENANT)

    found = await match(store, ("code", "a"), tenant=OTHER_TENANT)

    assert found is not None
    assert found.id == other.id


async def test_an_identifier_means_what_was_registered_under_it(store: SqliteStore) -> None:
    key = ("urn:s", "7")
    named: dict[str, Any] = {"system": key[0], "value": key[1]}
    wanted = await stored(store, id=TENANT.resource_id("Observation", *key), **named)
    await stored(store, **named)

    found = await match(store, ("identifier", "urn:s|7"))

    assert found is not None
    assert found.id == wanted.id


@pytest.mark.parametrize("name", ["code", "identifier", "nonsense", "_count", "code:not"])
async def test_a_parameter_without_a_value_is_refused(store: SqliteStore, name: str) -> None:
    expression = name.partition(":")[0]

    (found,) = await refusal(store, ("code", "a"), (name, ""))

    assert found[0].startswith(expression)
    assert found[1] == NO_VALUE


@pytest.mark.parametrize("name", ["_format", "_pretty"])
async def test_the_format_of_the_answer_may_have_no_value(store: SqliteStore, name: str) -> None:
    assert await match(store, ("code", "a"), (name, "")) is None


async def test_all_that_is_wrong_is_reported_and_what_is_empty_first(store: SqliteStore) -> None:
    found = await refusal(store, ("code", "b"), ("nonsense", "x"), ("date", ""), ("date", "x"))

    assert [name for name, _rule in found][:2] == ["date", "date"]
    assert found[0][1] == NO_VALUE
    assert len(found) == 3


async def test_what_is_empty_is_a_problem_of_parameters(store: SqliteStore) -> None:
    with pytest.raises(InvalidSearch) as refused:
        await match(store, ("code", ""))

    assert [issue.details for issue in refused.value.issues] == [OperationProblem.PARAMETER_EMPTY]


async def test_a_parameter_that_is_not_known_is_refused(store: SqliteStore) -> None:
    ((name, _rule),) = await refusal(store, ("code", "a"), ("nonsense", "x"))

    assert name == "nonsense"


@pytest.mark.parametrize(
    "criteria",
    [
        (),
        (("_format", "json"),),
        (("_count", "1"),),
        (("_sort", "_id"), ("_total", "none")),
        (("_include", "Observation:encounter"),),
        (("_include:iterate", "Observation:encounter"),),
        (("_elements", "code"), ("_summary", "false")),
    ],
)
async def test_a_condition_must_mean_something(
    store: SqliteStore, criteria: tuple[tuple[str, str], ...]
) -> None:
    await stored(store)

    with pytest.raises(InvalidSearch) as refused:
        await match(store, *criteria)

    (issue,) = refused.value.issues
    assert issue.details is OperationProblem.CONDITION_EMPTY
    assert issue.diagnostics == (
        "a condition needs a search parameter, such as identifier=<system>|<value>"
    )


def test_what_is_about_the_answer_is_no_condition() -> None:
    assert {
        "_count",
        "_elements",
        "_format",
        "_include",
        "_pretty",
        "_revinclude",
        "_sort",
        "_summary",
        "_total",
    } == ABOUT_THE_ANSWER


@pytest.mark.parametrize("name", ["_id", "_lastUpdated"])
async def test_what_every_resource_has_is_a_condition(store: SqliteStore, name: str) -> None:
    wanted = await stored(store)
    value = wanted.id if name == "_id" else "gt2001"

    found = await match(store, (name, value))

    assert found is not None
    assert found.id == wanted.id
