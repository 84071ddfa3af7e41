"""The diagrams are accessible, are shown to readers, need no network, and agree with the code."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fhirpub.webhooks.management.delivery_log import SHOWN_STATES
from fhirpub.webhooks.policy.retry_policy import BREAKER_STATES
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT
from tests.docs.project_files import ROOT, files

FOLDER = ROOT / "docs" / "diagrams"
DIAGRAMS = sorted(FOLDER.iterdir())
SVG = "{http://www.w3.org/2000/svg}"
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")


def root_of(name: str) -> ET.Element:
    return ET.fromstring((FOLDER / name).read_text(encoding="utf-8"))


def texts_of(name: str, css_class: str | None = None) -> set[str]:
    """Return the texts of a diagram, of all elements or of those with a class."""
    root = root_of(name)
    elements = [*root.iter(f"{SVG}text"), *root.iter(f"{SVG}tspan")]
    return {
        "".join(element.itertext()).strip()
        for element in elements
        if css_class is None or css_class in element.get("class", "").split()
    }


def images() -> list[tuple[str, Path]]:
    """Return the images of all pages, each with its alternative text."""
    pages = [path for path in files() if path.suffix == ".md"]
    return [
        (text, (page.parent / target).resolve())
        for page in pages
        for text, target in IMAGE.findall(page.read_text(encoding="utf-8"))
        if "://" not in target
    ]


def test_there_are_diagrams() -> None:
    assert {path.name for path in DIAGRAMS} >= {
        "delivery.svg",
        "registration.svg",
        "report-states.svg",
    }
    assert {path.suffix for path in DIAGRAMS} == {".svg"}


@pytest.mark.parametrize("element", ["title", "desc"])
@pytest.mark.parametrize("path", DIAGRAMS, ids=lambda path: path.name)
def test_every_diagram_has_a_title_and_a_description(path: Path, element: str) -> None:
    root = root_of(path.name)
    (found,) = root.findall(f"{SVG}{element}")

    assert (found.text or "").strip()
    assert root.get("role") == "img"
    assert found.get("id") in root.get("aria-labelledby", "").split()


@pytest.mark.parametrize("path", DIAGRAMS, ids=lambda path: path.name)
def test_every_diagram_is_shown_by_a_page(path: Path) -> None:
    alternatives = [text for text, target in images() if target == path]

    assert alternatives
    assert all(alternatives)


@pytest.mark.parametrize("path", DIAGRAMS, ids=lambda path: path.name)
def test_every_diagram_is_legible_in_light_and_dark_and_needs_no_network(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    sizes = [int(size) for size in re.findall(r"font(?:-size)?: ([0-9]+)px", text)]

    assert "prefers-color-scheme: dark" in text
    assert 'class="paper" width="700"' in text
    assert min(sizes) >= 12
    assert re.findall(r"https?://[^\"\s]+", text) == [SVG.strip("{}")]


def test_the_states_of_a_report_are_those_of_the_plugin() -> None:
    statuses = DIAGNOSTIC_REPORT.create_statuses | DIAGNOSTIC_REPORT.update_statuses

    assert statuses <= texts_of("report-states.svg", "name")


def test_a_dot_marks_each_status_of_a_registration() -> None:
    text = (FOLDER / "report-states.svg").read_text(encoding="utf-8")
    marked = re.findall(r'class="dot"[^>]*/><text class="name"[^>]*>([a-z-]+)<', text)

    assert set(marked) == DIAGNOSTIC_REPORT.create_statuses


def test_the_life_of_a_delivery_has_every_state() -> None:
    states = texts_of("delivery.svg", "name") | texts_of("delivery.svg", "word")

    assert states >= {*SHOWN_STATES, *BREAKER_STATES}
