"""Parts of names, and the parameter that is named if there are too many values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fhirpub.errors import SearchTooCostly
from fhirpub.interactions.search.sought import Sought
from fhirpub.interactions.value_parser import ValueParser
from fhirpub.plugin_api import ResourceType, SearchParameter
from fhirpub.storage.criteria import TextMatch, TokenMatch
from fhirpub_diagnosticreport.members import PRACTITIONER
from tests.indexers import indexer
from tests.unit.interactions.reading import INDEXER, NOW, TENANT, Parsing

PERSONS = indexer(
    ResourceType(
        name="Practitioner",
        parts=(),
        create_statuses=frozenset(),
        update_statuses=frozenset(),
        search=(
            SearchParameter(name="name", type="string", paths=("name",)),
            SearchParameter(name="family", type="string", paths=("name.family",)),
        ),
    ),
    member=PRACTITIONER,
)
READS: dict[str, Callable[[ValueParser, str], object]] = {
    "_id": lambda values, text: values.ids("_id", text),
    "code": lambda values, text: values.tokens("code", text),
    "identifier": lambda values, text: values.typed("identifier", text),
    "date": lambda values, text: values.sought(INDEXER.parameters["date"], text),
    "value-count": lambda values, text: values.sought(INDEXER.parameters["value-count"], text),
    "code-value": lambda values, text: values.pairs(INDEXER.parameters["code-value"], text),
    "rules": lambda values, text: values.uris("rules", text, "below"),
    "subject": lambda values, text: values.references("subject", text, None),
}


@pytest.fixture
def persons() -> ValueParser:
    return ValueParser(
        PERSONS, TENANT, clock=lambda: NOW, wrong=lambda _name, _rule: None, max_values=10
    )


def test_a_part_of_a_name_is_sought_among_those_parts(persons: ValueParser) -> None:
    assert persons.sought(PERSONS.parameters["family"], "Ada") == [
        Sought((TextMatch("ada", "family"),))
    ]
    assert persons.sought(PERSONS.parameters["name"], "Ada") == [Sought((TextMatch("ada"),))]


def test_an_exact_part_of_a_name_is_of_its_kind(persons: ValueParser) -> None:
    assert persons.exact_texts(PERSONS.parameters["family"], "Ada") == [
        TokenMatch("family|Ada", "")
    ]


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("text", ["1,1,1", "http://x.example,http://y.example,5"])
def test_too_many_values_are_refused_by_the_name_of_their_parameter(name: str, text: str) -> None:
    with pytest.raises(SearchTooCostly) as refused:
        READS[name](Parsing(2).values, text)

    assert refused.value.issues[0].expression == name


def test_urls_above_that_are_too_many_are_refused_by_the_name_of_their_parameter() -> None:
    with pytest.raises(SearchTooCostly) as refused:
        Parsing(3).values.uris("rules", "http://x.example/1/2/3", "above")

    assert refused.value.issues[0].expression == "rules"


def test_a_url_within_a_url_has_the_host_of_the_first() -> None:
    found = Parsing().values.uris("rules", "http://x.example/a://b", "above")

    assert [match.value for match in found if isinstance(match, TokenMatch)][1:] == [
        "http://x.example",
        "http://x.example/a:",
        "http://x.example/a:/",
    ]
