from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fhirpub.plugin_api import CompositionEvents
from fhirpub.plugin_host.loader import load_with_owners
from tests.conftest import LONGEST

ROOT = Path(__file__).parents[2]
BESIDE = sorted(path.parent.name for path in ROOT.glob("*/pyproject.toml"))
"""The folders of packages that are installed next to the service."""
SOURCES = sorted(
    path
    for folder in ("fhirpub", "plugins", *BESIDE)
    for path in (ROOT / folder).rglob("*.py")
    if path != ROOT / "client/fhirpub_client/models.py"  # generated
)
PLUGINS = sorted(
    path.name.removeprefix("fhirpub_") for path in (ROOT / "plugins").glob("fhirpub_*")
)
ASSERTING = [
    path
    for path in sorted((ROOT / "fhirpub" / "testing").rglob("*.py"))
    if any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(path.read_text())))
]
MAX_LINES = 350
MAX_MODULES_OF_A_FOLDER = 20
UNIT_TESTS = sorted((ROOT / "tests" / "unit").rglob("test_*.py"))
# They test no module of the package, but helpers of the tests, the schema generator, and records
# of several commands.
WITHOUT_A_MODULE = {
    "cli/test_records.py",
    "test_mongod_executable.py",
    "test_mongod_server.py",
    "test_proxy.py",
    "test_schemas.py",
}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    folders = ("plugins", *BESIDE, "__init__")
    return ".".join(part for part in parts if part not in folders)


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_a_module_opens_with_a_sentence(path: Path) -> None:
    first_line = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0]

    assert first_line.rstrip().endswith((".", "."))


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_a_module_is_short_enough_to_read(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_LINES


@pytest.mark.parametrize("path", ASSERTING, ids=module_of)
def test_an_assert_of_the_testing_kit_shows_what_it_compared(path: Path) -> None:
    module = importlib.import_module(module_of(path))

    # pytest has rewritten it: `fhirpub.testing` registered it in time.
    assert type(module.__loader__).__name__ == "AssertionRewritingHook"


@pytest.mark.parametrize("folder", sorted({path.parent for path in SOURCES}), ids=str)
def test_a_folder_has_few_enough_modules_to_survey(folder: Path) -> None:
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]

    assert len(modules) <= MAX_MODULES_OF_A_FOLDER


@pytest.mark.parametrize("path", UNIT_TESTS, ids=lambda path: path.stem)
def test_a_unit_test_mirrors_a_module(path: Path) -> None:
    place = path.relative_to(ROOT / "tests" / "unit")
    subject = path.stem.removeprefix("test_")
    siblings = {item.stem.strip("_") for item in (ROOT / "fhirpub" / place.parent).iterdir()}

    mirrored = any(subject == sibling or subject.startswith(f"{sibling}_") for sibling in siblings)
    assert mirrored != (str(place) in WITHOUT_A_MODULE)


def test_every_module_can_be_imported_alone_without_a_warning() -> None:
    modules = [module_of(path) for path in SOURCES if path.name != "__main__.py"]
    script = "import subprocess, sys, importlib; importlib.import_module(sys.argv[1])"

    def broken(module: str) -> bool:
        run = subprocess.run(
            [sys.executable, "-W", "error", "-c", script, module], cwd=ROOT, check=False
        )
        return run.returncode != 0

    # The leaves import all the others: a sample keeps this short, and the layers cover the rest.
    sample = [name for name in modules if name.count(".") == 1]
    assert [name for name in sample if broken(name)] == []


def test_the_core_names_no_resource_type_that_a_plugin_adds() -> None:
    outside = {"cli", "testing"}  # the demonstration, and the HTTP clients in tests
    # A default, the examples of a policy and of an event, and a scope.
    examples = {
        f"fhirpub/{name}.py"
        for name in (
            "config/plugins",
            "config/settings",
            "config/retention",
            "auth/clients",
            "administration/endpoints",
        )
    }
    package = ROOT / "fhirpub"
    core = [
        path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in outside
    ]
    report = load_with_owners(PLUGINS)
    types = [*report.types.values()]
    events = [
        resource_type.events
        for resource_type in types
        if isinstance(resource_type.events, CompositionEvents)
    ]
    names = {
        *report.owners.values(),
        *(
            name
            for resource_type in types
            for name in (resource_type.name, resource_type.entry_name)
        ),
        *(event.composition for event in events),
    }
    word = re.compile(rf"\b({'|'.join(sorted(names))})\b")

    naming = {
        f"{path.relative_to(ROOT)}"
        for path in core
        for text in strings_in(ast.parse(path.read_text()))
        if word.search(text)
    }

    assert len(names) > 3 * len(types)
    assert naming == examples


def test_every_plugin_of_the_shelf_is_held_to_the_contracts() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    beside = {f"fhirpub_{folder}" for folder in BESIDE}
    packages = {f"fhirpub_{name}" for name in PLUGINS}

    assert set(config["root_packages"]) == {"fhirpub", *beside, *packages}
    for contract in config["contracts"]:
        modules = contract.get("source_modules", []) + contract.get("forbidden_modules", [])
        named = {module for module in modules if module.startswith("fhirpub_")}
        named -= beside
        assert named in (set(), packages), contract["name"]


def test_the_service_names_no_broker() -> None:
    """A broker is a sink of a plugin: the service has no word of one."""
    broker = re.compile(r"amqp|rabbit|kafka|\bnats\b|mqtt", re.IGNORECASE)
    naming = [
        path
        for path in (ROOT / "fhirpub").rglob("*.py")
        if broker.search(path.read_text(encoding="utf-8"))
    ]

    assert naming == []


def strings_in(module: ast.Module) -> Iterator[str]:
    """Return every string in the code, except docstrings."""
    docstrings = {
        id(node.value)
        for node in ast.walk(module)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(module):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            yield node.value


def test_every_file_of_tests_that_is_to_come_first_is_there() -> None:
    assert [name for name in LONGEST if not (ROOT / name).is_file()] == []
