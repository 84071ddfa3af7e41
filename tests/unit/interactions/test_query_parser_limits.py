"""How many conditions a search has at most, and what is one."""

from __future__ import annotations

import pytest

from fhirpub.errors import SearchTooCostly
from fhirpub.storage.criteria import Criterion
from tests.unit.interactions.reading import problems, read


def conditions(name: str, count: int) -> None:
    read(*[(name, "a")] * count)


def test_fifty_conditions_are_read_and_one_more_is_not() -> None:
    conditions("code", 50)

    with pytest.raises(SearchTooCostly) as refused:
        conditions("code", 51)

    assert refused.value.issues[0].expression == "code"


def test_tokens_of_one_system_are_one_condition() -> None:
    same = ",".join(f"urn:s|{number}" for number in range(60))
    read(("code", same), *[("category", "a")] * 49)

    with pytest.raises(SearchTooCostly):
        read(("code", same), *[("category", "a")] * 50)


def test_each_system_of_a_list_is_a_condition() -> None:
    different = [f"urn:s{number}|a" for number in range(51)]
    read(("code", ",".join(different[:50])))

    with pytest.raises(SearchTooCostly):
        read(("code", ",".join(different)))


def test_a_token_without_a_system_is_one_of_another() -> None:
    read(("code", "a,b,urn:s|c"), *[("category", "a")] * 48)

    with pytest.raises(SearchTooCostly):
        read(("code", "a,b,urn:s|c"), *[("category", "a")] * 49)


def test_the_systems_of_identifiers_are_conditions() -> None:
    different = [f"urn:s{number}|" for number in range(51)]
    read(("identifier", ",".join(different[:50])))

    with pytest.raises(SearchTooCostly) as refused:
        read(("identifier", ",".join(different)))

    assert refused.value.issues[0].expression == "identifier"


def test_identifiers_that_lead_to_an_id_are_no_conditions() -> None:
    read(*[("identifier", "urn:s|1")] * 60)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("date", "2026"),
        ("value-string", "a"),
        ("value-string:contains", "a"),
        ("rules", "http://x.example"),
        ("code-value", "a$5"),
    ],
)
def test_each_value_that_is_looked_up_alone_is_a_condition(name: str, value: str) -> None:
    read((name, ",".join([value] * 49)))

    with pytest.raises(SearchTooCostly):
        read((name, ",".join([value] * 49)), *[("code", "a")] * 2)


def test_each_text_that_is_compared_as_it_is_written_is_a_condition() -> None:
    texts = ",".join(["a"] * 40)
    read(("value-string:exact", texts))

    with pytest.raises(SearchTooCostly):
        read(("value-string:exact", texts), *[("code", "a")] * 11)


def test_a_token_over_two_elements_is_two_conditions() -> None:
    read(*[("combo", "a")] * 25)

    with pytest.raises(SearchTooCostly):
        read(*[("combo", "a")] * 25, ("code", "a"))


def test_the_longest_parameter_is_that_with_the_most_values() -> None:
    assert read(("code", "a,b"), ("category", "c")).longest == "code"
    assert read(("code", "a")).longest == ""


def test_the_values_of_a_negated_token_over_two_elements_count_once() -> None:
    values = ",".join(f"urn:s|{number}" for number in range(600))

    reading = read(("combo:not", values))

    demanded = [one for one in reading.criteria if isinstance(one, Criterion)]
    assert [(one.name, one.negated) for one in demanded] == [("code", True), ("category", True)]
    assert problems(read(("combo:not", "|"))) == [
        ("combo", "must be value, system|value, system| or |value")
    ]
