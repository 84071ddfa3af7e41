"""Groups of settings are described, read and checked, each mistake with its place."""

# ruff: noqa: FBT003, RUF009 - as settings are written

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from fhirpub.config.reader import (
    LARGEST,
    check,
    describe,
    override,
    read_toml,
    setting,
    settings_in,
    wrong_networks,
)
from fhirpub.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class Door:
    """A door.

    What is below the first paragraph is not printed.
    """

    name: str = setting("front", "How it is called.")
    width: int = setting(90, "Its width.")
    weight: float = setting(1.5, "Its weight.")
    is_open: bool = setting(False, "Whether it is open.")
    side: Literal["left", "right"] = setting("left", "Where its handle is.")
    keys: list[str] = setting(["a", "b"], "Its keys.")
    turns: list[int] = setting([], "Turns of the key.")
    code: str = setting("", "What opens it.", secret=True)


GROUPS = {"door": Door, "gate": Door}


def checked(**door: Any) -> tuple[dict[str, Any], list[str]]:
    problems: list[str] = []
    values = check({"door": door}, GROUPS, problems, source="f")
    return values["door"], problems


def overridden(**variables: str) -> tuple[dict[str, Any], list[str]]:
    problems: list[str] = []
    values: dict[str, dict[str, Any]] = {"door": {"width": 1}, "gate": {}}
    override(values, GROUPS, variables, problems)
    return values["door"], problems


def test_each_group_has_a_list_of_its_own_by_default() -> None:
    first = Door()
    first.keys.append("c")

    assert Door().keys == ["a", "b"]


def test_a_secret_is_not_in_what_python_prints_of_a_group() -> None:
    assert "hidden" not in repr(Door(code="hidden"))
    assert "name='x'" in repr(Door(name="x"))


def test_a_secret_list_is_not_in_what_python_prints_of_a_group() -> None:
    @dataclass
    class Safe:
        codes: list[str] = setting([], "Codes.", secret=True)

    assert "hidden" not in repr(Safe(codes=["hidden"]))


def test_a_description_has_each_key_at_its_default_below_its_meaning() -> None:
    assert list(describe({"door": Door})) == [
        "",
        "# A door.",
        "[door]",
        "",
        "# How it is called.",
        '#name = "front"',
        "",
        "# Its width.",
        "#width = 90",
        "",
        "# Its weight.",
        "#weight = 1.5",
        "",
        "# Whether it is open.",
        "#is_open = false",
        "",
        "# Where its handle is.",
        "# One of: left, right.",
        '#side = "left"',
        "",
        "# Its keys.",
        '#keys = ["a", "b"]',
        "",
        "# Turns of the key.",
        "#turns = []",
        "",
        "# What opens it.",
        '#code = ""',
    ]


def test_a_long_meaning_is_wrapped_at_97_characters() -> None:
    @dataclass
    class Wide:
        """Wide."""

        one: str = setting("é", " ".join(["x" * 47, "y" * 47, "z" * 3]))

    assert list(describe({"wide": Wide}))[4:] == [
        f"# {'x' * 47} {'y' * 47}",
        "# zzz",
        '#one = "é"',
    ]


def test_a_file_of_no_utf8_is_no_toml(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a = '\xff'")

    with pytest.raises(ConfigurationError, match=rf"^{file}: is not TOML: "):
        read_toml(file)


def test_every_group_has_values_even_if_the_file_has_none() -> None:
    assert check({}, GROUPS, [], source="f") == {"door": {}, "gate": {}}


def test_values_go_to_the_group_that_has_them() -> None:
    values = check({"gate": {"width": 2}}, GROUPS, [], source="f")

    assert values == {"door": {}, "gate": {"width": 2}}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", ""),
        ("width", 0),
        ("width", LARGEST),
        ("weight", 0.0),
        ("weight", float(LARGEST)),
        ("is_open", True),
        ("side", "right"),
        ("keys", []),
        ("turns", [1, 2]),
    ],
)
def test_a_value_of_the_type_of_its_key_is_taken(key: str, value: Any) -> None:
    assert checked(**{key: value}) == ({key: value}, [])


def test_a_whole_number_becomes_a_number_with_a_point_where_one_is_wanted() -> None:
    values, _ = checked(weight=2)

    assert isinstance(values["weight"], float)


def test_a_whole_number_stays_one() -> None:
    values, _ = checked(width=2)

    assert isinstance(values["width"], int)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("name", 1, "must be a string"),
        ("width", "1", "must be a whole number"),
        ("width", 1.0, "must be a whole number"),
        ("width", True, "must be a whole number"),
        ("width", -1, "must not be negative"),
        ("width", LARGEST + 1, f"must be at most {LARGEST}"),
        ("weight", "1", "must be a number"),
        ("weight", True, "must be a number"),
        ("weight", -0.1, "must not be negative"),
        ("weight", float("nan"), "must be a finite number"),
        ("weight", float("inf"), "must be a finite number"),
        ("weight", 1e300, f"must be at most {LARGEST}"),
        ("is_open", 1, "must be true or false"),
        ("is_open", "true", "must be true or false"),
        ("side", "top", "must be one of left, right"),
        ("keys", "a", "must be a list of strings"),
        ("keys", ["a", 1], "must be a list of strings"),
        ("turns", [1, "2"], "must be a list of whole numbers"),
        ("turns", [True], "must be a list of whole numbers"),
    ],
)
def test_a_value_of_another_type_is_left_out_with_its_place(
    key: str, value: Any, problem: str
) -> None:
    assert checked(**{key: value}) == ({}, [f"f: {key} in [door]: {problem}"])


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        ({"dor": {}}, "f: unknown group [dor]; did you mean door?"),
        (
            {"xxxxx": {}},
            (
                "f: unknown group [xxxxx]; expected one of door, gate, "
                "or the name of an enabled plugin"
            ),
        ),
        ({"door": 1}, "f: [door] must be a table"),
        ({"width": 1}, "f: width is in no group; put it below [door] or [gate]"),
        ({"xxxxx": 1}, "f: xxxxx is in no group; every key belongs below a [group]"),
        ({"door": {"widht": 1}}, "f: widht in [door]: unknown key; did you mean width?"),
        (
            {"door": {"xxxxx": 1}},
            (
                "f: xxxxx in [door]: unknown key; expected one of "
                "code, is_open, keys, name, side, turns, weight, width"
            ),
        ),
    ],
)
def test_what_no_group_has_is_named_with_what_may_be_meant(
    tables: dict[str, Any], problem: str
) -> None:
    problems: list[str] = []

    check(tables, GROUPS, problems, source="f")

    assert problems == [problem]


def test_what_follows_a_mistake_is_still_read() -> None:
    problems: list[str] = []

    values = check({"x": {}, "door": {"y": 1, "width": 2}}, GROUPS, problems, source="f")

    assert (values["door"], len(problems)) == ({"width": 2}, 2)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("NAME", " a,b ", " a,b "),
        ("WIDTH", "7", 7),
        ("WEIGHT", "7", 7.0),
        ("WEIGHT", "0.5", 0.5),
        ("IS_OPEN", "True", True),
        ("IS_OPEN", "1", True),
        ("IS_OPEN", "0", False),
        ("IS_OPEN", "FALSE", False),
        ("SIDE", "right", "right"),
        ("KEYS", " x , ,y,", ["x", "y"]),
        ("KEYS", "", []),
        ("TURNS", "1, 2", [1, 2]),
    ],
)
def test_a_variable_is_read_as_the_type_of_its_key(key: str, text: str, value: Any) -> None:
    values, problems = overridden(**{f"FHIRPUB_DOOR__{key}": text})

    assert values == {"width": 1, key.lower(): value}
    assert problems == []


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("FHIRPUB_DOOR__WIDTH", "x", "must be a whole number"),
        ("FHIRPUB_DOOR__WIDTH", "1.5", "must be a whole number"),
        ("FHIRPUB_DOOR__IS_OPEN", "yes", "must be true or false"),
        ("FHIRPUB_DOOR__TURNS", "1,x", "must be a list of whole numbers"),
        ("FHIRPUB_DOOR__WIDHT", "1", "unknown key; did you mean width?"),
        ("FHIRPUB_DOR__WIDTH", "1", "unknown group dor; did you mean door?"),
    ],
)
def test_a_variable_that_is_wrong_leaves_the_value_of_the_file(
    name: str, text: str, problem: str
) -> None:
    assert overridden(**{name: text}) == ({"width": 1}, [f"{name}: {problem}"])


def test_a_wrong_group_does_not_hide_the_variables_after_it() -> None:
    values, problems = overridden(FHIRPUB_AAA__B="1", FHIRPUB_DOOR__WIDTH="5")

    assert (values["width"], len(problems)) == (5, 1)


def test_only_variables_with_two_underscores_behind_the_prefix_are_settings() -> None:
    variables = {
        "FHIRPUB_GATE__WIDTH": "",
        "FHIRPUB_DOOR__IS_OPEN": "",
        "FHIRPUB_DOOR_NAME": "",
        "DOOR__NAME": "",
        "fhirpub_door__name": "",
    }

    assert list(settings_in(variables)) == [
        ("FHIRPUB_DOOR__IS_OPEN", "door", "is_open"),
        ("FHIRPUB_GATE__WIDTH", "gate", "width"),
    ]


def test_each_entry_that_is_no_network_is_named() -> None:
    assert wrong_networks("[a] b", ["10.0.0.1/8", "::1", "x", "10.0.0.0/33"]) == [
        "[a] b: x is neither an address nor a network",
        "[a] b: 10.0.0.0/33 is neither an address nor a network",
    ]
