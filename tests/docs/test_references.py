"""Citations in code and documents exist: rows of behaviour, decision records, and links."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.docs.project_files import ROOT, files

BEHAVIOUR = ROOT / "docs" / "behaviour"
RECORDS = ROOT / "docs" / "adr"
ROWS = [*range(1, 395), *range(400, 405), *range(410, 432), *range(435, 456)]
MAX_PAGE_LINES = 400
FIRST_COMMIT = dt.date(2026, 11, 21)

ROW = re.compile(r'(?:^\| |^### )<a id="(d-[0-9]+|r-[a-z])"></a>([DR]-[0-9A-Z]+) \S', re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]*)"></a>')
CITED_ROW = re.compile(r"\bD-([0-9]+)\b")
CITED_RECORD = re.compile(r"\bADR[\s-]+0*([0-9]+)\b")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
RANGE = re.compile(r"D-([0-9]+)(?: to D-([0-9]+))?")
MODULE = re.compile(r"`((?:bench|conf|docs|fhirpub|plugins|schemas|scripts|tests)/[\w./-]*)`")

PAGES = sorted(page for page in BEHAVIOUR.glob("*.md") if page.name != "index.md")
ADRS = sorted(RECORDS.glob("[0-9]*.md"))
DOCUMENTS = [path for path in files() if path.suffix == ".md"]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def rows_of(page: Path) -> list[int]:
    found = (int(label[2:]) for _, label in ROW.findall(text_of(page)) if label[0] == "D")
    return sorted(found)


def all_rows() -> list[int]:
    return sorted(number for page in PAGES for number in rows_of(page))


def number_of(record: Path) -> int:
    return int(record.name[:4])


def section(record: Path, title: str) -> str:
    """Return the text under a heading of the second level."""
    return text_of(record).partition(f"\n## {title}\n")[2].partition("\n## ")[0].strip()


def cited(pattern: re.Pattern[str]) -> Iterator[tuple[str, int]]:
    """Yield each citation with its file."""
    for path in files():
        for number in pattern.findall(text_of(path)):
            yield name_of(path), int(number)


def anchors_of(document: Path) -> set[str]:
    """Return the anchors of a document as GitHub creates them, and those named explicitly."""
    text = FENCED.sub("", text_of(document))
    counted: Counter[str] = Counter()
    anchors = set(ANCHOR.findall(text))
    for heading in HEADING.findall(text):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"<[^>]*>", "", heading))
        slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
        anchors.add(f"{slug}-{counted[slug]}" if counted[slug] else slug)
        counted[slug] += 1
    return anchors


def test_every_row_is_there_once() -> None:
    assert all_rows() == [*ROWS]


def test_the_general_rules_are_there() -> None:
    labels = [label for _, label in ROW.findall(text_of(BEHAVIOUR / "index.md"))]

    assert labels == ["R-A", "R-B", "R-C"]


@pytest.mark.parametrize("page", [*PAGES, BEHAVIOUR / "index.md"], ids=name_of)
def test_every_anchor_is_the_label_of_its_row(page: Path) -> None:
    rows = ROW.findall(text_of(page))

    assert [anchor for anchor, label in rows if anchor != label.lower()] == []
    assert len(rows) == len(ANCHOR.findall(text_of(page)))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_index_names_the_rows_of_each_page(page: Path) -> None:
    (listed,) = re.findall(
        rf"\]\({re.escape(page.name)}\) \| (.*) \|$", text_of(BEHAVIOUR / "index.md"), re.MULTILINE
    )
    numbers = [
        number
        for first, last in RANGE.findall(listed)
        for number in range(int(first), int(last or first) + 1)
    ]

    assert sorted(numbers) == rows_of(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_of_behaviour_is_too_long_to_read(page: Path) -> None:
    assert len(text_of(page).splitlines()) <= MAX_PAGE_LINES


def test_every_cited_row_exists() -> None:
    known = set(all_rows())

    assert not {(name, number) for name, number in cited(CITED_ROW) if number not in known}


def test_every_cited_record_exists() -> None:
    known = {number_of(record) for record in ADRS}
    citations = set(cited(CITED_RECORD))

    assert not {(name, number) for name, number in citations if number not in known}
    assert any(name.startswith("fhirpub/") for name, _ in citations)


def test_records_are_numbered_without_gaps() -> None:
    assert [number_of(record) for record in ADRS] == [*range(1, len(ADRS) + 1)]


@pytest.mark.parametrize("record", ADRS, ids=name_of)
def test_every_record_is_named_by_its_number_and_a_title(record: Path) -> None:
    assert re.fullmatch(r"[0-9]{4}(-[a-z0-9]+)+\.md", record.name)
    assert re.match(rf"# ADR {number_of(record)}: \S", text_of(record))


@pytest.mark.parametrize("record", ADRS, ids=name_of)
def test_every_record_has_a_status_and_a_date(record: Path) -> None:
    assert section(record, "Status") in {"proposed", "accepted", "superseded"}
    assert dt.date.fromisoformat(section(record, "Date")) >= FIRST_COMMIT


@pytest.mark.parametrize("record", ADRS, ids=name_of)
def test_every_record_has_context_options_a_decision_and_consequences(record: Path) -> None:
    titles = [title.split(" for ")[0] for title in re.findall(r"(?m)^## (.+)$", text_of(record))]

    assert [*dict.fromkeys(titles)] == [
        "Status",
        "Date",
        "Context",
        "Options",
        "Decision",
        "Consequences",
    ]
    assert all(section(record, title) for title in ("Context", "Decision", "Consequences"))
    assert re.search(r"(?m)^\|.*[0-9].*\|$", text_of(record)), "no option has a cost"


def test_the_index_of_records_lists_each_with_its_title_and_status() -> None:
    listed = re.findall(
        r"^\| ([0-9]+) \| \[(.*)\]\((.*)\) \| (\w+) \|$",
        text_of(RECORDS / "README.md"),
        re.MULTILINE,
    )

    assert listed == [
        (
            str(number_of(record)),
            text_of(record).partition(": ")[2].partition("\n")[0],
            record.name,
            section(record, "Status"),
        )
        for record in ADRS
    ]


@pytest.mark.parametrize("document", [*ADRS, *PAGES], ids=name_of)
def test_every_file_that_a_record_or_a_page_names_exists(document: Path) -> None:
    missing = [path for path in MODULE.findall(text_of(document)) if not (ROOT / path).exists()]

    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    dead = []
    for target, anchor in LINK.findall(FENCED.sub("", text_of(document))):
        if ":" in target:
            continue
        path = (document.parent / target).resolve() if target else document
        if not path.exists() or (anchor and anchor not in anchors_of(path)):
            dead.append(f"{target}#{anchor}")

    assert not dead
