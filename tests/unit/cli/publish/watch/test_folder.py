"""Which files of a watched folder are ready, and what is taken with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fhirpub.cli.publish.bulk.items import Item
from fhirpub.cli.publish.service import Service
from fhirpub.cli.publish.watch.claim import SENDING
from fhirpub.cli.publish.watch.folder import Settling, WatchedFolder

REPORT = '{"resourceType":"Parameters","parameter":[]}'


def service(**changes: Path) -> Service:
    return Service(
        base="https://api.example", grant={}, cacert=None, types={}, limit=1_000, **changes
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    (made / SENDING).mkdir(parents=True)
    return made


def watched(folder: Path, settle: float = 0.0) -> WatchedFolder:
    return WatchedFolder(folder, service(), Settling(settle))


def taken(items: list[Item]) -> list[list[str]]:
    """Return the names of the files that were taken with each report."""
    return sorted(sorted(file.name for file in item.base.rglob("*")) for item in items)


# Whether a file is complete.


def test_a_missing_file_has_no_age(tmp_path: Path) -> None:
    assert Settling(0).age(tmp_path / "none") == -1.0


def test_a_missing_file_has_not_settled_even_at_once(tmp_path: Path) -> None:
    assert not Settling(0).has_settled(tmp_path / "none")


def test_a_file_that_is_seen_first_has_just_changed(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    settling = Settling(0)

    assert settling.age(tmp_path / "a") == 0.0
    assert settling.has_settled(tmp_path / "a")


def test_a_file_grows_older_until_it_changes(tmp_path: Path) -> None:
    file, settling = tmp_path / "a", Settling(5)
    file.touch()
    settling.age(file)
    older = settling.age(file)

    file.write_bytes(b"more")

    assert older > 0
    assert settling.age(file) == 0.0


def test_a_file_that_another_replaced_is_new(tmp_path: Path) -> None:
    file, other, settling = tmp_path / "a", tmp_path / "b", Settling(5)
    file.touch()
    other.touch()
    os.utime(file, ns=(1, 1))
    os.utime(other, ns=(1, 1))
    settling.age(file)

    other.replace(file)

    assert settling.age(file) == 0.0


def test_a_file_that_came_back_is_new(tmp_path: Path) -> None:
    file, settling = tmp_path / "a", Settling(5)
    file.touch()
    os.utime(file, ns=(1, 1))
    settling.age(file)
    kept = tmp_path / "kept"
    file.rename(kept)
    settling.forget_missing()
    kept.rename(file)

    assert settling.age(file) == 0.0


def test_files_that_are_there_are_not_forgotten(tmp_path: Path) -> None:
    file, settling = tmp_path / "a", Settling(5)
    file.touch()
    settling.age(file)

    settling.forget_missing()

    assert settling.age(file) > 0


# What is taken.


def test_a_report_is_taken_out_of_the_folder(folder: Path) -> None:
    (folder / "a.json").write_text(REPORT)

    (item,) = watched(folder).items()

    assert (item.file.name, item.file.parent, item.has_siblings) == ("a.json", item.base, True)
    assert item.base.parent == folder / SENDING
    assert not (folder / "a.json").exists()


def test_a_report_that_may_grow_stays(folder: Path) -> None:
    (folder / "a.json").write_text(REPORT)

    assert not list(watched(folder, settle=60).items())
    assert (folder / "a.json").exists()


def test_what_is_no_report_stays(folder: Path) -> None:
    for name in ("a.pdf", ".b.json", "c.reason.json", "d.txt"):
        (folder / name).touch()
    (folder / "e.json").mkdir()
    (folder / "f.json").symlink_to(folder / "a.pdf")
    (folder / "sub").mkdir()
    (folder / "sub" / "g.json").write_text(REPORT)

    assert not list(watched(folder).items())


def test_the_document_of_its_name_is_taken_with_a_report(folder: Path) -> None:
    for name in ("a.json", "a.pdf", "b.pdf"):
        (folder / name).write_text(REPORT)

    assert taken([*watched(folder).items()]) == [["a.json", "a.pdf"]]


def test_a_report_that_was_begun_comes_first_and_from_where_it_is(folder: Path) -> None:
    (folder / "a.json").write_text(REPORT)
    (first,) = watched(folder).items()
    (folder / "b.json").write_text(REPORT)

    found = [item.file.name for item in watched(folder).items()]

    assert found == ["a.json", "b.json"]
    assert first.file.exists()


def test_documents_without_their_report_go_back(folder: Path) -> None:
    claim = folder / SENDING / "1"
    claim.mkdir()
    (claim / "a.pdf").write_text("pdf")

    assert not list(watched(folder).items())
    assert (folder / "a.pdf").read_text() == "pdf"
    assert not claim.exists()


def test_what_waits_is_counted(folder: Path) -> None:
    for name in ("a.json", "b.json"):
        (folder / name).write_text(REPORT)
    (folder / SENDING / ".lock").touch()
    (folder / SENDING / ".hidden").mkdir()
    found = watched(folder)
    before = found.waiting()

    list(found.items())

    assert (before, found.waiting()) == (0, 2)


def test_a_folder_without_a_place_for_what_is_sent_has_nothing_waiting(tmp_path: Path) -> None:
    assert watched(tmp_path).waiting() == 0


def test_one_process_at_a_time_has_the_folder(folder: Path) -> None:
    with watched(folder).locked() as first, watched(folder).locked() as second:
        assert (first, second) == (True, False)

    with watched(folder).locked() as third:
        assert third
