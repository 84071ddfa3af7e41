"""Where values of composites, numbers and URIs are stored, and how they are found there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Any

import pytest

from fhirpub.errors import TooLarge
from fhirpub.fhir.strict_json import loads_stored
from fhirpub.interactions.indexing.pairs import MAX_PAIRS, Pairing, pairings_of
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.interactions.search.sought import READERS, Asking, Pair
from fhirpub.plugin_api import ResourceType, SearchParameter, r4_composite, r4_parameter
from fhirpub.storage.criteria import Criterion, TokenMatch, decode, holds
from fhirpub.testing.samples import a_version
from tests.indexers import indexer

GOLDEN = "$qgPpK99UU_QR4u8c"
UCUM = "http://unitsofmeasure.org"
CODE = r4_parameter("clinical-code", "token", "code")
QUANTITY = r4_parameter("Observation-value-quantity", "quantity", "valueQuantity")
PAIR = r4_composite("Observation-code-value-quantity", "code", "value-quantity")
COUNTS = (
    r4_parameter("Observation-component-code", "token", "component.code"),
    SearchParameter(name="component-count", type="number", paths=("component.valueInteger",)),
    SearchParameter(
        name="component-code-count",
        type="composite",
        components=("component-code", "component-count"),
    ),
)
CONCEPTS = (
    CODE,
    r4_parameter("Observation-value-concept", "token", "valueCodeableConcept"),
    r4_composite("Observation-code-value-concept", "code", "value-concept"),
)

COMPONENTS = (
    r4_parameter("Observation-component-code", "token", "component.code"),
    r4_parameter("Observation-component-value-concept", "token", "component.valueCodeableConcept"),
    r4_composite(
        "Observation-component-code-value-concept", "component-code", "component-value-concept"
    ),
)


def searched(*search: SearchParameter) -> SearchIndexer:
    declared = ResourceType(
        name="Observation",
        parts=(),
        create_statuses=frozenset(),
        update_statuses=frozenset(),
        search=search,
    )
    return indexer(declared)


def coded(*codes: str, system: str = "s") -> dict[str, Any]:
    return {"coding": [{"system": system, "code": code} for code in codes]}


def encoded(it: SearchIndexer, *, limited: bool = True, **elements: Any) -> bytes:
    return it.values({"resourceType": "Observation", **elements}, {}, limited=limited)


def finds(it: SearchIndexer, name: str, code: TokenMatch, value: str, search: bytes) -> bool:
    """Return whether a composite finds a resource with these values."""
    (pairing,) = it.parameters[name].pairings
    other = READERS[pairing.type][1](value, Asking(UTC, 0))
    assert other is not None
    criteria: Sequence[Criterion] = Pair(code, other).found_in(pairing)
    return all(holds(one, a_version(search=search)) for one in criteria)


@pytest.mark.parametrize(
    ("code", "value", "expected"),
    [
        (TokenMatch("s", "a"), "3", True),
        (TokenMatch(None, "a"), "lt4", True),
        (TokenMatch("t", "a"), "3", False),
        (TokenMatch("s", "a"), "7", False),
        (TokenMatch("s", "b"), "gt3", True),
    ],
)
def test_a_number_belongs_to_the_code_beside_it(
    code: TokenMatch, value: str, *, expected: bool
) -> None:
    it = searched(*COUNTS)
    components = [
        {"code": coded("a"), "valueInteger": 3},
        {"code": coded("b"), "valueInteger": 7},
        {"code": coded("c")},
    ]

    values = encoded(it, component=components)

    assert finds(it, "component-code-count", code, value, values) is expected


@pytest.mark.parametrize("number", [10**30, "1e308", "-1e308", "1e-400", "0." + "3" * 10_000])
def test_a_hostile_number_is_stored_as_one_of_64_bits(number: Any) -> None:
    it = searched(*COUNTS[:2])
    resource = f'{{"component": [{{"valueInteger": {number}}}]}}'.encode()

    ((_name, first, second),) = decode(encoded(it, **loads_stored(resource)))

    assert isinstance(first, int) and isinstance(second, int)  # noqa: PT018
    assert -(2**63) < first < second < 2**63


def test_names_of_pairs_are_short_whatever_the_code_is() -> None:
    it = searched(CODE, QUANTITY, PAIR)

    values = encoded(it, code=coded("x" * 10_000), valueQuantity={"value": 1, "code": "y" * 9_000})

    assert max(len(name) for name, *_ in decode(values)) < 30


def test_of_one_element_few_pairs_are_stored_however_many_codes_it_has() -> None:
    it = searched(*COMPONENTS)
    codes = [str(number) for number in range(300)]
    component = {"code": coded(*codes), "valueCodeableConcept": coded(*codes)}

    values = decode(encoded(it, component=[component]))

    assert len(values) == 600 + 2 * MAX_PAIRS


@pytest.mark.parametrize(
    ("elements", "alone"),
    [
        ({"valueQuantity": {"value": 1, "unit": "spots"}}, 2),
        ({"valueString": "Ash Birch"}, 2),
    ],
)
def test_what_is_compared_as_it_is_written_makes_no_pair(
    elements: dict[str, Any], alone: int
) -> None:
    text = r4_parameter("Observation-value-string", "string", "valueString")
    both = r4_composite("Observation-code-value-string", "code", "value-string")
    it = searched(CODE, QUANTITY, PAIR, text, both)

    values = decode(encoded(it, code=coded("a", "b"), **elements))

    pairs = [name for name, *_ in values if name.startswith("$")]
    assert (len(values), len(pairs)) == (2 + alone + 2, 2)


def test_pairs_of_each_holder_are_made_of_its_own_elements() -> None:
    codes = {"code": "a", "component.code": "b"}
    others = {"value": "c", "component.value": "d", "other.value": "e"}

    found = [*pairings_of(codes, others, "quantity")]

    assert [(one.holder, one.first, one.second) for one in found] == [
        ("", "a", "c"),
        ("component", "b", "d"),
    ]
    assert [(one.codes, one.others) for one in found] == [
        (("code",), ("value",)),
        (("component.code",), ("component.value",)),
    ]


def test_of_a_resource_pairs_are_stored_without_the_system() -> None:
    it = searched(*CONCEPTS)

    values = encoded(it, code=coded("a", "b"), valueCodeableConcept=coded("c", "d"))

    assert len(decode(values)) == 8
    assert finds(it, "code-value-concept", TokenMatch("s", "b"), "s|c", values)
    assert not finds(it, "code-value-concept", TokenMatch("t", "b"), "s|c", values)
    assert not finds(it, "code-value-concept", TokenMatch("s", "b"), "a", values)


@pytest.mark.parametrize("limited", [True, False])
def test_pairs_of_thousands_of_elements_are_too_many(*, limited: bool) -> None:
    it = searched(*COMPONENTS)
    concept = coded("a", "b")
    components = [{"code": concept, "valueCodeableConcept": concept} for _ in range(600)]

    if not limited:
        encoded(it, limited=False, component=components)
        return
    with pytest.raises(TooLarge):
        encoded(it, component=components)


def test_a_quantity_of_a_unit_that_is_not_converted_is_found_by_its_unit() -> None:
    it = searched(CODE, QUANTITY, PAIR)
    quantity = {"value": 5, "unit": "drops", "system": "urn:x", "code": "drp"}

    values = encoded(it, code=coded("a"), valueQuantity=quantity)

    for value in ("5", "5||drops", "5||drp", "5|urn:x|drp"):
        assert finds(it, "code-value-quantity", TokenMatch("s", "a"), value, values), value
    for value in ("5||x", f"5|{UCUM}|g", "5|urn:y|drp"):
        assert not finds(it, "code-value-quantity", TokenMatch("s", "a"), value, values), value


def test_a_parameter_over_what_others_store_stores_nothing() -> None:
    component = r4_parameter("Observation-component-code", "token", "component.code")
    combo = r4_parameter("Observation-combo-code", "token", "code", "component.code")
    with_combo, without = searched(CODE, component, combo), searched(CODE, component)
    alone = searched(CODE, combo)

    assert with_combo.rules == without.rules
    assert with_combo.parameters["combo-code"].names == ("code", "component.code")
    assert alone.parameters["combo-code"].names == ("code|component.code",)


def test_a_composite_is_a_reason_to_reindex() -> None:
    assert searched(CODE, QUANTITY).rules != searched(CODE, QUANTITY, PAIR).rules


def test_a_long_uri_is_stored_short_and_found() -> None:
    it = searched(SearchParameter(name="x", type="uri", paths=("implicitRules",)))
    uri = "https://north-quay.example/" + "x" * 5_000

    values = encoded(it, implicitRules=uri)

    sought = READERS["uri"][1](uri, Asking(UTC, 0))
    assert sought is not None
    assert len(values) < 200
    assert holds(Criterion("implicitRules", sought.matches), a_version(search=values))


def test_names_of_pairs_are_those_under_which_earlier_releases_stored_them() -> None:
    (pairing,) = searched(CODE, QUANTITY, PAIR).parameters["code-value-quantity"].pairings

    assert pairing.stored_under("1", "s", "|mg") == GOLDEN


def test_each_item_of_an_element_that_repeats_has_its_pairs() -> None:
    category = SearchParameter(name="category", type="token", paths=("category",))
    both = SearchParameter(name="both", type="composite", components=("category", "value-concept"))
    it = searched(category, CONCEPTS[1], both)

    found = encoded(it, category=[coded("a"), coded("b")], valueCodeableConcept=coded("v"))

    for code, is_found in (("a", True), ("b", True), ("v", False)):
        assert finds(it, "both", TokenMatch("s", code), "s|v", found) == is_found


@pytest.mark.parametrize("number", [0, -1, 1])
def test_a_pair_with_any_number_is_stored(number: int) -> None:
    it = searched(*COUNTS)

    values = encoded(it, component=[{"code": coded("a"), "valueInteger": number}])

    code = TokenMatch("s", "a")
    assert finds(it, "component-code-count", code, f"{number}", values)
    assert not finds(it, "component-code-count", code, f"{number + 1}", values)


@pytest.mark.parametrize(
    ("holder", "first", "second", "is_alone"),
    [
        ("", "code", "valueQuantity", True),
        ("component", "code", "valueQuantity", False),
        ("", "code|component.code", "valueQuantity", False),
        ("", "code", "valueQuantity|component.valueQuantity", False),
    ],
)
def test_a_pair_is_alone_where_nothing_else_is_stored_under_its_names(
    holder: str, first: str, second: str, *, is_alone: bool
) -> None:
    pairing = Pairing(
        holder=holder,
        first=first,
        second=second,
        type="quantity",
        codes=("code",),
        others=("valueQuantity",),
    )

    assert pairing.is_alone is is_alone


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (f"132|{UCUM}|g/L", True),
        (f"13.2|{UCUM}|g/dL", True),
        (f"13.2|{UCUM}|g/L", False),
        ("13.2", True),
    ],
)
def test_a_quantity_beside_its_code_is_found_in_other_units(value: str, *, expected: bool) -> None:
    it = searched(CODE, QUANTITY, PAIR)
    quantity = {"value": 13.2, "system": UCUM, "code": "g/dL"}

    values = encoded(it, code=coded("a"), valueQuantity=quantity)

    assert finds(it, "code-value-quantity", TokenMatch("s", "a"), value, values) is expected
