"""What finds candidates among versions, and among members of versions."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import ID, LAST_UPDATED, Criterion, Order, TimeMatch
from fhirpub.storage.mongodb.documents import member_type
from fhirpub.storage.mongodb.schema import (
    BY_SEARCH_VALUE,
    BY_SYSTEM,
    BY_TIME,
    VERSION_KEY,
    Filter,
    Pipeline,
)
from fhirpub.storage.mongodb.search.filters import filter_of, of_member
from fhirpub.storage.mongodb.search.order import ordering_of
from fhirpub.storage.mongodb.search.sources import Alone, Members
from fhirpub.storage.mongodb.search.stages import KEY, LATER, LATER_OF_MEMBER, MEMBER, WHOLE
from fhirpub.testing.contracts.store.queries import has, text, token, wanting
from fhirpub.testing.samples import LAB, REPORT, new_id, new_member_id

CONDITION: Filter = {"tenant": LAB, "type": REPORT}
CODE, TEXT = has("code", token("a")), has("name", text("as"))
SINCE = has(LAST_UPDATED, TimeMatch(from_=5))
OURS = {"$match": {"later.tenant": {"$ne": LAB}}}
SHOWN_OF_MEMBERS = {**KEY, "carrier": 1}
MEMBERS_BY_TYPE = {"member_types": member_type(LAB, REPORT)}
BRINGS_MEMBERS = {"members": {"$exists": True}}


def alone(query: SearchQuery, index: str | None = BY_TIME) -> Alone:
    """Return what finds versions, with one condition."""
    return Alone(LAB, query, [CONDITION], index=index)


def members(query: SearchQuery) -> Members:
    """Return what finds members, with one condition."""
    return Members(LAB, query, [CONDITION])


def found(*conditions: Filter) -> dict[str, Any]:
    """Return the stage that finds versions by conditions."""
    return {"$match": {"$and": [*conditions]}}


def unwound(*wanted: Filter) -> Pipeline:
    """Return the stages that leave of carriers the members of the tenant that are wanted."""
    return [
        {"$unwind": "$members"},
        {"$match": {"$and": [*wanted]}},
        {"$replaceWith": MEMBER},
        {"$match": {"tenant": LAB}},
    ]


class TestTotal:
    """How matches are counted."""

    def test_without_values_each_first_version_is_counted(self) -> None:
        counting = alone(wanting()).total(by_first=True)

        assert counting == [found(CONDITION, {"version": 1}), {"$count": "total"}]

    def test_first_members_are_counted_as_well(self) -> None:
        counting = members(wanting()).total(by_first=True)

        assert counting == [
            found(MEMBERS_BY_TYPE),
            *unwound({"members.type": REPORT}, {"members.version": 1}),
            {"$count": "total"},
        ]

    def test_first_members_of_known_ids_are_counted(self) -> None:
        id_ = new_member_id()

        counting = members(wanting(ids=frozenset({id_}))).total(by_first=True)

        assert counting == [
            found({"members.id": id_}),
            *unwound({"members.type": REPORT}, {"members.version": 1}),
            {"$count": "total"},
        ]

    @pytest.mark.parametrize(("most", "limit"), [(0, 1), (1, 2), (100, 101)])
    def test_one_more_is_counted_than_is_asked_for(self, most: int, limit: int) -> None:
        counting = alone(wanting(count_up_to=most)).total(by_first=True)

        assert counting[1:] == [{"$limit": limit}, {"$count": "total"}]

    @pytest.mark.parametrize(
        ("query", "by_first"),
        [(wanting(), False), (wanting(CODE), True)],
        ids=["registered again", "by values"],
    )
    def test_else_the_newest_versions_are_counted(
        self, query: SearchQuery, *, by_first: bool
    ) -> None:
        counting = alone(query).total(by_first=by_first)

        assert counting == [
            found(CONDITION),
            {"$project": {"_id": 0, **KEY}},
            {"$lookup": LATER},
            OURS,
            {"$count": "total"},
        ]

    def test_every_version_is_counted_where_it_is_asked_for(self) -> None:
        counting = alone(wanting(every_version=True)).total(by_first=True)

        assert counting == [found(CONDITION), {"$project": {"_id": 0, **KEY}}, {"$count": "total"}]

    def test_no_more_is_read_ahead_than_a_limited_count_needs(self) -> None:
        counting = alone(wanting(CODE, count_up_to=7)).total(by_first=True)

        assert counting == [
            found(CONDITION),
            WHOLE,
            {"$project": {"_id": 0, **KEY}},
            {"$lookup": LATER},
            OURS,
            {"$limit": 8},
            {"$count": "total"},
        ]


class TestPage:
    """How a page is found."""

    def test_what_an_index_has_in_order_is_sorted_as_it_is(self) -> None:
        query = wanting(limit=7)

        assert alone(query).page(ordering_of(query), merged=False) == [
            found(CONDITION),
            {"$sort": {"updated": -1, "id": 1}},
            {"$project": {"_id": 0, **KEY}},
            {"$lookup": LATER},
            OURS,
            {"$limit": 8},
        ]

    def test_what_no_index_has_in_order_is_sorted_with_no_more_than_is_needed(self) -> None:
        query = wanting(limit=7)

        assert alone(query, BY_SEARCH_VALUE).page(ordering_of(query), merged=False) == [
            found(CONDITION),
            {"$project": {**KEY, "updated": 1}},
            {"$sort": {"updated": -1, "id": 1}},
            {"$project": {"_id": 0, **KEY}},
            {"$lookup": LATER},
            OURS,
            {"$limit": 8},
        ]

    def test_another_order_is_sorted_by_its_places(self) -> None:
        query = wanting(order=(Order("code"),))
        ordering = ordering_of(query)

        assert alone(query).page(ordering, merged=False)[1:3] == [
            {"$project": {**KEY, **ordering.needed}},
            {"$sort": ordering.sorting},
        ]

    def test_what_is_merged_keeps_what_decides_its_place(self) -> None:
        query = wanting()

        merged = alone(query).page(ordering_of(query), merged=True)

        assert merged[2] == {"$project": {"_id": 0, **KEY, "updated": 1}}

    def test_a_later_page_begins_behind_the_one_before(self) -> None:
        query = wanting(after=(5, "1"))
        ordering = ordering_of(query)

        later = alone(query).page(ordering, merged=False)

        assert later[0] == found(CONDITION, {"updated": {"$lte": 5}})
        assert later[2:4] == [
            {"$project": {"_id": 0, **KEY, "follows": ordering.follows}},
            {"$match": {"follows": True}},
        ]

    def test_every_version_is_found_where_it_is_asked_for(self) -> None:
        query = wanting(every_version=True, limit=7)

        assert alone(query).page(ordering_of(query), merged=False)[2:] == [
            {"$project": {"_id": 0, **KEY}},
            {"$limit": 8},
        ]

    @pytest.mark.parametrize(
        ("criterion", "index", "reads"),
        [
            (CODE, BY_TIME, True),
            (SINCE, BY_TIME, False),
            (has(ID, token("1")), BY_TIME, False),
            (CODE, BY_SYSTEM, False),
        ],
    )
    def test_versions_that_conditions_need_are_not_read_far_ahead(
        self, criterion: Criterion, index: str, *, reads: bool
    ) -> None:
        query = wanting(criterion)

        page = alone(query, index).page(ordering_of(query), merged=False)

        assert (WHOLE in page) is reads

    @pytest.mark.parametrize("index", [None, BY_SEARCH_VALUE])
    def test_several_indexes_together_have_no_order(self, index: str | None) -> None:
        assert not alone(wanting(), index).in_order

    @pytest.mark.parametrize("index", [BY_TIME, BY_SYSTEM, VERSION_KEY])
    def test_another_index_has_the_usual_order(self, index: str) -> None:
        assert alone(wanting(), index).in_order


class TestNewestFirst:
    """How a page is found in the order of an index, without its ids."""

    def test_it_is_read_as_far_as_a_page_needs_and_then_put_in_order(self) -> None:
        query = wanting(CODE, limit=7)

        assert alone(query).newest_first(ordering_of(query)) == [
            found(CONDITION),
            {"$sort": {"updated": -1}},
            WHOLE,
            {"$project": {"_id": 0, **KEY, "updated": 1}},
            {"$lookup": LATER},
            OURS,
            {"$limit": 8},
            {"$sort": {"updated": -1, "id": 1}},
        ]

    def test_candidates_are_chosen_before_they_are_read_whole(self) -> None:
        query = wanting(CODE)
        matching: Pipeline = [{"$limit": 9}, {"$match": {"value": "v"}}]

        stages = alone(query).newest_first(ordering_of(query), matching=matching)

        assert stages[2:5] == [*matching, WHOLE]

    def test_carriers_are_put_in_order_before_their_members_are_looked_at(self) -> None:
        query = wanting(after=(5, "1"))
        ordering = ordering_of(query)

        stages = members(query).newest_first(ordering)

        assert stages[:3] == [
            found(MEMBERS_BY_TYPE, {"updated": {"$lte": 5}}),
            {"$sort": {"updated": -1}},
            WHOLE,
        ]
        assert stages[3:7] == unwound({"members.type": REPORT})
        assert stages[-4:-2] == [{"$lookup": LATER_OF_MEMBER}, OURS]

    @pytest.mark.parametrize(
        ("criteria", "index", "expected"),
        [
            ([CODE], BY_SEARCH_VALUE, True),
            ([TEXT, CODE], BY_SEARCH_VALUE, True),
            ([TEXT], BY_SEARCH_VALUE, False),
            ([CODE], BY_TIME, False),
            ([CODE], None, False),
        ],
    )
    def test_an_index_over_values_has_versions_by_time_if_one_has_them_by_codes(
        self, criteria: list[Criterion], index: str | None, *, expected: bool
    ) -> None:
        assert alone(wanting(*criteria), index).is_by_time is expected

    @pytest.mark.parametrize(
        ("criteria", "expected"),
        [([], True), ([SINCE], True), ([CODE], True), ([TEXT, CODE], True), ([TEXT], False)],
    )
    def test_an_index_has_members_by_time_unless_it_leads_to_a_range(
        self, criteria: list[Criterion], *, expected: bool
    ) -> None:
        assert members(wanting(*criteria)).is_by_time is expected

    def test_members_of_known_ids_are_not_by_time(self) -> None:
        ids = frozenset({new_member_id()})

        assert not members(wanting(ids=ids)).is_by_time


class TestMembers:
    """What leads to members."""

    def page(self, query: SearchQuery) -> Pipeline:
        """Return what finds a page of members."""
        return members(query).page(ordering_of(query), merged=False)

    def test_carriers_of_the_type_lead_to_members(self) -> None:
        assert self.page(wanting(limit=7)) == [
            found(MEMBERS_BY_TYPE),
            *unwound({"members.type": REPORT}),
            {"$project": {**SHOWN_OF_MEMBERS, "updated": 1}},
            {"$sort": {"updated": -1, "id": 1}},
            {"$project": {"_id": 0, **SHOWN_OF_MEMBERS}},
            {"$lookup": LATER_OF_MEMBER},
            OURS,
            {"$limit": 8},
        ]

    def test_values_lead_to_carriers_where_an_index_has_them(self) -> None:
        status = has("status", token(None, "s"))

        (carriers, *_) = self.page(wanting(status, CODE, TEXT))

        values = [of_member(filter_of(each, LAB, REPORT)) for each in (CODE, TEXT)]
        assert carriers == found(BRINGS_MEMBERS, *values)

    def test_the_time_of_a_carrier_is_that_of_its_members(self) -> None:
        since = of_member(filter_of(SINCE, LAB, REPORT))

        (carriers, *_) = self.page(wanting(SINCE))
        (with_values, *_) = self.page(wanting(SINCE, CODE))

        code = of_member(filter_of(CODE, LAB, REPORT))
        assert carriers == found(MEMBERS_BY_TYPE, since)
        assert with_values == found(BRINGS_MEMBERS, code, since)

    def test_of_known_members_the_newest_versions_are_found_first(self) -> None:
        one, other = sorted([new_member_id(), new_member_id()])
        query = wanting(ids=frozenset({one}), after=(5, other), limit=7)

        ids = {"members.id": one}
        assert self.page(query)[:-4] == [
            found(ids),
            *unwound(ids),
            {"$sort": {"id": 1, "version": -1}},
            {"$group": {"_id": "$id", "newest": {"$first": "$$ROOT"}}},
            {"$replaceWith": "$newest"},
            found(CONDITION, {"updated": {"$lte": 5}}),
            {"$project": {**SHOWN_OF_MEMBERS, "updated": 1}},
        ]

    def test_for_a_newest_version_of_a_member_no_later_one_is_looked_for(self) -> None:
        query = wanting(ids=frozenset({new_member_id()}), limit=7)

        assert self.page(query)[-2:] == [
            {"$project": {"_id": 0, **SHOWN_OF_MEMBERS}},
            {"$limit": 8},
        ]

    def test_every_version_of_known_members_is_found_where_it_is_asked_for(self) -> None:
        id_ = new_member_id()
        query = wanting(CODE, SINCE, ids=frozenset({id_}), every_version=True)

        since = of_member(filter_of(SINCE, LAB, REPORT))
        assert self.page(query)[:5] == [
            found({"members.id": id_}, since),
            *unwound({"members.type": REPORT}),
        ]

    def test_only_ids_of_members_are_looked_up(self) -> None:
        one, other = sorted([new_member_id(), new_member_id()])
        query = wanting(ids=frozenset({new_id(), one, other}))

        ((wanted,),) = [stage["$match"]["$and"] for stage in self.page(query)[:1]]

        assert sorted(wanted["members.id"]["$in"]) == [one, other]
