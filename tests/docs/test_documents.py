"""The documents agree with the code and with one another."""

from __future__ import annotations

import re
import tomllib

import pytest

import fhirpub
from tests.docs.project_files import ROOT, files

QUOTED_PATH = re.compile(
    r"`((?:\.ci|bench|conf|docs|fhirpub|schemas|scripts|tests)/[\w./-]*)`",
)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_changelog_begins_with_this_version() -> None:
    releases = re.findall(
        r"^## \[([0-9][^\]]*)\] - ([0-9]{4}-[0-9]{2}-[0-9]{2})$",
        read("CHANGELOG.md"),
        re.MULTILINE,
    )

    assert releases[0] == (fhirpub.__version__, fhirpub.RELEASED)


@pytest.mark.parametrize("words", [("..", "shared"), ("", "work", "")])
def test_the_project_stands_on_its_own(words: tuple[str, ...]) -> None:
    place = re.compile(rf"(?<![\w./-]){re.escape('/'.join(words))}")

    naming = [
        str(path.relative_to(ROOT))
        for path in files()
        if place.search(path.read_text(encoding="utf-8"))
    ]

    assert not naming


def test_the_architecture_draws_the_layers_that_are_checked() -> None:
    contracts = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["name"] == "layers"]

    _, _, section = read("ARCHITECTURE.md").partition("\n## Layers\n")
    drawn = section.partition("```text\n")[2].partition("```")[0]

    assert drawn.splitlines() == layers


def test_the_licence_is_the_one_that_the_package_names() -> None:
    text = read("LICENSE")

    assert 'license="Apache-2.0"' in read("setup.py")
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert text.rstrip().endswith("limitations under the License.")


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_every_path_that_a_document_names_exists(name: str) -> None:
    quoted = QUOTED_PATH.findall(read(name))

    assert quoted
    assert not [item for item in quoted if not (ROOT / item).exists()]
