"""Parts that repeat are types that are read and searched."""

from __future__ import annotations

from typing import Any

from fhirpub.plugin_api.member_types import member_type_of, member_types
from fhirpub.plugin_api.resource_type import Part, ResourceType
from fhirpub.plugin_api.search import SearchParameter

CODE = SearchParameter(name="code", type="token", paths=("code",))
DATE = SearchParameter(name="date", type="date", paths=("effectiveDateTime",))


def a_part(name: str = "result", type_: str = "Observation", **changes: Any) -> Part:
    usual: dict[str, Any] = {
        "referred_by": "result",
        "repeats": True,
        "statuses": frozenset({"final"}),
        "patient": "subject",
    }
    return Part(name=name, type=type_, **{**usual, **changes})


def a_type(name: str, *parts: Part, **changes: Any) -> ResourceType:
    return ResourceType(
        name=name,
        parts=parts,
        create_statuses=frozenset({"final"}),
        update_statuses=frozenset({"final"}),
        **changes,
    )


def names_of(found: Any) -> list[str]:
    return [one.name for one in found.resource_type.search]


def test_only_parts_that_repeat_are_types() -> None:
    alone = Part(name="patient", type="Patient", referred_by="subject")

    found = member_types({"Report": a_type("Report", alone, a_part(search=(CODE,)))})

    assert [*found] == ["Observation"]
    assert names_of(found["Observation"]) == ["code"]


def test_a_type_that_only_comes_with_others_is_not_registered_alone() -> None:
    part = a_part(example={"resourceType": "Observation"})

    made = member_type_of(part)

    kind = made.resource_type
    assert (kind.name, kind.create_statuses, kind.update_statuses, kind.updatable, kind.parts) == (
        *("Observation", frozenset(), frozenset()),
        *(frozenset(), ()),
    )
    assert kind.example == part.example
    assert made.part is part


def test_a_type_of_several_parts_has_the_searches_of_all_and_the_first_part() -> None:
    first, second = a_part(search=(CODE,)), a_part("other", search=(DATE, CODE))

    found = member_types({"A": a_type("A", first), "B": a_type("B", second)})

    assert names_of(found["Observation"]) == ["code", "date"]
    assert found["Observation"].part is first


def test_a_type_that_is_also_registered_alone_keeps_what_it_declares() -> None:
    own = a_type("Observation", search=(DATE,))

    found = member_types({"Observation": own, "A": a_type("A", a_part(search=(CODE,)))})

    kind = found["Observation"].resource_type
    assert names_of(found["Observation"]) == ["date", "code"]
    assert kind.create_statuses == frozenset({"final"})
