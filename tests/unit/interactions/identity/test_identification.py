"""The key of a resource follows from the rule of its type, whatever the resource holds."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.interactions.identity.identification import (
    Form,
    Identification,
    identification_of,
    made_key,
)
from fhirpub.plugin_api import IdentifierRule, ResourceType, ValueForm
from fhirpub.plugin_api.identifier import EXACTLY_ONE
from fhirpub.storage.criteria import TokenMatch

ONE = {"system": "urn:s", "value": "1"}
UID = ValueForm(system="urn:dicom:uid", prefix="urn:oid:", blanks="trim")
LABEL = ValueForm(blanks="remove", remove="-", case="upper")


def several(**fields: Any) -> Identification:
    return Identification(IdentifierRule(most=5, **fields))


@pytest.mark.parametrize("identifier", [[ONE], ONE])
def test_the_only_identifier_is_the_key(identifier: Any) -> None:
    assert Identification(EXACTLY_ONE).key_in({"identifier": identifier}) == ("urn:s", "1")


@pytest.mark.parametrize(
    "identifier",
    [None, [], [ONE, ONE], [None], [[ONE]], "x", [{"system": "urn:s"}], [{**ONE, "value": 1}]],
)
def test_what_is_not_exactly_one_identifier_is_no_key(identifier: Any) -> None:
    assert Identification(EXACTLY_ONE).key_in({"identifier": identifier}) is None


def test_a_declaration_without_a_rule_has_that_of_reports() -> None:
    declared = ResourceType(
        name="Flag",
        parts=(),
        create_statuses=frozenset({"active"}),
        update_statuses=frozenset({"active"}),
    )

    assert identification_of(declared).is_plain
    assert identification_of(replace(declared, identifier=IdentifierRule())).is_plain
    assert identification_of(declared).described == ""


def test_the_first_element_that_has_one_holds_the_key() -> None:
    rule = several(elements=("accession", "container.identifier"))
    tube = {"system": "urn:t", "value": "9"}

    assert rule.key_in({"accession": ONE, "container": [{"identifier": [tube]}]}) == ("urn:s", "1")
    assert rule.key_in({"container": [{}, {"identifier": [tube]}]}) == ("urn:t", "9")


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"uses": ("official", "")}, "official"),
        ({"uses": ("", "official")}, "plain"),
        ({"types": ("ACSN",)}, "typed"),
        ({"types": ("urn:types|ACSN",)}, "typed"),
        ({"types": ("urn:other|ACSN", ""), "uses": ("",)}, "plain"),
        ({"systems": ("urn:b", "urn:a")}, "other"),
        ({"uses": ("secondary",), "systems": ("urn:a",)}, None),
    ],
)
def test_use_type_and_system_decide_which_is_the_key(
    fields: dict[str, Any], value: str | None
) -> None:
    typed = {"coding": [{"system": "urn:types", "code": "ACSN"}]}
    resource = {
        "identifier": [
            {"system": "urn:a", "value": "plain"},
            {"system": "urn:a", "value": "official", "use": "official"},
            {"system": "urn:a", "value": "typed", "type": typed, "use": "usual"},
            {"system": "urn:b", "value": "other", "use": "old"},
        ]
    }

    found = several(**fields).key_in(resource)

    assert (found and found[1]) == value


def test_two_that_are_equally_good_are_no_choice_unless_they_are_the_same() -> None:
    rule = several(forms=(LABEL,))

    assert rule.key_in({"identifier": [ONE, {**ONE, "value": "2"}]}) is None
    assert rule.key_in({"identifier": [{**ONE, "value": "a-1"}, {**ONE, "value": "A 1"}]}) == (
        "urn:s",
        "A1",
    )


def test_the_key_may_stand_behind_thousands_of_objects_without_one() -> None:
    rule = several(elements=("container.identifier",))

    assert rule.key_in({"container": [*[{}] * 20_000, {"identifier": [ONE]}]}) == ("urn:s", "1")
    assert rule.identifiers_in({"container": [{}, {"identifier": ONE}]}) == [
        ("container[1].identifier", ONE)
    ]


def test_more_than_there_may_be_are_not_looked_at() -> None:
    class Counted(list[Any]):
        seen = 0

        def __iter__(self) -> Any:
            for one in super().__iter__():
                Counted.seen += 1
                yield one

    many = Counted([ONE] * 100_000)
    rule = several(elements=("a.identifier",))

    assert rule.key_in({"a": {"identifier": many}}) is None
    assert len(rule.identifiers_in({"a": {"identifier": [ONE] * 100_000}})) == 6


@pytest.mark.parametrize(
    ("form", "value", "normal"),
    [
        (UID, " urn:oid:1.2 ", "1.2"),
        (UID, "1.2", "1.2"),
        (LABEL, " nq-4 17\t", "NQ417"),
        (ValueForm(case="lower"), "AbC", "abc"),
        (ValueForm(), " A b ", " A b "),
    ],
)
def test_a_value_is_compared_in_its_normal_form(form: ValueForm, value: str, normal: str) -> None:
    assert Form(form).normal(value) == normal


@given(st.text(), st.sampled_from(["keep", "trim", "remove"]), st.sampled_from(["upper", "lower"]))
def test_the_normal_form_of_a_normal_form_is_itself(value: str, blanks: Any, case: Any) -> None:
    form = Form(ValueForm(blanks=blanks, case=case, remove="-.", prefix="0"))
    normal = form.normal(value)

    assert form.normal(normal) == normal


def test_every_character_keeps_its_case_once_it_is_folded() -> None:
    letters = [chr(number) for number in range(sys.maxunicode + 1)]

    for case in ("upper", "lower"):
        form = Form(ValueForm(case=case))
        changed = [folded for one in letters if (folded := form.normal(one)) != one]
        assert [form.normal(one) for one in changed] == changed


def test_a_very_long_value_is_not_looked_at() -> None:
    rule = several(forms=(UID,))
    item = {"system": "urn:dicom:uid", "value": "urn:oid:" * 1_000_000}

    assert rule.normal(item["system"], item["value"]) is item["value"]
    assert rule.matches_of([TokenMatch(None, item["value"])]) == [TokenMatch(None, item["value"])]
    assert rule.spellings_of(item["value"]) == [item["value"]]


def test_what_has_no_characters_left_is_no_key() -> None:
    assert several(forms=(LABEL,)).key_in({"identifier": [{**ONE, "value": " - "}]}) is None


def test_a_search_without_a_system_looks_for_each_form() -> None:
    rule = several(forms=(UID, LABEL))

    found = rule.matches_of([TokenMatch(None, "urn:oid:1.2-a")])

    assert found == [TokenMatch(None, "URN:OID:1.2A"), TokenMatch("urn:dicom:uid", "1.2-a")]
    assert rule.matches_of([TokenMatch("urn:dicom:uid", "urn:oid:1.2")]) == [
        TokenMatch("urn:dicom:uid", "1.2")
    ]
    assert rule.spellings_of("a-1") == ["A1", "a-1"]


def test_a_function_makes_the_key_and_what_it_stumbles_over_has_none() -> None:
    def key(resource: Any) -> tuple[str, str]:
        return "urn:ietf:rfc:3986", resource["url"]["x"]

    rule = Identification(IdentifierRule(elements=(), key=key))

    assert rule.key_in({"url": {"x": "https://a"}}) == ("urn:ietf:rfc:3986", "https://a")
    assert rule.key_in({"url": 1}) is None
    assert made_key(lambda _resource: None, {}) is None
    with pytest.raises(TypeError, match="system and the value"):
        made_key(lambda _resource: ("urn:s", 1), {})


@pytest.mark.parametrize(
    ("rule", "described"),
    [
        (IdentifierRule(most=9, refused_systems=frozenset({"urn:x"})), ""),
        (IdentifierRule(forms=(ValueForm(pattern="[0-9]+"),)), ""),
        (IdentifierRule(forms=(LABEL,)), "forms"),
        (IdentifierRule(systems=("urn:a",)), "systems"),
        (IdentifierRule(elements=("accession",)), "elements"),
        (IdentifierRule(elements=(), key=lambda _resource: None), "key_version"),
    ],
)
def test_only_what_decides_the_key_is_recorded(rule: IdentifierRule, described: str) -> None:
    said = Identification(rule).described

    assert described in said
    assert bool(said) == bool(described)
