"""How many values a search may have, and of which kinds there may be fewer."""

from __future__ import annotations

import pytest

from fhirpub.errors import SearchTooCostly
from fhirpub.interactions.search.sought import Sought
from fhirpub.interactions.value_parser import MAX_CONDITIONS, too_many_conditions
from fhirpub.problems import OperationProblem
from fhirpub.storage.criteria import TokenMatch
from tests.unit.interactions.reading import Parsing


@pytest.fixture
def it() -> Parsing:
    return Parsing()


def commas(count: int, value: str = "1") -> str:
    return ",".join([value] * count)


def too_costly(name: str, value: str, *, most: int) -> tuple[str, str]:
    with pytest.raises(SearchTooCostly) as refused:
        Parsing(most).values.tokens(name, value)
    (issue,) = refused.value.issues
    assert issue.details == OperationProblem.SEARCH_TOO_COSTLY
    return issue.expression, issue.diagnostics


def test_one_value_more_than_the_limit_is_refused_with_the_limit() -> None:
    Parsing(3).values.tokens("code", commas(3))

    assert too_costly("code", commas(4), most=3) == (
        "code",
        "a search has at most 3 values over all of its parameters: send fewer",
    )


def test_a_text_with_many_commas_is_refused_before_it_is_split() -> None:
    assert too_costly("code", "," * 5, most=3)[0] == "code"


def test_commas_that_are_escaped_separate_no_values() -> None:
    assert Parsing(1).values.tokens("code", "a\\,b\\,c\\,d") == [TokenMatch(None, "a,b,c,d")]


def test_the_values_of_all_parameters_count_together() -> None:
    it = Parsing(3)
    it.values.tokens("code", "a,b")
    it.values.tokens("category", "c")

    with pytest.raises(SearchTooCostly) as refused:
        it.values.tokens("status", "d")

    assert refused.value.issues[0].expression == "status"


def test_each_date_is_a_value() -> None:
    it = Parsing(3)
    it.sought("date", "2026,2027")

    with pytest.raises(SearchTooCostly):
        it.sought("date", "2026,2027")


@pytest.mark.parametrize("name", ["date", "value-count", "value-string", "rules"])
def test_fifty_values_of_a_kind_that_is_looked_up_one_by_one_are_read(name: str) -> None:
    value = "2026" if name == "date" else "1"
    found = Parsing().sought(name, commas(MAX_CONDITIONS, value))
    assert found is not None
    assert len(found) == MAX_CONDITIONS

    with pytest.raises(SearchTooCostly) as refused:
        Parsing().sought(name, commas(MAX_CONDITIONS + 1, value))

    assert refused.value.issues[0].expression == name


def test_tokens_are_looked_up_together_and_may_be_more(it: Parsing) -> None:
    found = it.sought("combo", commas(MAX_CONDITIONS + 1))

    assert found == [Sought((TokenMatch(None, "1"),))] * (MAX_CONDITIONS + 1)


def test_fifty_pairs_are_read_and_one_more_is_not(it: Parsing) -> None:
    found = it.pairs(commas(MAX_CONDITIONS, "a$5"))
    assert found is not None
    assert len(found) == MAX_CONDITIONS

    with pytest.raises(SearchTooCostly) as refused:
        it.pairs(commas(MAX_CONDITIONS + 1, "a$5"))

    assert refused.value.issues[0].expression == "code-value"


def test_fifty_uris_are_read_and_one_more_is_not(it: Parsing) -> None:
    found = it.values.uris("rules", commas(MAX_CONDITIONS, "http://x.example"), "above")
    assert len(found) == MAX_CONDITIONS

    with pytest.raises(SearchTooCostly) as refused:
        it.values.uris("rules", commas(MAX_CONDITIONS + 1, "http://x.example"), "above")

    assert refused.value.issues[0].expression == "rules"


def test_the_refusal_of_too_many_conditions_names_what_is_one() -> None:
    (issue,) = too_many_conditions("date").issues

    assert issue.diagnostics == (
        "a search has at most 50 conditions, and each date, number, text, URI and pair, and each "
        "system of a list is one: send fewer"
    )
    assert (issue.expression, issue.details, issue.code) == (
        "date",
        OperationProblem.SEARCH_TOO_COSTLY,
        "too-costly",
    )


def test_the_parameter_with_the_most_values_is_the_longest(it: Parsing) -> None:
    it.values.tokens("code", "a,b")
    it.values.tokens("category", "c,d,e")
    it.values.tokens("code", "c")

    assert it.values.longest in {"code", "category"}
    it.values.tokens("code", "d")
    assert it.values.longest == "code"


def test_without_a_list_there_is_no_longest_parameter(it: Parsing) -> None:
    assert it.values.longest == ""
    it.values.tokens("code", "a")
    it.values.tokens("category", "b")
    assert it.values.longest == ""
