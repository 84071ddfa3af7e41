"""Every issue has a code of its own: each place states one, and each code has a place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from fhirpub.problems import ALL, ContentProblem

PACKAGE = Path(__file__).parents[2] / "fhirpub"
TABLES = PACKAGE / "problems"
MAKES_ISSUES = PACKAGE / "errors.py"
"""Has the functions that require a code."""


def nodes() -> Iterator[tuple[Path, ast.AST]]:
    """Yield every node of the package with its file, but for the tables of problems."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if TABLES not in path.parents:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                yield path, node


def test_the_service_makes_each_issue_by_a_function_that_requires_its_code() -> None:
    plain = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path, node in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Issue"
        and path != MAKES_ISSUES
    ]

    assert plain == []


def test_every_code_that_is_declared_is_sent_by_some_place() -> None:
    named = {node.attr for _path, node in nodes() if isinstance(node, ast.Attribute)}

    assert [problem for problem in ALL if problem.name not in named] == []


def test_only_issues_of_plugins_have_the_code_for_any_rule() -> None:
    named = [
        path
        for path, node in nodes()
        if isinstance(node, ast.Attribute) and node.attr == ContentProblem.RULE_BROKEN.name
    ]

    assert named == [MAKES_ISSUES]
