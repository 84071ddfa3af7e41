"""What values of search parameters match."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fhirpub.errors import SearchTooCostly
from fhirpub.interactions.identity.identification import identification_of
from fhirpub.interactions.indexing.texts import shorten
from fhirpub.interactions.search.sought import Sought
from fhirpub.plugin_api import IdentifierRule, ValueForm
from fhirpub.storage.criteria import Match, TextMatch, TimeMatch, TokenMatch
from tests.unit.interactions.reading import ID, INDEXER, NOW, TENANT, Parsing

DAY = 86_400_000
TOKEN_RULE = "must be value, system|value, system| or |value"
REFERENCE_RULE = "must be an id, Type/id or a URL"
PAIR_RULE = "must be two values such as system|code$value, first a code"


@pytest.fixture
def it() -> Parsing:
    return Parsing()


# Ids and tokens


def test_ids_are_read_as_they_are_written(it: Parsing) -> None:
    assert it.values.ids("_id", "a,b\\,c,a") == ["a", "b\\,c", "a"]
    assert it.wrong == []


def test_ids_with_a_lone_backslash_are_refused(it: Parsing) -> None:
    assert it.values.ids("_id", "a\\b") is None
    assert it.wrong == [("_id", "must be ids, separated by commas")]


def test_tokens_are_read_in_each_form(it: Parsing) -> None:
    assert it.values.tokens("code", "a,urn:s|b,urn:s|,|c,d\\|e") == [
        TokenMatch(None, "a"),
        TokenMatch("urn:s", "b"),
        TokenMatch("urn:s", None),
        TokenMatch("", "c"),
        TokenMatch(None, "d|e"),
    ]
    assert it.wrong == []


@pytest.mark.parametrize(("value", "read"), [("|", []), ("a,|", ["a"]), ("a\\b", []), (",", [])])
def test_a_token_of_no_form_is_refused_and_the_others_stay(
    it: Parsing, value: str, read: list[str]
) -> None:
    assert it.values.tokens("code", value) == [TokenMatch(None, one) for one in read]
    assert it.wrong == [("code", TOKEN_RULE)]


def test_an_identifier_with_its_type_is_found_in_each_form_of_its_value(it: Parsing) -> None:
    rule = IdentifierRule(most=3, forms=(ValueForm(case="upper"),))
    identification = identification_of(replace(INDEXER.type, identifier=rule))

    found = it.values.typed("identifier", "urn:t|MR|a1", identification)

    assert found == [
        TokenMatch("urn:t", f"MR|{spelling}") for spelling in identification.spellings_of("a1")
    ]
    assert TokenMatch("urn:t", "MR|A1") in found


def test_an_identifier_with_its_type_is_read(it: Parsing) -> None:
    assert it.values.typed("identifier", "urn:t|MR|1,urn:t|A\\|B|2") == [
        TokenMatch("urn:t", "MR|1"),
        TokenMatch("urn:t", "A\\|B|2"),
    ]
    assert it.wrong == []


@pytest.mark.parametrize("value", ["urn:t|MR", "|MR|1", "x", "a\\b"])
def test_an_identifier_without_each_of_its_parts_is_refused(it: Parsing, value: str) -> None:
    assert it.values.typed("identifier", value) == []
    assert it.wrong == [("identifier", "must be system|code|value with :of-type")]


# Dates, numbers, texts, quantities


def test_each_date_of_a_list_is_read(it: Parsing) -> None:
    assert it.sought("date", "1970-01-02,ge1970-01-03") == [
        Sought((TimeMatch(from_=DAY, until=2 * DAY),)),
        Sought((TimeMatch(after=3 * DAY), TimeMatch(from_=2 * DAY))),
    ]


def test_about_a_date_is_meant_from_the_time_that_it_is(it: Parsing) -> None:
    slack = (NOW - DAY) // 10

    assert it.sought("date", "ap1970-01-02") == [
        Sought((TimeMatch(before=2 * DAY + slack, after=DAY - slack),))
    ]


def test_one_wrong_date_of_a_list_is_refused_with_all_of_it(it: Parsing) -> None:
    assert it.sought("date", "1970-01-02,yesterday") is None

    ((name, rule),) = it.wrong
    assert name == "date"
    assert rule.endswith(", with or without a prefix such as ge")


@pytest.mark.parametrize("value", ["", ",", "\\x"])
def test_a_value_that_is_none_is_wrong_for_texts_too(it: Parsing, value: str) -> None:
    assert it.sought("value-string", value) is None
    assert [name for name, _rule in it.wrong] == ["value-string"]


def test_texts_are_read_as_they_are_compared(it: Parsing) -> None:
    assert it.sought("value-string", "Ñandú,a\\,b") == [
        Sought((TextMatch("nandu", None),)),
        Sought((TextMatch("a,b", None),)),
    ]


def test_exact_texts_are_read_as_they_are_written_for_each_kind(it: Parsing) -> None:
    found = it.values.exact_texts(INDEXER.parameters["value-string"], "Ñandú,a\\,b")

    assert found == [
        TokenMatch(f"{kind}|{text}", "")
        for text in ("Ñandú", "a,b")
        for kind in ("family", "given", "text", "")
    ]


def test_exact_texts_that_are_none_match_nothing(it: Parsing) -> None:
    assert it.values.exact_texts(INDEXER.parameters["value-string"], "\\x") == []


# Pairs


def test_a_pair_is_a_code_and_another_value(it: Parsing) -> None:
    found = it.pairs("urn:s|a$5,b$ge6")

    assert found is not None
    assert [pair.code for pair in found] == [TokenMatch("urn:s", "a"), TokenMatch(None, "b")]
    assert [len(pair.other.matches) for pair in found] == [1, 2]
    assert it.wrong == []


@pytest.mark.parametrize(
    "value", ["a", "$5", "a$", "urn:s|$5", "|$5", "a$5$6", "a$5,b", "", "\\x"]
)
def test_what_is_no_pair_that_begins_with_a_code_is_refused(it: Parsing, value: str) -> None:
    assert it.pairs(value) is None
    assert it.wrong == [("code-value", PAIR_RULE)]


def test_a_pair_whose_second_value_is_wrong_is_refused_by_its_rule(it: Parsing) -> None:
    assert it.pairs("a$five") is None

    ((name, rule),) = it.wrong
    assert name == "code-value"
    assert rule != PAIR_RULE


# URIs


def test_a_uri_with_what_is_below_it_is_read(it: Parsing) -> None:
    assert it.values.uris("rules", "http://x.example/a/,http://x.example/b", "below") == [
        TokenMatch(None, "http://x.example/a/"),
        TextMatch("http://x.example/a/"),
        TokenMatch(None, "http://x.example/b"),
        TextMatch("http://x.example/b/"),
    ]


def test_a_uri_with_what_is_above_it_is_read_to_its_host(it: Parsing) -> None:
    assert it.values.uris("rules", "http://x.example/a/b/c/", "above") == [
        TokenMatch(None, url)
        for url in (
            "http://x.example/a/b/c/",
            "http://x.example",
            "http://x.example/a",
            "http://x.example/a/b",
        )
    ]


def test_nothing_is_above_a_host(it: Parsing) -> None:
    assert it.values.uris("rules", "http://x.example", "above") == [
        TokenMatch(None, "http://x.example")
    ]


def test_of_a_long_path_the_first_hundred_steps_are_above_it(it: Parsing) -> None:
    steps = [str(number) for number in range(150)]

    found = it.values.uris("rules", f"http://x.example/{'/'.join(steps)}", "above")

    assert found[1:] == [
        TokenMatch(None, "/".join(("http://x.example", *steps[:number]))) for number in range(100)
    ]


def test_a_long_uri_is_compared_by_its_digest(it: Parsing) -> None:
    url = f"http://x.example/{'a' * 600}"

    assert it.values.uris("rules", url, "below") == [
        TokenMatch(None, shorten(url)),
        TextMatch(f"{shorten(url)}/"),
    ]


@pytest.mark.parametrize(("value", "modifier"), [("urn:uuid:1", "below"), ("x", "above")])
def test_what_is_no_url_has_nothing_below_or_above(it: Parsing, value: str, modifier: str) -> None:
    found: list[Match] = it.values.uris("rules", f"{value},http://x.example", modifier)

    assert found[0] == TokenMatch(None, "http://x.example")
    assert it.wrong == [("rules", f"must be a URL, with a scheme and a host, for :{modifier}")]


@pytest.mark.parametrize("value", ["\\x", ","])
def test_a_list_without_a_uri_is_refused(it: Parsing, value: str) -> None:
    assert it.values.uris("rules", value, "below") == []
    assert len(it.wrong) == 1


def test_what_is_above_a_uri_counts_as_values() -> None:
    it = Parsing(most=5)
    it.values.uris("rules", "http://x.example/1/2/3/4", "above")

    with pytest.raises(SearchTooCostly):
        it.values.tokens("code", "a")


# References


def test_a_reference_is_read_with_its_type(it: Parsing) -> None:
    assert it.values.references("encounter", "Encounter/7,8", None) == [
        TokenMatch("Encounter", "7"),
        TokenMatch(None, "8"),
    ]


def test_a_reference_without_a_type_is_to_the_target(it: Parsing) -> None:
    assert it.values.references("encounter", "8", "Encounter") == [TokenMatch("Encounter", "8")]


def test_a_reference_to_another_type_than_the_target_matches_nothing(it: Parsing) -> None:
    found = it.values.references("encounter", "EpisodeOfCare/7,Encounter/8", "Encounter")

    assert found == [TokenMatch("Encounter", "8")]
    assert it.wrong == []


def test_a_url_of_another_server_has_no_type(it: Parsing) -> None:
    url = "https://there.example/Encounter/7"

    assert it.values.references("encounter", url, "Encounter") == [TokenMatch("", url)]


def test_a_reference_to_a_part_is_one_of_the_resource_it_came_with(it: Parsing) -> None:
    assert it.values.references("subject", f"Patient/{ID}", None) == [
        TokenMatch("Patient", ID),
        TokenMatch("Patient", "", TENANT.part_id(ID, "patient")),
    ]


@pytest.mark.parametrize("value", ["\\x", ","])
def test_what_is_no_list_of_references_is_refused(it: Parsing, value: str) -> None:
    assert it.values.references("subject", value, None) == []
    assert it.wrong == [("subject", REFERENCE_RULE)]


def test_a_reference_without_an_id_is_refused(it: Parsing) -> None:
    it.values.references("subject", "Patient/", None)

    assert it.wrong == [("subject", REFERENCE_RULE)]
