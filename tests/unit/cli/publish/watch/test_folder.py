"""Which files of a watched folder are ready, and what is taken with them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import click
import pytest

from fhirpub.cli.publish.bulk.items import Item
from fhirpub.cli.publish.watch import folder as module
from fhirpub.cli.publish.watch.claim import SENDING, reason_file
from fhirpub.cli.publish.watch.folder import Settling, WatchedFolder
from tests.bodies import register_body
from tests.unit.cli.publish.services import service_at

REPORT = '{"resourceType":"Parameters","parameter":[]}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    (made / SENDING).mkdir(parents=True)
    return made


def watched(folder: Path, settle: float = 0.0) -> WatchedFolder:
    return WatchedFolder(folder, service_at(types={}, limit=1_000), Settling(settle))


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


def test_a_file_that_has_changed_grows_older_again(tmp_path: Path) -> None:
    file, settling = tmp_path / "a", Settling(5)
    file.touch()
    settling.age(file)
    file.write_bytes(b"more")
    settling.age(file)

    assert settling.age(file) > 0


def test_a_file_that_another_replaced_is_new(tmp_path: Path) -> None:
    file, other, settling = tmp_path / "a", tmp_path / "b", Settling(5)
    file.touch()
    other.touch()
    os.utime(file, ns=(1, 1))
    os.utime(other, ns=(1, 1))
    settling.age(file)

    other.replace(file)

    assert settling.age(file) == 0.0


def test_a_file_of_another_size_is_new_although_its_time_is_the_same(tmp_path: Path) -> None:
    file, settling = tmp_path / "a", Settling(5)
    file.touch()
    os.utime(file, ns=(1, 1))
    settling.age(file)
    older = settling.age(file)

    file.write_bytes(b"more")
    os.utime(file, ns=(1, 1))

    assert older > 0
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


def test_what_is_decided_is_only_moved_on_although_its_report_has_left(folder: Path) -> None:
    claim = folder / SENDING / "1"
    claim.mkdir()
    (claim / "a.pdf").write_text("pdf")
    (claim / ".plan").write_text(json.dumps({"folder": "done", "number": 1}))

    assert not list(watched(folder).items())

    assert (folder / "done" / "a.pdf").read_text() == "pdf"
    assert not (folder / "a.pdf").exists()


def test_each_report_that_was_begun_is_moved_on_or_goes_back_or_is_sent(folder: Path) -> None:
    decided = json.dumps({"folder": "done", "number": 1})
    for number, (name, plan) in enumerate(
        [("a.pdf", decided), ("b.pdf", ""), ("c.pdf", decided), ("d.pdf", ""), ("e.json", "")]
    ):
        claim = folder / SENDING / str(number)
        claim.mkdir()
        (claim / name).write_text(REPORT)
        if plan:
            (claim / ".plan").write_text(plan)

    assert taken([*watched(folder).items()]) == [["e.json"]]

    assert sorted(file.name for file in (folder / "done").iterdir()) == ["a.pdf", "c.pdf"]
    assert sorted(file.name for file in folder.glob("*.pdf")) == ["b.pdf", "d.pdf"]


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


def test_what_is_no_report_is_not_moved(folder: Path) -> None:
    for name in ("a.pdf", ".b.json", "c.reason.json"):
        (folder / name).touch()
    (folder / "f.json").symlink_to(folder / "a.pdf")

    list(watched(folder).items())

    assert sorted(file.name for file in folder.iterdir()) == sorted(
        [SENDING, "a.pdf", ".b.json", "c.reason.json", "f.json"]
    )


def test_a_file_that_came_back_between_two_rounds_is_new(folder: Path) -> None:
    file, found = folder / "a.pdf", watched(folder, settle=60)
    file.touch()
    os.utime(file, ns=(1, 1))
    found.settling.age(file)
    file.rename(folder.parent / "kept")

    list(found.items())
    (folder.parent / "kept").rename(file)

    assert found.settling.age(file) == 0.0


def test_a_folder_that_is_gone_cannot_be_watched(tmp_path: Path) -> None:
    with (
        pytest.raises(click.ClickException, match="cannot be watched: No such file or directory"),
        watched(tmp_path / "gone").locked(),
    ):
        pass


# What a report names by path.


def naming(folder: Path, *urls: str) -> WatchedFolder:
    """Return a folder with one report that names documents."""
    forms = [{"url": url} for url in urls]
    (folder / "r.json").write_text(json.dumps(register_body("R-1", presentedForm=forms)))
    return WatchedFolder(folder, service_at(), Settling(0.0))


def test_a_report_waits_for_a_document_that_it_names(folder: Path) -> None:
    found = naming(folder, "later.pdf")

    assert not list(found.items())
    assert (folder / "r.json").exists()

    (folder / "later.pdf").touch()
    assert taken([*found.items()]) == [["later.pdf", "r.json"]]


def test_a_report_waits_for_its_document_a_minute_at_most(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = naming(folder, "never.pdf")
    monkeypatch.setattr(module, "_DOCUMENT_SECONDS", 0.0)

    assert taken([*found.items()]) == [["r.json"]]


def test_documents_are_waited_for_a_minute() -> None:
    assert module._DOCUMENT_SECONDS == 60.0


@pytest.mark.parametrize(
    "url",
    [
        *("../x.pdf", "/etc/x.pdf", "other.json", ".hidden.pdf", "done/x.pdf", "refused/x.pdf"),
        *(f"{SENDING}/x.pdf", "link/x.pdf"),
    ],
)
def test_what_a_report_may_not_take_is_not_waited_for(folder: Path, url: str) -> None:
    found = naming(folder, url)
    (folder.parent / "x.pdf").touch()
    (folder / "link").symlink_to("..")

    (item,) = found.items()

    assert [file.name for file in item.base.iterdir()] == ["r.json"]
    assert (folder.parent / "x.pdf").exists()


def test_a_link_that_a_report_names_is_taken_as_it_is(folder: Path) -> None:
    found = naming(folder, "x.pdf")
    (folder.parent / "x.pdf").write_text("elsewhere")
    (folder / "x.pdf").symlink_to("../x.pdf")

    (item,) = found.items()

    assert (item.base / "x.pdf").is_symlink()
    assert (folder.parent / "x.pdf").read_text() == "elsewhere"


def test_documents_that_are_elsewhere_stay_there(folder: Path, tmp_path: Path) -> None:
    found = naming(folder, "x.pdf")
    (folder / "x.pdf").touch()
    found.service = replace(found.service, documents_from=tmp_path)

    assert taken([*found.items()]) == [["r.json"]]
    assert (folder / "x.pdf").exists()


def test_the_reason_of_an_earlier_refusal_is_taken_with_its_report(folder: Path) -> None:
    (folder / "a.json").write_text(REPORT)
    expected = reason_file(folder / "a.json")
    expected.write_text("{}")

    (names,) = taken([*watched(folder).items()])

    assert expected.name in names


def make_older(found: WatchedFolder, file: Path, seconds: float) -> None:
    """Let a file have been as it is for longer."""
    found.settling.age(file)
    signature, since = found.settling._seen[file]
    found.settling._seen[file] = signature, since - seconds


@pytest.mark.parametrize("younger", ["a.pdf", "a.reason.json"])
def test_a_report_waits_until_what_is_next_to_it_is_complete(folder: Path, younger: str) -> None:
    found = watched(folder, settle=60)
    for name in ("a.json", younger):
        (folder / name).write_text(REPORT)
    make_older(found, folder / "a.json", 61)

    assert not list(found.items())

    make_older(found, folder / younger, 61)
    assert taken([*found.items()]) == [sorted(["a.json", younger])]


@pytest.mark.parametrize(("seconds", "waits"), [(90, True), (115, True), (121, False)])
def test_the_minute_for_a_document_begins_when_the_report_is_complete(
    folder: Path, seconds: float, *, waits: bool
) -> None:
    found = naming(folder, "never.pdf")
    found.settling = Settling(60)
    make_older(found, folder / "r.json", seconds - 0.5)

    assert (list(found.items()) == []) is waits
