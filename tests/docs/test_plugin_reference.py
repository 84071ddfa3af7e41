"""The reference at the end of the guide for plugin authors equals the code."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from fhirpub import plugin_api
from fhirpub.plugin_api import hookspecs
from fhirpub.plugin_host.loader import load
from tests.shelf import SHELF

GUIDE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")
SECTIONS = {
    heading.strip("`"): text
    for heading, text in re.findall(
        r"^### ([^\n]+)\n(.*?)(?=^###? |\Z)",
        GUIDE.partition("## 8. Reference")[2],
        re.DOTALL | re.MULTILINE,
    )
}
CLASSES = [
    member
    for member in vars(plugin_api).values()
    if inspect.isclass(member)
    and member.__module__.startswith("fhirpub.")
    and not issubclass(member, Exception)
]


def rows(section: str) -> list[list[str]]:
    """Return the cells of a table, without its head."""
    found = re.findall(r"^\| `([^`]+)` \|(.*)\|$", SECTIONS[section], re.MULTILINE)
    return [[name, *(part.strip() for part in cells.split("|"))] for name, cells in found]


def test_every_hook_is_listed_with_its_arguments() -> None:
    hooks = [
        f"{name}({', '.join(inspect.signature(member).parameters)})"
        for name, member in vars(hookspecs).items()
        if name.startswith("fhirpub_")
    ]

    assert [row[0] for row in rows("Hooks")] == hooks


def test_every_class_that_a_plugin_may_import_has_a_section() -> None:
    listed = {name for name in SECTIONS if name != "Hooks"}

    assert listed == {class_.__name__ for class_ in CLASSES}


@pytest.mark.parametrize(
    "described", [*filter(dataclasses.is_dataclass, CLASSES)], ids=lambda each: each.__name__
)
def test_every_field_is_listed_and_whether_it_must_be_given(described: Any) -> None:
    fields = [
        [field.name, "yes" if _is_required(field) else ""]
        for field in dataclasses.fields(described)
    ]

    assert [row[:2] for row in rows(described.__name__)] == fields


def test_everything_that_a_rule_gets_is_listed() -> None:
    members = {name for name in dir(plugin_api.Entry) if not name.startswith("_")}

    assert {row[0] for row in rows("Entry")} == members


def test_every_row_says_what_it_means() -> None:
    assert all(row[-1] for section in SECTIONS for row in rows(section))


def test_every_name_that_a_plugin_may_import_is_there() -> None:
    assert [name for name in plugin_api.__all__ if not re.search(rf"`@?{name}\b", GUIDE)] == []


def _is_required(field: dataclasses.Field[Any]) -> bool:
    absent = dataclasses.MISSING
    return field.default is absent and field.default_factory is absent


def test_the_types_whose_schemas_the_service_has_are_listed() -> None:
    (listed,) = re.findall(r"The service has schemas of ([\w\s,]+)\. For any", GUIDE)
    types = load(SHELF)
    needed = {name for name, declared in types.items() if name not in declared.schemas}
    parts = {part.type for declared in types.values() for part in declared.parts}

    assert {*re.findall(r"[A-Z]\w+", listed)} == needed | parts


def test_the_first_page_names_every_type_of_the_shelf() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (named,) = re.findall(
        r"\*\*Resource types are plugins\*\*: (.*?), each enabled", readme, re.DOTALL
    )

    assert {*re.findall(r"[A-Z]\w+", named)} == {*load(SHELF)}
