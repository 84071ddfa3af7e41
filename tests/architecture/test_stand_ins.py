"""What stands in for a function of Python's library is seen by one module alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))
SHARED = {"asyncio", "gc", "os", "threading", "time"}
"""Modules whose functions a service calls all the time, in another thread of the same process."""
WHOLE_PROCESS = {"tests/collector.py"}
"""It keeps the garbage collector of this process from running at all, as it is meant to."""


def replaced_in(source: str) -> Iterator[int]:
    """Find the lines that replace a function of such a module for the whole process."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"setattr", "delattr"}
            and node.args
            and names_shared(node.args[0])
        ):
            yield node.lineno


def names_shared(target: ast.expr) -> bool:
    if isinstance(target, ast.Constant):  # "package.module.os.link"
        return bool(SHARED & {*str(target.value).split(".")[:-1]})
    return bool(SHARED & {*re.split(r"\W", ast.unparse(target))}) and not isinstance(
        target, ast.Call
    )


@pytest.mark.parametrize(
    ("line", "is_shared"),
    [
        ('monkeypatch.setattr(asyncio, "sleep", sleep)', True),
        ('monkeypatch.delattr(os, "memfd_create")', True),
        ('monkeypatch.setattr(retries.asyncio, "sleep", sleep)', True),
        ('monkeypatch.setattr("os.link", refuse)', True),
        ('monkeypatch.setattr("fhirpub.app.secret_checks.asyncio.sleep", pause)', True),
        ('monkeypatch.setattr(retries, "asyncio", SimpleNamespace(sleep=sleep))', False),
        ('monkeypatch.setattr(asyncio.get_running_loop(), "time", clock)', False),
        ('monkeypatch.setattr(loop_lag, "asyncio", loop)', False),
        ('monkeypatch.setattr("fhirpub.app.time", 1)', False),
    ],
)
def test_a_function_that_other_threads_call_is_noticed(line: str, *, is_shared: bool) -> None:
    assert bool([*replaced_in(line)]) is is_shared


def test_no_test_replaces_what_a_service_in_another_thread_calls() -> None:
    found = {
        f"{name}:{line}: replace the name in the module that is tested"
        for path in TESTS
        if (name := str(path.relative_to(ROOT))) not in WHOLE_PROCESS
        for line in replaced_in(path.read_text())
    }

    assert found == set()
