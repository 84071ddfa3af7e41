"""Types that several plugins declare, or refer to: whose they are, and what is refused."""

from __future__ import annotations

import pytest

from fhirpub.plugin_host.loader import load
from tests.unit.plugin_host.installing import Install, declaring, words_of


def test_the_first_plugin_with_a_type_is_named_to_all_others(install: Install) -> None:
    for name in ("one", "two", "three"):
        install(name, declaring())

    assert words_of(["one", "two", "three"]) == [
        f"plugin {name}: Flag is already added by plugin one" for name in ("two", "three")
    ]


def test_problems_come_in_the_order_of_the_plugins(install: Install) -> None:
    install("flags", declaring().replace('frozenset({"active"})', "frozenset()"))
    install("goals", "1 / 0")

    assert [line.split()[1].rstrip(":") for line in words_of(["flags", "goals"])] == [
        "flags",
        "goals",
    ]


def test_a_part_that_repeats_may_be_of_a_type_that_is_registered_too(install: Install) -> None:
    part = 'Part(name="goal", type="Goal", referred_by="", required=False, repeats=True),'
    install("flags", declaring().replace("parts=(", f"parts=({part}"))
    install("goals", declaring().replace("Flag", "Goal"))

    assert [*load(["flags", "goals"])] == ["Flag", "Goal"]


@pytest.mark.parametrize(("path", "is_refused"), [("code", False), ("category", True)])
def test_a_part_is_searched_as_the_type_that_is_registered_too(
    install: Install, path: str, *, is_refused: bool
) -> None:
    search = 'search=(SearchParameter(name="kind", type="token", paths=("%s",)),),'
    part = f'Part(name="goal", type="Goal", referred_by="", required=False, {search % path}'
    part = f"{part} repeats=True),"
    flags, goals = declaring().replace("parts=(", f"parts=({part}"), declaring(search % "code")
    install("flags", f"from fhirpub.plugin_api import SearchParameter\n{flags}")
    goals = goals.replace("Flag", "Goal")
    install("goals", f"from fhirpub.plugin_api import SearchParameter\n{goals}")

    if is_refused:
        (line,) = words_of(["flags", "goals"])
        assert line.startswith("plugin flags: part goal of Flag: search parameter kind of Goal")
    else:
        assert [*load(["flags", "goals"])] == ["Flag", "Goal"]


PART = (
    'Part(name="goal", type="Goal", referred_by="", required=False, repeats=True, patient="%s",'
    ' search=(SearchParameter(name="kind", type="%s", paths=("code",)),)),'
)


@pytest.mark.parametrize(
    ("patient", "kind", "said"),
    [
        ("subject", "token", ""),
        ("for", "token", "another part of type Goal has its patient elsewhere"),
        ("subject", "string", "search parameter kind of Goal is declared elsewhere with another "),
    ],
)
def test_parts_of_one_type_in_two_types_are_declared_alike(
    install: Install, patient: str, kind: str, said: str
) -> None:
    for name, part in (("flags", PART % ("subject", "token")), ("lists", PART % (patient, kind))):
        source = declaring().replace("parts=(", f"parts=({part}")
        source = source.replace('"Flag"', f'"{name.title()[:-1]}"')
        install(name, f"from fhirpub.plugin_api import SearchParameter\n{source}")

    if said:
        (line,) = words_of(["flags", "lists"])
        assert line.startswith(f"plugin lists: part goal of List: {said}")
    else:
        assert [*load(["flags", "lists"])] == ["Flag", "List"]
