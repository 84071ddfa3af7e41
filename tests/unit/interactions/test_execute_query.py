"""What a search asks of the store, and what of its parameters is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.config.settings import FhirConfig, LimitsConfig
from fhirpub.errors import InvalidSearch, SearchTooCostly
from fhirpub.interactions.execute import understood
from fhirpub.interactions.value_parser import MAX_CONDITIONS
from fhirpub.storage.sqlite.store import SqliteStore
from tests.unit.interactions.patients.people import (
    Ward,
)
from tests.unit.interactions.searching import (
    REPORT,
    Given,
    read,
    type_of,
)


def test_a_search_without_parameters_asks_for_a_page_of_the_newest(ward: Ward) -> None:
    query = read(ward).query

    assert (query.type, query.ids, query.identifiers, query.criteria) == (REPORT, None, (), ())
    assert (query.after, query.limit) == (None, ward.context.config.fhir.page_size)
    assert query.max_seconds == ward.context.config.limits.search_seconds
    assert query.has_members is False
    assert query.count_up_to != 0


@pytest.mark.parametrize(("count", "limit"), [("99", 99), ("100", 100), ("101", 100)])
def test_a_page_has_a_greatest_length(store: SqliteStore, count: str, limit: int) -> None:
    ward = Ward(store)
    context = ward.context
    config = replace(context.config, fhir=FhirConfig(page_size=10, page_size_max=100))

    found = understood(
        (("_count", count),),
        resource_type=type_of(ward, REPORT),
        tenant=ward.tenant,
        context=replace(context, config=config),
        strict=True,
    )

    assert found.query.limit == limit


@pytest.mark.parametrize("given", [("_count", "0"), ("_summary", "count")])
def test_where_no_match_is_shown_all_are_counted(ward: Ward, given: Given) -> None:
    query = read(ward, given).query

    assert (query.limit, query.count_up_to) == (0, None)


def test_without_a_total_nothing_is_counted(ward: Ward) -> None:
    assert read(ward, ("_total", "none")).query.count_up_to == 0
    assert read(ward, ("_total", "accurate")).query.count_up_to is None


def test_members_are_searched_as_such(ward: Ward) -> None:
    assert read(ward, type_name="Observation").query.has_members is True


def test_the_budget_is_that_of_the_settings(ward: Ward) -> None:
    context = ward.context
    config = replace(context.config, limits=LimitsConfig(search_seconds=7))

    found = understood(
        (),
        resource_type=type_of(ward, REPORT),
        tenant=ward.tenant,
        context=replace(context, config=config),
        strict=True,
    )

    assert found.query.max_seconds == 7


def test_what_is_not_known_is_noted_or_refused(ward: Ward) -> None:
    given = (("status", "final"), ("nonsense", "x"))
    found = read(ward, *given)

    assert found.understood == (("status", "final"),)
    assert found.unknown == ("nonsense",)
    with pytest.raises(InvalidSearch) as refused:
        read(ward, *given, strict=True)
    assert [issue.expression for issue in refused.value.issues] == ["nonsense"]


def test_what_is_wrong_is_named_before_what_is_not_known(ward: Ward) -> None:
    with pytest.raises(InvalidSearch) as refused:
        read(ward, ("nonsense", "x"), ("date", "x"), strict=True)

    assert [issue.expression for issue in refused.value.issues] == ["date", "nonsense"]


@pytest.mark.parametrize(("more", "refused"), [(0, False), (1, True)])
def test_a_search_has_so_many_conditions(ward: Ward, more: int, *, refused: bool) -> None:
    given = [("status", "final")] * (MAX_CONDITIONS + more)
    unread = [("status", ""), ("nonsense", "x"), ("_count", "1")]

    if refused:
        with pytest.raises(SearchTooCostly):
            read(ward, *given, *unread)
    else:
        assert len(read(ward, *given, *unread).query.criteria) >= 1
