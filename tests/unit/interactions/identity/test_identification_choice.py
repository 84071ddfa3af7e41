"""Which identifier is the key, at the limits of their number, and what of it is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fhirpub.interactions.identity.identification import (
    MAX_IDENTIFIER_LENGTH,
    Form,
    Identification,
    identification_of,
    made_key,
    type_codings,
)
from fhirpub.plugin_api import IdentifierRule, ResourceType, ValueForm
from fhirpub.plugin_api.identifier import EXACTLY_ONE
from fhirpub.storage.criteria import TokenMatch

ONE, TWO = ({"system": "urn:s", "value": value} for value in "12")
UPPER = ValueForm(system="urn:s", case="upper")
TRIM = ValueForm(blanks="trim")


def several(most: int = 5, **fields: Any) -> Identification:
    return Identification(IdentifierRule(most=most, **fields))


def key(rule: Identification, *sent: Any) -> str | None:
    found = rule.key_in({"identifier": [*sent]})
    return found and found[1]


def typed(value: str, *codes: Any) -> dict[str, Any]:
    return {**ONE, "value": value, "type": {"coding": list(codes)}}


def test_as_many_identifiers_as_there_may_be_are_looked_at() -> None:
    rule = several(2, uses=("official",))
    official = {**TWO, "use": "official"}

    assert key(rule, ONE, official) == "2"
    assert key(rule, ONE, ONE, official) is None


def test_those_of_all_elements_count_together() -> None:
    rule = several(2, elements=("identifier", "accession"), uses=("official",))
    official = {**TWO, "use": "official"}

    assert rule.key_in({"identifier": [ONE], "accession": official}) == ("urn:s", "2")
    assert rule.key_in({"identifier": [ONE, ONE], "accession": official}) is None


def test_one_more_than_there_may_be_is_returned_to_be_refused() -> None:
    assert len(several(2).identifiers_in({"identifier": [ONE] * 9})) == 3


def test_a_candidate_knows_where_it_stands() -> None:
    rule = several(elements=("accession", "container.identifier"), uses=("", "old"))
    old = {**TWO, "use": "old"}

    found = rule.candidates_in({"accession": ONE, "container": [{}, {"identifier": [old]}]})

    assert [(one.at, one.key, one.rank) for one in found] == [
        ("accession", ("urn:s", "1"), (0, 0)),
        ("container[1].identifier[0]", ("urn:s", "2"), (1, 1)),
    ]


def test_an_earlier_element_counts_more_than_a_better_use() -> None:
    rule = several(elements=("accession", "identifier"), uses=("official", "old"))
    first, second = {**ONE, "use": "old"}, {**TWO, "use": "official"}

    assert rule.key_in({"accession": first, "identifier": [second]}) == ("urn:s", "1")


def test_the_use_counts_more_than_the_type_and_that_more_than_the_system() -> None:
    rule = several(uses=("a", "b"), types=("x", "y"), systems=("urn:s", "urn:t"))
    first = {**typed("1", {"code": "y"}), "use": "a", "system": "urn:t"}
    second = {**typed("2", {"code": "x"}), "use": "b", "system": "urn:s"}
    third = {**typed("3", {"code": "y"}), "use": "a", "system": "urn:s"}

    assert key(rule, second, first) == "1"
    assert key(rule, second, first, third) == "3"


@pytest.mark.parametrize(
    "item",
    [
        None,
        "x",
        {},
        {"system": "urn:s"},
        {"value": "1"},
        {**ONE, "system": 7},
        {**ONE, "value": 7},
    ],
)
def test_what_has_no_system_and_value_can_be_no_key(item: Any) -> None:
    assert several().candidates_in({"identifier": [item]}) == []


def test_an_empty_value_is_left_to_be_refused() -> None:
    assert several().key_in({"identifier": [{**ONE, "value": ""}]}) == ("urn:s", "")


def test_the_same_identifier_twice_is_one() -> None:
    rule = several()

    assert len(rule.best_of(rule.candidates_in({"identifier": [ONE, TWO, ONE]}))) == 2
    assert key(rule, ONE, ONE) == "1"


def test_the_first_of_equal_ones_is_the_one_that_is_named() -> None:
    rule = several(forms=(UPPER,))
    resource = {"identifier": [{**ONE, "value": "A"}, {**ONE, "value": "a"}]}

    chosen = rule.chosen_in(resource)

    assert chosen is not None
    assert chosen.at == "identifier[0]"


def test_without_candidates_nothing_is_chosen() -> None:
    assert several().best_of([]) == []
    assert several().chosen_in({}) is None


@pytest.mark.parametrize(
    ("codes", "found"),
    [
        (({"code": "ACSN"},), "1"),
        (({"code": "PLAC"}, {"code": "ACSN"}), "1"),
        (({"code": "ACSN"}, {"code": "PLAC"}), "1"),
        (({"system": "urn:t", "code": "FILL"},), "1"),
        (({"code": "FILL"},), None),
        (({"system": "urn:u", "code": "FILL"},), None),
        (({"code": 7},), None),
        (("ACSN",), None),
        ((*[{"code": "-"}] * 19, {"code": "ACSN"}), "1"),
        ((*[{"code": "-"}] * 20, {"code": "ACSN"}), None),
    ],
)
def test_a_type_is_a_code_alone_or_with_its_system(codes: Any, found: str | None) -> None:
    rule = several(types=("ACSN", "urn:t|FILL"))

    assert key(rule, typed("1", *codes)) == found


def test_a_code_without_a_system_is_one_with_an_empty_system() -> None:
    assert key(several(types=("|ACSN",)), typed("1", {"code": "ACSN"})) == "1"


@pytest.mark.parametrize("kind", [None, "x", {}, {"coding": {}}, {"coding": "x"}])
def test_a_type_of_another_structure_is_none(kind: Any) -> None:
    assert type_codings({"type": kind}) in ((), [])
    assert key(several(types=("",)), {**ONE, "type": kind}) == "1"


def test_the_best_of_several_types_counts() -> None:
    rule = several(types=("A", "B"))

    assert key(rule, typed("1", {"code": "B"}), typed("2", {"code": "B"}, {"code": "A"})) == "2"


def test_a_use_that_is_not_named_is_no_key() -> None:
    assert key(several(uses=("official",)), ONE, {**TWO, "use": "old"}) is None


@pytest.mark.parametrize("value", [7, None, ["1"]])
def test_what_is_no_text_has_no_form(value: Any) -> None:
    assert several(forms=(UPPER,)).normal("urn:s", value) == value


def test_a_value_without_a_system_has_the_form_of_those_that_have_none() -> None:
    rule = several(forms=(UPPER, TRIM))

    assert rule.normal("urn:s", " a ") == " A "
    assert rule.normal("urn:other", " a ") == "a"
    assert rule.normal(None, " a ") == "a"
    assert rule.normal(7, " a ") == "a"


def test_without_forms_a_value_stays_as_it_is() -> None:
    assert several().normal("urn:s", " a ") == " a "


@pytest.mark.parametrize(("length", "is_folded"), [(2_048, True), (2_049, False)])
def test_values_of_2048_characters_are_folded(length: int, *, is_folded: bool) -> None:
    rule = several(forms=(UPPER,))
    value, folded = "a" * length, ("A" if is_folded else "a") * length

    assert MAX_IDENTIFIER_LENGTH == 2_048
    assert rule.normal("urn:s", value) == folded
    assert (TokenMatch("urn:s", folded) in rule.matches_of([TokenMatch(None, value)])) is is_folded
    assert (folded in rule.spellings_of(value)) is True
    assert len(rule.spellings_of(value)) == (2 if is_folded else 1)


def test_a_search_by_system_alone_stays_as_it_is() -> None:
    found = several(forms=(UPPER,)).matches_of([TokenMatch("urn:s", None), TokenMatch(None, None)])

    assert found == [TokenMatch("urn:s", None), TokenMatch(None, None)]


def test_a_search_with_a_system_looks_for_one_form() -> None:
    rule = several(forms=(UPPER, ValueForm(system="urn:t", case="lower")))

    assert rule.matches_of([TokenMatch("urn:s", "a")]) == [TokenMatch("urn:s", "A")]
    assert rule.matches_of([TokenMatch("", "Ab")]) == [TokenMatch("", "Ab")]


def test_without_forms_a_search_stays_as_it_is() -> None:
    twice = [TokenMatch("urn:s", "a"), TokenMatch("urn:s", "a")]

    assert several().matches_of(twice) == twice
    assert several().spellings_of("a") == ["a"]


def test_what_a_search_would_look_for_twice_is_looked_for_once() -> None:
    rule = several(forms=(UPPER,))

    assert rule.matches_of([TokenMatch("urn:s", "a"), TokenMatch("urn:s", "A")]) == [
        TokenMatch("urn:s", "A")
    ]
    assert rule.spellings_of("A") == ["A"]


@pytest.mark.parametrize(
    ("form", "value", "is_right"),
    [
        (ValueForm(pattern="[0-9]{2}"), "12", True),
        (ValueForm(pattern="[0-9]{2}"), "123", False),
        (ValueForm(pattern="[0-9]*"), "", False),
        (ValueForm(check=lambda value: value == "7"), "7", True),
        (ValueForm(check=lambda value: value == "7"), "8", False),
        (ValueForm(pattern="[0-9]", check=lambda value: value == "7"), "x", False),
    ],
)
def test_a_value_is_right_by_its_pattern_and_its_check(
    form: ValueForm, value: str, *, is_right: bool
) -> None:
    assert Form(form).accepts(value) is is_right


@pytest.mark.parametrize(
    ("form", "value", "normal"),
    [
        (ValueForm(prefix="x"), "xxa", "a"),
        (ValueForm(prefix="x", blanks="trim"), "x x a ", "a"),
        (ValueForm(prefix="x", blanks="keep"), "x xa", " xa"),
        (ValueForm(blanks="remove"), " a\tb\n", "ab"),
        (ValueForm(blanks="trim"), " a b ", "a b"),
        (ValueForm(remove="-/"), "a-b/c", "abc"),
        (ValueForm(prefix="AB", case="upper"), "abc", "C"),
        (ValueForm(prefix="-", remove="."), ".-a", "a"),
    ],
)
def test_a_form_takes_away_all_that_does_not_count(
    form: ValueForm, value: str, normal: str
) -> None:
    assert Form(form).normal(value) == normal


@pytest.mark.parametrize(
    ("rule", "is_single"),
    [
        (IdentifierRule(), True),
        (IdentifierRule(systems=("urn:s",)), True),
        (IdentifierRule(most=2), False),
        (IdentifierRule(elements=("accession",)), False),
        (IdentifierRule(elements=(), key=lambda _resource: None), True),
    ],
)
def test_a_resource_with_one_identifier_is_found_by_its_key(
    rule: IdentifierRule, *, is_single: bool
) -> None:
    assert Identification(rule).is_single is is_single
    assert Identification(rule).is_plain is (rule == EXACTLY_ONE)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (IdentifierRule(systems=("urn:a",)), {"systems": ["urn:a"]}),
        (IdentifierRule(elements=("accession",)), {"elements": ["accession"]}),
        (IdentifierRule(uses=("",), types=("A",)), {"uses": [""], "types": ["A"]}),
        (IdentifierRule(forms=(UPPER,)), {"forms": {"urn:s": {"case": "upper"}}}),
        (
            IdentifierRule(forms=(ValueForm(prefix="x", remove="-", blanks="trim"),)),
            {"forms": {"": {"blanks": "trim", "prefix": "x", "remove": "-"}}},
        ),
        (
            IdentifierRule(elements=(), key=lambda _resource: None, key_version=3),
            {"elements": [], "key_version": 3},
        ),
    ],
)
def test_what_decides_the_key_is_recorded_as_json(
    rule: IdentifierRule, said: dict[str, Any]
) -> None:
    assert json.loads(Identification(rule).described) == said


def test_a_version_of_keys_counts_only_where_a_function_makes_them() -> None:
    assert Identification(IdentifierRule(key_version=3)).described == ""


@pytest.mark.parametrize("made", [("urn:s", None), (None, "1"), ("urn:s", b"1"), (b"urn:s", "1")])
def test_a_function_that_returns_no_texts_is_a_fault(made: Any) -> None:
    with pytest.raises(TypeError) as raised:
        made_key(lambda _resource: made, {})

    assert str(raised.value) == "the function key must return the system and the value, or None"


def test_a_rule_is_made_ready_once() -> None:
    rule = IdentifierRule(most=2)
    declared = [
        ResourceType(
            name=name,
            parts=(),
            create_statuses=frozenset({"active"}),
            update_statuses=frozenset({"active"}),
            identifier=rule,
        )
        for name in ("Flag", "List")
    ]

    assert identification_of(declared[0]) is identification_of(declared[1])
    assert identification_of(declared[0]).rule is rule
