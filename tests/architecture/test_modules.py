from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path for folder in ("fhirpub", "plugins") for path in (ROOT / folder).rglob("*.py")
)
MOST_LINES = 450


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part not in ("plugins", "__init__"))


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_a_module_opens_with_a_sentence(path: Path) -> None:
    first_line = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0]

    assert first_line.rstrip().endswith((".", "."))


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_a_module_is_short_enough_to_read(path: Path) -> None:
    if path.parent.name == "testing":
        return  # a contract is one list of facts

    assert len(path.read_text().splitlines()) <= MOST_LINES


def test_every_module_can_be_imported_alone_without_a_warning() -> None:
    modules = [module_of(path) for path in SOURCES if path.name != "__main__.py"]
    script = "import subprocess, sys, importlib; importlib.import_module(sys.argv[1])"

    def broken(module: str) -> bool:
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", script, module], cwd=ROOT, check=False
        )
        return run.returncode != 0

    # The leaves import all the others: a sample keeps this short, the layers do the rest.
    sample = [each for each in modules if each.count(".") == 1]
    assert [each for each in sample if broken(each)] == []


def test_the_core_names_no_resource_type_that_a_plugin_adds() -> None:
    outside = {"cli", "testing"}  # the demonstration, and what speaks to a service in tests
    core = [each for each in (ROOT / "fhirpub").rglob("*.py") if each.parent.name not in outside]

    named = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in core
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.lower() == "diagnosticreport"
    ]

    assert [each for each in named if not each.startswith("fhirpub/config.py")] == []
