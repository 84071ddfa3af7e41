"""Which plan answers a search: its index, its pages and its total."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.storage.contract import SearchQuery
from fhirpub.storage.criteria import (
    IDENTIFIER,
    LAST_UPDATED,
    Either,
    Order,
    TimeMatch,
    TokenMatch,
)
from fhirpub.storage.mongodb.schema import (
    BY_SEARCH_VALUE,
    BY_SYSTEM,
    BY_TIME,
    BY_VALUE,
    VERSION,
    VERSION_KEY,
    Filter,
    Pipeline,
)
from fhirpub.storage.mongodb.search.filters import alternatives, filter_of
from fhirpub.storage.mongodb.search.order import ordering_of
from fhirpub.storage.mongodb.search.pipeline import count_plan, newest_plan, plan_of
from fhirpub.storage.mongodb.search.sources import Alone, Members
from fhirpub.testing.contracts.store.queries import has, match, query, text, token, wanting
from fhirpub.testing.samples import LAB, REPORT

ID = "0b7e2a54-6d1c-4f0e-9a58-3c41f7d2e9aa"
MEMBER = "34926f96-0f76-8bf8-8d32-a6b9ec2f8936"
EVERYTHING: Filter = {"tenant": LAB, "type": REPORT}
USUAL = {"updated": -1, "id": 1}
CODE, TEXT, OPEN = has("code", token("a")), has("name", text("as")), has("code", token(None, "s"))
SINCE = has("date", TimeMatch(from_=5))
OWNED = has("subject", token("x", "P"), TokenMatch("P", "", ID))


def conditions(plan: Pipeline) -> list[Filter]:
    """Return the conditions that candidates are found by."""
    found: list[Filter] = plan[0]["$match"]["$and"]
    return found


def merged(pipeline: Pipeline) -> list[Pipeline]:
    """Return the pipelines whose results are added to those of the first."""
    return [stage["$unionWith"]["pipeline"] for stage in pipeline if "$unionWith" in stage]


class TestIndex:
    """Which index finds the candidates."""

    @pytest.mark.parametrize(
        ("wanted", "index"),
        [
            (query(), BY_TIME),
            (query(match("s")), BY_SYSTEM),
            (query(match(None, "v")), BY_VALUE),
            (query(match("s"), match(None, "v")), BY_VALUE),
            (query(match(None, "v"), match("s")), BY_VALUE),
            (query(match("s") + match(None, "v")), BY_TIME),
            (query(match()), BY_TIME),
            (query(ids=[ID]), VERSION_KEY),
            (query(ids=[]), VERSION_KEY),
            (query(match(None, "v"), ids=[ID]), VERSION_KEY),
            (wanting(CODE), BY_SEARCH_VALUE),
            (wanting(SINCE), BY_SEARCH_VALUE),
            (wanting(OPEN), BY_TIME),
            (wanting(OPEN, TEXT), BY_SEARCH_VALUE),
            (wanting(CODE, identifiers=(match("s"),)), BY_SEARCH_VALUE),
            (wanting(CODE, identifiers=(match(None, "v"),)), BY_VALUE),
            (wanting(CODE, ids=frozenset({ID})), VERSION_KEY),
            (wanting(Either(((CODE,), (TEXT,)))), BY_SEARCH_VALUE),
            (wanting(Either(((CODE,), (OPEN,)))), BY_TIME),
            (wanting(OWNED), None),
            (wanting(CODE, OWNED), BY_SEARCH_VALUE),
            (wanting(OWNED, identifiers=(match("s"),)), BY_SEARCH_VALUE),
        ],
        ids=str,
    )
    def test_it_is_the_one_with_the_fewest_candidates(
        self, wanted: SearchQuery, index: str | None
    ) -> None:
        assert plan_of(LAB, wanted).index == index

    def test_by_time_it_is_that_of_the_newest_versions(self) -> None:
        plan = plan_of(LAB, wanting(SINCE), by_time=True)

        assert plan.index == BY_TIME
        assert plan.is_exact


class TestConditions:
    """What all candidates must fulfil."""

    def test_they_are_of_the_tenant_and_the_type(self) -> None:
        assert conditions(plan_of(LAB, query()).pipeline) == [EVERYTHING]

    def test_each_group_of_identifiers_must_match(self) -> None:
        plan = plan_of(LAB, query(match("s"), match("t", "v")))

        expected = [EVERYTHING, {"system": "s"}, {"system": "t"}, {"value": "v"}]
        assert conditions(plan.pipeline) == expected

    def test_ids_and_each_criterion_must_match(self) -> None:
        plan = plan_of(LAB, wanting(CODE, OPEN, ids=frozenset({ID})))

        criteria = [filter_of(each, LAB, REPORT) for each in (CODE, OPEN)]
        assert conditions(plan.pipeline) == [EVERYTHING, {"id": ID}, *criteria]

    def test_no_ids_match_nothing(self) -> None:
        plan = plan_of(LAB, query(ids=[]))

        assert conditions(plan.pipeline) == [EVERYTHING, {"id": {"$in": []}}]

    def test_values_of_a_known_resource_are_looked_up_with_all_conditions_for_each(self) -> None:
        plan = plan_of(LAB, wanting(OWNED, OPEN))

        by_status = filter_of(OPEN, LAB, REPORT)
        either = alternatives(OWNED, LAB, REPORT)
        assert conditions(plan.pipeline) == [
            {"$or": [{"$and": [EVERYTHING, one, by_status]} for one in either]}
        ]

    def test_only_the_first_criterion_of_known_resources_leads_to_candidates(self) -> None:
        other = replace(OWNED, name="performer")

        (found,) = conditions(plan_of(LAB, wanting(OWNED, other)).pipeline)

        condition = filter_of(other, LAB, REPORT)
        assert [each["$and"][-1] for each in found["$or"]] == [condition] * 2


class TestPlan:
    """A page and its total in one pipeline."""

    def test_the_total_follows_the_page(self) -> None:
        wanted = query(limit=7)
        source = Alone(LAB, wanted, [EVERYTHING], index=BY_TIME)

        plan = plan_of(LAB, wanted)

        total = {"coll": VERSION, "pipeline": source.total(by_first=True)}
        page = source.page(ordering_of(wanted), merged=False)
        assert plan.pipeline == [*page, {"$unionWith": total}]
        assert plan.is_exact

    def test_a_total_that_is_not_asked_for_is_not_counted(self) -> None:
        assert merged(plan_of(LAB, replace(query(), count_up_to=0)).pipeline) == []

    def test_a_total_up_to_one_is_counted(self) -> None:
        (total,) = merged(plan_of(LAB, replace(query(), count_up_to=1)).pipeline)

        assert total[1:] == [{"$limit": 2}, {"$count": "total"}]

    def test_the_total_alone_is_counted_where_no_entry_is_asked_for(self) -> None:
        wanted = wanting(CODE, limit=0)
        by_code = [EVERYTHING, filter_of(CODE, LAB, REPORT)]

        plan = plan_of(LAB, wanted)

        counting = Alone(LAB, wanted, by_code, index=BY_SEARCH_VALUE).total(by_first=True)
        assert plan.pipeline == counting
        assert plan.index == BY_SEARCH_VALUE
        assert plan.is_exact

    def test_newest_versions_are_counted_where_some_were_registered_again(self) -> None:
        (total,) = merged(plan_of(LAB, query(), has_reuse=True).pipeline)

        source = Alone(LAB, query(), [EVERYTHING], index=BY_TIME)
        assert total == source.total(by_first=False)

    def test_what_an_index_has_newest_first_is_read_in_its_order(self) -> None:
        wanted = wanting(CODE, count_up_to=0)
        by_code = [EVERYTHING, filter_of(CODE, LAB, REPORT)]

        plan = plan_of(LAB, wanted)

        source = Alone(LAB, wanted, by_code, index=BY_SEARCH_VALUE)
        assert plan.pipeline == source.newest_first(ordering_of(wanted))
        assert not plan.is_exact

    def test_since_the_moment_of_the_last_entry_all_are_put_in_order(self) -> None:
        wanted = wanting(CODE, count_up_to=0, after=(9, ID))

        plan = plan_of(LAB, wanted, since=5)

        found = conditions(plan.pipeline)
        assert found[2:] == [{"updated": {"$lte": 9}}, {"updated": {"$gte": 5}}]
        assert {"$sort": USUAL} in plan.pipeline
        assert plan.is_exact

    def test_since_the_first_moment_of_all_is_exact(self) -> None:
        plan = plan_of(LAB, wanting(CODE, count_up_to=0), since=0)

        assert conditions(plan.pipeline)[2:] == [{"updated": {"$gte": 0}}]
        assert plan.is_exact

    def test_in_another_order_nothing_is_read_in_that_of_an_index(self) -> None:
        assert plan_of(LAB, wanting(CODE, order=(Order("code"),))).is_exact


class TestMembers:
    """Members of versions are found beside versions."""

    def test_the_page_is_put_together_and_the_total_is_the_sum(self) -> None:
        wanted = wanting(has_members=True, limit=7)
        alone = Alone(LAB, wanted, [EVERYTHING], index=BY_TIME)
        members = Members(LAB, wanted, [EVERYTHING])
        ordering = ordering_of(wanted)

        plan = plan_of(LAB, wanted)

        of_members = {"coll": VERSION, "pipeline": members.newest_first(ordering)}
        total = [
            *alone.total(by_first=True),
            {"$unionWith": {"coll": VERSION, "pipeline": members.total(by_first=True)}},
            {"$group": {"_id": None, "total": {"$sum": "$total"}}},
        ]
        assert plan.pipeline == [
            *alone.page(ordering, merged=True),
            {"$unionWith": of_members},
            {"$sort": USUAL},
            {"$limit": 8},
            {"$unionWith": {"coll": VERSION, "pipeline": total}},
        ]
        assert not plan.is_exact

    def test_in_another_order_they_are_put_in_it(self) -> None:
        wanted = wanting(has_members=True, order=(Order("code"),), count_up_to=0)
        ordering = ordering_of(wanted)

        plan = plan_of(LAB, wanted)

        expected = Members(LAB, wanted, [EVERYTHING]).page(ordering, merged=True)
        assert merged(plan.pipeline) == [expected]
        assert plan.pipeline[-2:] == [{"$sort": ordering.sorting}, {"$limit": 21}]
        assert plan.is_exact

    @pytest.mark.parametrize(
        ("ids", "pipelines"),
        [(None, 1), ({MEMBER}, 1), ({ID, MEMBER}, 1), ({ID}, 0), (set(), 0)],
        ids=["any", "of a member", "of both", "of a version", "none"],
    )
    def test_they_are_looked_for_if_an_id_can_be_theirs(
        self, ids: set[str] | None, pipelines: int
    ) -> None:
        among = None if ids is None else frozenset(ids)
        wanted = wanting(has_members=True, ids=among, count_up_to=0)

        assert len(merged(plan_of(LAB, wanted).pipeline)) == pipelines

    def test_they_are_not_looked_for_if_the_type_has_none(self) -> None:
        assert merged(plan_of(LAB, wanting(count_up_to=0)).pipeline) == []


class TestNewestPlan:
    """Looks at the newest candidates alone."""

    def test_a_range_of_times_is_looked_for_among_the_newest_of_all(self) -> None:
        wanted = wanting(SINCE, limit=7)

        plan = newest_plan(LAB, wanted, most=9)

        assert plan is not None
        matching: Pipeline = [
            {"$limit": 9},
            {"$match": {"$and": [filter_of(SINCE, LAB, REPORT)]}},
        ]
        source = Alone(LAB, wanted, [EVERYTHING], index=BY_TIME)
        ordering = ordering_of(wanted)
        assert plan.pipeline == source.newest_first(ordering, matching=matching)
        assert plan.index == BY_TIME
        assert not plan.is_exact

    def test_it_is_looked_for_among_the_newest_with_a_code(self) -> None:
        wanted = wanting(SINCE, TEXT, CODE, has("status", token("final")))

        plan = newest_plan(LAB, wanted, most=9)

        assert plan is not None
        all_of_it = [filter_of(each, LAB, REPORT) for each in wanted.criteria]
        assert conditions(plan.pipeline) == [EVERYTHING, all_of_it[2]]
        assert plan.pipeline[2:4] == [{"$limit": 9}, {"$match": {"$and": all_of_it}}]
        assert plan.index == BY_SEARCH_VALUE

    def test_a_later_page_is_behind_the_one_before(self) -> None:
        plan = newest_plan(LAB, wanting(SINCE, after=(7, ID)), most=9)

        assert plan is not None
        assert conditions(plan.pipeline)[1:] == [{"updated": {"$lte": 7}}]

    @pytest.mark.parametrize(
        "wanted",
        [
            wanting(),
            wanting(CODE),
            wanting(has("date", TimeMatch(before=5))),
            wanting(has(LAST_UPDATED, TimeMatch(from_=5))),
            wanting(SINCE, limit=0),
            wanting(SINCE, order=(Order("date"),)),
            wanting(SINCE, identifiers=(match("s"),)),
            wanting(SINCE, ids=frozenset({ID})),
            wanting(SINCE, ids=frozenset()),
            wanting(SINCE, has_members=True),
        ],
        ids=str,
    )
    def test_nothing_else_is_looked_for_so(self, wanted: SearchQuery) -> None:
        assert newest_plan(LAB, wanted, most=9) is None


class TestCountPlan:
    """Counts how many match, before it is decided how to find them."""

    def test_matches_are_counted_up_to_a_number(self) -> None:
        plan = count_plan(LAB, wanting(SINCE), most=9)

        assert plan is not None
        assert plan.pipeline == [
            {"$match": {"$and": [EVERYTHING, filter_of(SINCE, LAB, REPORT)]}},
            {"$limit": 9},
            {"$count": "total"},
        ]
        assert plan.index == BY_SEARCH_VALUE
        assert plan.is_exact

    @pytest.mark.parametrize(
        "wanted",
        [
            wanting(),
            wanting(CODE),
            wanting(SINCE, CODE),
            wanting(SINCE, SINCE),
            wanting(has("date", TimeMatch(from_=5, until=9))),
            wanting(has(LAST_UPDATED, TimeMatch(from_=5))),
            wanting(has(IDENTIFIER, token("v"))),
            wanting(SINCE, limit=0),
            wanting(SINCE, order=(Order("date"),)),
            wanting(SINCE, ids=frozenset({ID})),
            wanting(SINCE, identifiers=(match(None, "v"),)),
        ],
        ids=str,
    )
    def test_nothing_is_counted_where_that_decides_nothing(self, wanted: SearchQuery) -> None:
        assert count_plan(LAB, wanted, most=9) is None
