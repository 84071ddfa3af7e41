"""The documents agree with the code and with one another."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import fhirpub

ROOT = Path(__file__).parents[2]
TEXTS = {".cfg", ".in", ".json", ".md", ".mjs", ".py", ".sh", ".toml", ".typed", ".txt", ""}
ELSEWHERE = {"build", "dist", "fhirpub-data", "fhirpub-demo", "__pycache__"}
QUOTED_PATH = re.compile(
    r"`((?:\.ci|bench|conf|docs|fhirpub|schemas|scripts|tests)/[\w./-]*)`",
)
CITATION = re.compile(r"\bD-([0-9]+)\b")
LAST_DECISION = 280


def files() -> Iterator[Path]:
    """Return every text file of the project, without what tools have left in its folder."""
    for path in sorted(ROOT.rglob("*")):
        folders = path.relative_to(ROOT).parts[:-1]
        strange = any(
            each in ELSEWHERE or each.endswith(".egg-info") or (each[0] == "." and each != ".ci")
            for each in folders
        )
        if path.is_file() and not strange and path.suffix in TEXTS:
            yield path


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def decided() -> list[int]:
    rows = re.findall(r"^\| ([0-9]+) \|", read("docs/decisions.md"), re.MULTILINE)
    return [int(each) for each in rows]


def test_the_changelog_begins_with_this_version() -> None:
    releases = re.findall(
        r"^## \[([0-9][^\]]*)\] - ([0-9]{4}-[0-9]{2}-[0-9]{2})$",
        read("CHANGELOG.md"),
        re.MULTILINE,
    )

    assert releases[0] == (fhirpub.__version__, fhirpub.RELEASED)


def test_every_decision_has_one_row() -> None:
    assert sorted(decided()) == [*range(1, LAST_DECISION + 1)]


def test_the_rules_behind_the_decisions_are_there() -> None:
    text = read("docs/decisions.md")

    assert re.search(r"^## 0\. ", text, re.MULTILINE)
    assert re.findall(r"^\| (R-[A-Z]) \|", text, re.MULTILINE) == ["R-A", "R-B", "R-C"]


def test_every_cited_decision_exists() -> None:
    known = set(decided())

    unknown = {
        (str(path.relative_to(ROOT)), int(number))
        for path in files()
        for number in CITATION.findall(path.read_text(encoding="utf-8"))
        if int(number) not in known
    }

    assert not unknown


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
    (layers,) = [each["layers"] for each in contracts if each["name"] == "layers"]

    _, _, section = read("ARCHITECTURE.md").partition("\n## Layers\n")
    drawn = section.partition("```text\n")[2].partition("```")[0]

    assert drawn.splitlines() == layers


def test_links_between_documents_lead_somewhere() -> None:
    dead = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in files()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
        if not (path.parent / target).exists()
    ]

    assert not dead


def test_the_licence_is_the_one_that_the_package_names() -> None:
    text = read("LICENSE")

    assert 'license="Apache-2.0"' in read("setup.py")
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert text.rstrip().endswith("limitations under the License.")


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_every_path_that_a_document_names_exists(name: str) -> None:
    quoted = QUOTED_PATH.findall(read(name))

    assert quoted
    assert not [each for each in quoted if not (ROOT / each).exists()]
