"""Which criteria lead to a pair of a code and another value."""

from __future__ import annotations

import pytest

from fhirpub.interactions.indexing.pairs import Pairing
from fhirpub.interactions.indexing.quantities import units_under
from fhirpub.interactions.search.sought import Pair, Sought
from fhirpub.storage.criteria import Criterion, TimeMatch, TokenMatch

NUMBER = TimeMatch(from_=1, until=2)
ALONE, IN_COMPONENTS = (
    Pairing(
        holder=holder,
        first="code",
        second="value",
        type="quantity",
        codes=("code",),
        others=("value",),
    )
    for holder in ("", "component")
)
ANY, OF_CODES = TokenMatch(None, "c"), TokenMatch("urn:codes", "c")


def criteria(pairing: Pairing, code: TokenMatch, unit: str = "") -> tuple[Criterion, ...]:
    return Pair(code, Sought((NUMBER,), unit)).found_in(pairing)


@pytest.mark.parametrize("unit", ["", "=g", "drops"])
@pytest.mark.parametrize("code", [ANY, OF_CODES, TokenMatch("", "c")])
def test_in_one_of_many_holders_a_pair_is_one_value(code: TokenMatch, unit: str) -> None:
    name = IN_COMPONENTS.stored_under("c", code.system, unit)

    assert criteria(IN_COMPONENTS, code, unit) == (Criterion(name, (NUMBER,)),)


def test_a_pair_without_a_code_is_that_of_an_empty_one() -> None:
    name = IN_COMPONENTS.stored_under("", "urn:codes", "")

    assert criteria(IN_COMPONENTS, TokenMatch("urn:codes", None)) == (Criterion(name, (NUMBER,)),)
    assert criteria(ALONE, TokenMatch(None, None)) == (
        Criterion(ALONE.stored_under("", None, ""), (NUMBER,)),
    )


def test_what_a_resource_has_alone_is_found_by_the_code_and_the_number() -> None:
    assert criteria(ALONE, ANY) == (Criterion(ALONE.stored_under("c", None, ""), (NUMBER,)),)


def test_the_system_of_the_code_is_a_condition_of_its_own() -> None:
    assert criteria(ALONE, OF_CODES) == (
        Criterion(ALONE.stored_under("c", None, ""), (NUMBER,)),
        Criterion("code", (OF_CODES,)),
    )


def test_that_a_code_has_no_system_is_a_condition_too() -> None:
    code = TokenMatch("", "c")

    assert criteria(ALONE, code)[1:] == (Criterion("code", (code,)),)


def test_a_base_unit_is_part_of_the_pair() -> None:
    name = ALONE.stored_under("c", None, "=g")

    assert criteria(ALONE, ANY, "=g") == (Criterion(name, (NUMBER,)),)


def test_a_unit_as_it_was_written_is_a_condition_of_its_own() -> None:
    assert criteria(ALONE, OF_CODES, "drops") == (
        Criterion(ALONE.stored_under("c", None, ""), (NUMBER,)),
        Criterion("code", (OF_CODES,)),
        Criterion("value", (NUMBER,)),
        Criterion(units_under("value"), (TokenMatch("drops", ""),)),
    )
