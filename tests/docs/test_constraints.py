"""Exact versions with hashes, and lower bounds without known vulnerabilities."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "constraints"
FILES = sorted(FOLDER.glob("*.txt"))
_PIN = re.compile(r"^([a-z0-9._-]+)==([^ ;\\]+)(?: ; [^\\]+)?(?: \\)?$")
_HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


@dataclass(frozen=True)
class Vulnerability:
    package: str
    ids: tuple[str, ...]
    fixed: Version
    what: str
    source: str

    def __str__(self) -> str:
        return f"{self.package} {self.ids[0]}"


def _listed() -> list[Vulnerability]:
    entries = tomllib.loads((FOLDER / "vulnerabilities.toml").read_text())["vulnerability"]
    return [
        Vulnerability(
            item["package"],
            tuple(item["ids"]),
            Version(item["fixed"]),
            item["what"],
            item["source"],
        )
        for item in entries
    ]


VULNERABILITIES = _listed()


def arguments_of_setup() -> dict[str, Any]:
    """Return the lists of requirements in setup.py, by their names."""
    tree = ast.parse((ROOT / "setup.py").read_text())
    (call,) = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setup"
    )
    wanted = ("install_requires", "extras_require")
    return {item.arg: ast.literal_eval(item.value) for item in call.keywords if item.arg in wanted}


def of_projects() -> Iterator[Requirement]:
    """Yield the requirements to build all packages, and to run those beside fhirpub."""
    for file in (ROOT / "pyproject.toml", *ROOT.glob("*/pyproject.toml")):
        tables = tomllib.loads(file.read_text())
        yield from map(Requirement, tables["build-system"]["requires"])
        yield from map(Requirement, tables.get("project", {}).get("dependencies", ()))


def required() -> list[Requirement]:
    """Return all that an installation or a build may choose the version of."""
    setup = arguments_of_setup()
    named = [*setup["install_requires"], *setup["extras_require"]["test"]]
    return [*map(Requirement, named), *of_projects()]


def lower_bound(requirement: Requirement) -> Version | None:
    bounds = [Version(item.version) for item in requirement.specifier if item.operator == ">="]
    return max(bounds, default=None)


def pins(file: Path) -> dict[str, Version]:
    found = (_PIN.match(line) for line in file.read_text().splitlines())
    return {match[1]: Version(match[2]) for match in found if match}


@pytest.mark.parametrize("known", VULNERABILITIES, ids=str)
def test_a_lower_bound_excludes_what_is_known_to_be_vulnerable(known: Vulnerability) -> None:
    bounds = {
        str(requirement): lower_bound(requirement)
        for requirement in required()
        if canonicalize_name(requirement.name) == known.package
    }

    assert bounds
    assert [name for name, bound in bounds.items() if bound is None or bound < known.fixed] == []


@pytest.mark.parametrize("known", VULNERABILITIES, ids=str)
def test_no_exact_version_is_known_to_be_vulnerable(known: Vulnerability) -> None:
    vulnerable = [
        file.name for file in FILES if pins(file).get(known.package, known.fixed) < known.fixed
    ]

    assert vulnerable == []


@pytest.mark.parametrize("known", VULNERABILITIES, ids=str)
def test_a_vulnerability_is_listed_with_its_source(known: Vulnerability) -> None:
    assert all(re.fullmatch(r"(CVE|GHSA|PYSEC)-[\w-]+", name) for name in known.ids)
    assert known.source.startswith("https://")
    assert known.what


def test_no_vulnerability_is_listed_twice() -> None:
    names = [name for known in VULNERABILITIES for name in known.ids]

    assert len(names) == len(set(names)) > 40


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_exact_version_has_a_hash_and_no_line_is_anything_else(file: Path) -> None:
    heading, *lines = file.read_text().splitlines()

    assert heading.startswith("# Exact versions and hashes")
    assert [line for line in lines if not _PIN.match(line) and not _HASH.match(line)] == []
    unhashed = [
        line
        for line, following in zip(lines, [*lines[1:], ""], strict=True)
        if _PIN.match(line) and not _HASH.match(following)
    ]
    assert unhashed == []


def test_the_exact_versions_are_those_that_the_requirements_allow() -> None:
    tested = pins(FOLDER / "test.txt")
    setup = arguments_of_setup()
    named = [*setup["install_requires"], *setup["extras_require"]["test"]]
    others = [item for item in of_projects() if item.name != "fhirpub"]
    wrong = [
        str(requirement)
        for requirement in (*map(Requirement, named), *others)
        if tested.get(canonicalize_name(requirement.name), Version("0"))
        not in requirement.specifier
    ]

    assert wrong == [], "run: scripts/release --constraints"


def test_what_serves_is_what_was_tested() -> None:
    tested = pins(FOLDER / "test.txt")

    assert pins(FOLDER / "service.txt").items() <= tested.items()
    needed = map(Requirement, arguments_of_setup()["install_requires"])
    assert {canonicalize_name(item.name) for item in needed} <= pins(FOLDER / "service.txt").keys()
