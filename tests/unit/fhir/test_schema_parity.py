"""The engine that accepts and the engine that explains always agree."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fhirpub.fhir.schema import own_schemas
from tests.strategies import RESOURCE_TYPES, resource_of

Holder = dict[str, Any] | list[Any]
Place = tuple[Any, Any]
Mutation = Callable[[Any, Any, Any], None]

SCHEMAS = own_schemas()
MUTANTS = 5
JUNK: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**31, 10**30, 2.0, 1.5, 1e300),
    *(Decimal("2.0"), Decimal("1E+2"), Decimal("0.10"), Decimal("1E-999")),
    *("", " ", "\n", "x", "true", "1", "2024-13-01", "\u0662\u0660\u0662\u0664", "x" * 65),
    *([], {}, [None], [[]], [{}], {"id": "a"}, {"extension": []}, [None, None], ["x", None]),
    *({"extension": [{"url": "u"}]}, [{"extension": [{"url": "u"}]}], {"resourceType": "Patient"}),
]
ENDS = [
    "\n",
    " ",
    "\u00a0",
    "\u2028",
    "\u0085",
    "\u0000",
    "\u001f",
    "\r\n",
    "Z",
    "0",
    "é",
    "\u0663",
]
NAMES = ["valueString", "_valueString", "valueCode", "unknown", "resourceType", "id", "extension"]


def places(holder: Holder) -> Iterator[Place]:
    """Every place in a resource, by its holder and its key."""
    for key, value in holder.items() if isinstance(holder, dict) else enumerate(holder):
        yield holder, key
        if isinstance(value, dict | list):
            yield from places(value)


def replaced(holder: Any, key: Any, junk: Any) -> None:
    holder[key] = junk


def dropped(holder: Any, key: Any, _junk: Any) -> None:
    del holder[key]


def renamed(holder: Any, key: Any, junk: Any) -> None:
    if isinstance(holder, dict):
        name = NAMES[len(str(junk)) % len(NAMES)] if junk else f"_{key}"
        holder[name] = holder.pop(key)


def accompanied(holder: Any, key: Any, junk: Any) -> None:
    if isinstance(holder, dict):
        holder[f"_{key}"] = junk
    else:
        holder.append(junk)


def nested(holder: Any, key: Any, junk: Any) -> None:
    holder[key] = {"value": holder[key]} if junk else [holder[key]]


def unnested(holder: Any, key: Any, _junk: Any) -> None:
    if isinstance(holder[key], list) and holder[key]:
        holder[key] = holder[key][0]


def ended(holder: Any, key: Any, junk: Any) -> None:
    value = holder[key]
    if isinstance(value, str):
        end = ENDS[len(str(junk)) % len(ENDS)]
        holder[key] = value[:-1] + end if junk is None else value + end
    elif isinstance(value, int) and not isinstance(value, bool):
        holder[key] = float(value) if junk else Decimal(f"{value}.0")


MUTATIONS: list[Mutation] = [
    replaced,
    dropped,
    renamed,
    accompanied,
    nested,
    unnested,
    ended,
    ended,
]


@st.composite
def mutated(draw: st.DrawFn, type_name: str) -> list[dict[str, Any]]:
    original = draw(resource_of(type_name))
    mutants = [copy.deepcopy(original) for _ in range(MUTANTS)]
    for mutant in mutants:
        for _ in range(1 + draw(st.booleans())):
            mutation, junk = draw(st.sampled_from(MUTATIONS)), draw(st.sampled_from(JUNK))
            everywhere = list(places(mutant))
            numbers = [item for item in everywhere if type(item[0][item[1]]) is int]
            found = numbers if numbers and mutation is ended else everywhere
            if found:
                holder, key = found[draw(st.integers(0, len(found) - 1))]
                mutation(holder, key, copy.deepcopy(junk))
    return mutants


relaxed = settings(
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("type_name", RESOURCE_TYPES)
def test_a_resource_made_from_the_element_tables_is_valid_for_both(type_name: str) -> None:
    @settings(relaxed, max_examples=20)
    @given(resource_of(type_name))
    def both_accept(resource: dict[str, Any]) -> None:
        assert [*SCHEMAS.explain(type_name, resource)] == []
        assert SCHEMAS.accepts(type_name, resource)

    both_accept()


@pytest.mark.parametrize("type_name", RESOURCE_TYPES)
def test_both_give_the_same_verdict_on_a_resource_with_mistakes(type_name: str) -> None:
    @settings(relaxed, max_examples=30)
    @given(mutated(type_name))
    def both_agree(mutants: list[dict[str, Any]]) -> None:
        for mutant in mutants:
            assert SCHEMAS.accepts(type_name, mutant) == (
                [*SCHEMAS.explain(type_name, mutant)] == []
            )

    both_agree()
