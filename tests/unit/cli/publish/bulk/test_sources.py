"""Folders, patterns and files lead to the reports in them, and to nothing outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from fhirpub.cli.publish.bulk.lines import Reading
from fhirpub.cli.publish.bulk.sources import is_many, is_report, source_of

READING = Reading(100, stopped=lambda: False, read=lambda _size: None)
NAMES = ("a.json", "b.XML", "sub/c.json", "a.pdf", ".d.json", ".git/e.json", "f.reason.json")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in NAMES:
        file = tmp_path / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "in"


def found(argument: str) -> dict[str, str]:
    """Return what an argument leads to: names, each with its problem or none."""
    return {
        str(item.file): item.problem
        for item in source_of(argument, all_lines=False).items(READING)
    }


def test_a_folder_has_the_reports_below_it(folder: Path) -> None:
    assert sorted(found("in")) == ["in/a.json", "in/b.XML", "in/sub/c.json"]


def test_a_folder_that_is_named_like_a_report_is_a_folder(folder: Path) -> None:
    (folder / "x.json").mkdir()
    (folder / "x.json" / "y.json").touch()

    assert "in/x.json/y.json" in found("in")
    assert "in/x.json" not in found("in")


def test_links_out_of_the_folder_are_problems(folder: Path) -> None:
    (folder.parent / "other.json").touch()
    (folder / "out.json").symlink_to("../other.json")
    (folder / "inside.json").symlink_to("a.json")
    (folder / "lost.json").symlink_to("nowhere")
    (folder / "years").symlink_to("..")

    problems = {name: text for name, text in found("in").items() if text}

    assert problems == {
        "in/out.json": "is a link that leads out of the folder",
        "in/lost.json": "is a link that leads out of the folder",
        "in/years": "is a link to a folder, which is not followed",
    }
    assert found("in")["in/inside.json"] == ""


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("in/*.json", ["in/a.json", "in/f.reason.json"]),
        ("in/**/c.json", ["in/sub/c.json"]),
        ("in/su*", ["in/sub/c.json"]),
        ("none/*.json", []),
    ],
)
def test_a_pattern_has_what_it_matches(folder: Path, pattern: str, names: list[str]) -> None:
    assert sorted(found(pattern)) == names
    assert source_of(pattern, all_lines=False).matches_any() is bool(names)


def test_what_two_parts_of_a_pattern_match_is_found_once(folder: Path) -> None:
    items = source_of("in/**", all_lines=False).items(READING)

    assert sorted(str(item.file) for item in items) == [
        *("in/a.json", "in/a.pdf", "in/b.XML", "in/f.reason.json", "in/sub/c.json"),
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("a.json", True), ("A.Json", True), ("a.xml", True), ("a.json.pdf", False)),
        *((".a.json", False), ("a.reason.json", False), ("A.Reason.JSON", False)),
    ],
)
def test_a_report_is_known_by_its_name_in_any_case(name: str, *, expected: bool) -> None:
    assert is_report(name) is expected


def test_only_reports_of_a_folder_have_siblings(folder: Path) -> None:
    (item,) = source_of("in/a.json", all_lines=False).items(READING)
    (of_pattern,) = source_of("in/a.j*", all_lines=False).items(READING)

    assert (item.has_siblings, of_pattern.has_siblings) == (False, True)


def test_every_report_of_a_folder_is_counted(folder: Path) -> None:
    assert sum(source_of("in", all_lines=False).count()) == 3
    assert sum(source_of("in/*", all_lines=False).count()) == 5


def test_what_cannot_be_sent_counts_as_well(folder: Path) -> None:
    (folder / "lost.json").symlink_to("nowhere")
    source = source_of("in", all_lines=False)

    assert sum(source.count()) == len(list(source.items(READING))) == 4


def test_names_that_are_not_unicode_are_found(folder: Path) -> None:
    (folder / "caf\udce9.json").touch()

    assert "in/caf\udce9.json" in found("in")


@pytest.mark.parametrize(
    ("argument", "expected"),
    [("in", True), ("in/*.json", True), ("x.ndjson", True), ("in/a.json", False), ("-", False)],
)
def test_what_is_named_alone_is_not_many(folder: Path, argument: str, expected: object) -> None:
    (folder.parent / "x.ndjson").touch()

    assert is_many(argument) is expected


def test_a_report_that_is_linked_has_siblings_as_others_have(folder: Path) -> None:
    (folder / "inside.json").symlink_to("a.json")

    items = source_of("in", all_lines=False).items(READING)

    assert {item.file.name: item.has_siblings for item in items} == {
        "a.json": True,
        "b.XML": True,
        "c.json": True,
        "inside.json": True,
    }


def test_a_link_that_is_no_report_is_passed_over(folder: Path) -> None:
    (folder / "inside.pdf").symlink_to("a.pdf")
    (folder / "out.pdf").symlink_to("../other.pdf")

    assert not [name for name in found("in") if name.endswith(".pdf")]


@pytest.mark.parametrize(
    ("name", "all_lines", "kind"),
    [
        ("x.ndjson", False, "lines"),
        ("x.JSONL", False, "lines"),
        ("a.json", False, "file"),
        ("a.json", True, "lines"),
        ("-", False, "lines"),
    ],
)
def test_the_kind_of_a_source_is_that_of_its_name(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: str,
    *,
    all_lines: bool,
) -> None:
    monkeypatch.chdir(folder)
    for made in ("x.ndjson", "x.JSONL"):
        (folder / made).write_text("{}\n")

    source = source_of(name, all_lines=all_lines)

    assert (source.kind, source.is_stdin) == (kind, name == "-")


def test_the_bytes_of_lines_are_known_before_they_are_read(folder: Path) -> None:
    (folder / "x.ndjson").write_text("{}\n{}\n")
    (folder / "y.ndjson").write_text("{}\n")

    def size(argument: str) -> int:
        return source_of(argument, all_lines=False).line_bytes

    assert [size("in/x.ndjson"), size("in/*"), size("in"), size("-")] == [6, 9, 0, 0]


def test_a_folder_that_cannot_be_listed_is_a_problem(folder: Path) -> None:
    source = source_of("in", all_lines=False)
    folder.rename(folder.parent / "moved")

    (item,) = source.items(READING)

    assert item.problem == "cannot be listed: No such file or directory"


def test_a_folder_below_that_cannot_be_listed_is_named_and_the_rest_is_read(folder: Path) -> None:
    items = source_of("in", all_lines=False).items(READING)
    first = next(items)
    (folder / "sub").rename(folder.parent / "moved")

    problems = {str(item.file): item.problem for item in (first, *items)}

    assert problems == {
        "in/a.json": "",
        "in/b.XML": "",
        "in/sub": "cannot be listed: No such file or directory",
    }


@pytest.mark.parametrize("pattern", ["*.json", "*/x.json", "*/x/a.json", "**/x/*/a.json"])
def test_the_base_of_a_pattern_is_the_folder_above_its_first_sign(
    tmp_path: Path, pattern: str
) -> None:
    assert source_of(str(tmp_path / pattern), all_lines=False).base == tmp_path


def test_a_file_of_lines_counts_for_none_and_another_file_for_one(tmp_path: Path) -> None:
    for name in ("a.ndjson", "b.json"):
        (tmp_path / name).touch()
    names = ("a.ndjson", "b.json", "*", "*.ndjson")
    sources = [source_of(str(tmp_path / name), all_lines=False) for name in names]

    assert [sum(source.count()) for source in sources] == [0, 1, 1, 0]
