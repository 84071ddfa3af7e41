"""Problems of the structure and of rules together, whatever the resource holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.errors import MAX_ISSUES, Issue
from fhirpub.interactions.checks.all_problems import all_problems
from fhirpub.plugin_api import Entry
from fhirpub.problems import ContentProblem
from fhirpub.runtime.stages import run_to_completion

AT = "Parameters.parameter[2].resource"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=12,
)


def wrong(place: str, code: str = "exception") -> Issue:
    return Issue("error", code, "is wrong", f"{AT}{place}")


def places(resource: dict[str, Any], structural: list[str], *rules: str) -> list[str]:
    """Return the places of all problems, without that of the resource."""
    found = run_to_completion(
        all_problems(
            [wrong(place) for place in structural],
            [Entry(resource, AT)],
            between_elements=(),
            rules=[[wrong(place)] for place in rules],
            fhirpath=lambda place: place.removesuffix("String"),
        )
    )
    return [issue.expression.removeprefix(AT) for issue in found]


def test_what_rules_find_elsewhere_is_added() -> None:
    assert places({"a": 1}, [".a"], ".b", ".ab", ".c[0]") == [".a", ".b", ".ab", ".c[0]"]


def test_what_may_follow_from_the_structure_is_left_out() -> None:
    assert places({"a": {"b": 1}}, [".a.b"], ".a.b", ".a", "", ".a.b.c", ".a.c") == [
        ".a.b",
        ".a.c",
    ]


def test_an_object_that_is_wrong_in_part_hides_no_rule_about_the_rest() -> None:
    assert places({"a": {"x": 1}}, [".a"], ".a.b") == [".a", ".a.b"]
    assert places({"a": [{"x": 1}]}, [".a[0]"], ".a[0].b") == [".a[0]", ".a[0].b"]
    assert places({"x": 1}, [""], ".a") == ["", ".a"]
    assert places({"x": 1}, [""], "", ".a") == ["", ".a"]


def test_an_object_in_place_of_an_array_is_wrong_as_a_whole() -> None:
    resource = {"a": {"b": 1}, "c": 2}
    shape = Issue.error(ContentProblem.ELEMENT_MALFORMED, "must be an array", f"{AT}.a")

    found = run_to_completion(
        all_problems(
            [shape],
            [Entry(resource, AT)],
            between_elements=(),
            rules=[[wrong(".a[0].b"), wrong(".c")]],
            fhirpath=str,
        )
    )

    assert [issue.expression for issue in found] == [f"{AT}.a", f"{AT}.c"]
    assert resource == {"c": 2}


def test_what_is_wrong_is_removed_before_rules_look_at_it() -> None:
    resource = {"a": [{"b": 1, "_b": {}, "c": 2}], "dString": 3, "e": [4, 5]}

    places(resource, [".a[0].b", ".d", ".e[1]", ".f.g[7].h", ".a[9].b"])

    assert resource == {"a": [{"c": 2}]}


def test_rules_of_422_come_last_and_warnings_are_left_out() -> None:
    rules = [wrong(".b", "business-rule"), wrong(".c"), Issue("warning", "invalid", "x", ".d")]

    found = run_to_completion(
        all_problems(
            [wrong(".a")],
            [Entry({}, AT)],
            between_elements=[wrong(".e")],
            rules=[rules],
            fhirpath=str,
        )
    )

    assert [issue.expression.removeprefix(AT) for issue in found] == [".a", ".e", ".c", ".b"]


def test_a_rule_that_stumbles_hides_no_other() -> None:
    def stumbling() -> Iterator[Issue]:
        yield wrong(".b")
        raise KeyError

    found = run_to_completion(
        all_problems(
            [wrong(".a")],
            [Entry({}, AT)],
            between_elements=(),
            rules=[stumbling(), [wrong(".c")]],
            fhirpath=str,
        )
    )

    assert [issue.expression.removeprefix(AT) for issue in found] == [".a", ".b", ".c"]


def test_a_hundred_problems_of_the_structure_are_enough() -> None:
    many = [f".a[{number}]" for number in range(MAX_ISSUES)]

    assert places({"a": []}, many, ".b") == many


@given(
    resource=st.dictionaries(st.sampled_from("abc"), JSON),
    wrong_places=st.lists(
        st.from_regex(r"(\.[abc](\[[0-3]\])?){1,3}", fullmatch=True), max_size=4
    ),
)
def test_any_place_may_be_wrong_in_any_resource(
    resource: dict[str, Any], wrong_places: list[str]
) -> None:
    assert places(resource, wrong_places)[: len(wrong_places)] == wrong_places


def test_what_is_wrong_beside_a_primitive_is_removed_there() -> None:
    resource = {"a": "x", "_a": {"id": "i", "extension": 5}}

    assert places(resource, [".a.extension"], ".b") == [".a.extension", ".b"]
    assert resource == {"a": "x", "_a": {"id": "i"}}


def test_what_is_wrong_beside_a_primitive_value_is_removed_there() -> None:
    extension = {"url": 5, "valueCode": "x"}
    resource = {"a": ["y"], "_a": [{"extension": [extension]}]}

    places(resource, [".a[0].extension[0].url"])

    assert resource == {"a": ["y"], "_a": [{"extension": [{"valueCode": "x"}]}]}


@pytest.mark.parametrize("index", [2, 3])
def test_a_place_behind_the_last_item_is_that_of_nothing(index: int) -> None:
    resource = {"a": [{"b": 1}, {"b": 2}]}

    assert places(resource, [f".a[{index}].b"], ".c") == [f".a[{index}].b", ".c"]
    assert resource == {"a": [{"b": 1}, {"b": 2}]}


def test_a_resource_that_is_malformed_hides_no_rule_about_its_elements() -> None:
    shape = Issue.error(ContentProblem.ELEMENT_MALFORMED, "must be an object", AT)

    found = run_to_completion(
        all_problems(
            [shape],
            [Entry({"x": 1}, AT)],
            between_elements=(),
            rules=[[wrong(".a")]],
            fhirpath=str,
        )
    )

    assert [issue.expression for issue in found] == [AT, f"{AT}.a"]
