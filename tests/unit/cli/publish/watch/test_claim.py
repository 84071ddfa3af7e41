"""The files of a report are moved as one, whatever the process is killed at."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fhirpub.cli.publish.outcome import Outcome
from fhirpub.cli.publish.watch import claim
from fhirpub.cli.publish.watch.claim import Claim, _move, reason_of
from fhirpub.cli.publish.watch.folder import Settling, WatchedFolder
from tests.bodies import register_body
from tests.unit.cli.publish.services import service_at
from tests.waiting import wait_until

SERVICE = service_at("", types={}, limit=100_000)
CREATED = Outcome(file="a.json", result="created")
REFUSED = Outcome(file="a.json", result="refused", reason="400 Bad Request")
CHANGES = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir"}
BODY = register_body("a", presentedForm=[{"url": "scans/77.pdf"}])
FILES = {
    "a.json": json.dumps(BODY),
    "a.pdf": "sibling",
    "scans/77.pdf": "named",
    "a.reason.json": "{}",
}


class Killed(BaseException):
    """Ends everything, like a signal."""


_countdown = [0]


def _kill(event: str, _arguments: Any) -> None:
    if _countdown[0] and event in CHANGES:
        _countdown[0] -= 1
        if not _countdown[0]:
            raise Killed


sys.addaudithook(_kill)


@contextmanager
def killed_before_change(number: int) -> Iterator[None]:
    """Raise Killed instead of the change of that number to the file system."""
    _countdown[0] = number
    with suppress(Killed):
        yield
    _countdown[0] = 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def files_in(folder: Path) -> dict[str, str]:
    found = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file.relative_to(folder)): file.read_text() for file in found}


def publish(folder: Path, outcome: Outcome = CREATED) -> list[str]:
    """Publish what is ready with that outcome; return the names."""
    (folder / "sending").mkdir(exist_ok=True)
    sent = []
    for item in WatchedFolder(folder, SERVICE, Settling(0)).items():
        sent.append(item.file.name)
        Claim(folder, item.base).decide(outcome)
    return sent


def test_a_published_report_goes_to_done_with_its_documents(folder: Path) -> None:
    assert publish(folder) == ["a.json"]

    assert files_in(folder) == {
        f"done/{name}": text for name, text in FILES.items() if name != "a.reason.json"
    }


def test_a_refused_report_has_its_reason_next_to_it(folder: Path) -> None:
    publish(folder, REFUSED)

    found = files_in(folder / "refused")
    assert json.loads(found.pop("a.reason.json"))["issue"][0]["diagnostics"] == "400 Bad Request"
    assert found == {name: text for name, text in FILES.items() if name != "a.reason.json"}


def test_other_content_is_a_duplicate_with_the_address_of_the_first() -> None:
    outcome = Outcome(file="a", result="other content", id="7", location="https://x/7/_history/1")

    (issue,) = reason_of(outcome)["issue"]

    assert issue["code"] == "duplicate"
    assert issue["diagnostics"].endswith("see https://x/7")


@pytest.mark.parametrize("outcome", [CREATED, REFUSED])
def test_the_same_name_never_overwrites_an_earlier_file(folder: Path, outcome: Outcome) -> None:
    publish(folder, outcome)
    write(folder, {**FILES, "a.pdf": "another"})
    publish(folder, outcome)

    found = files_in(folder)
    where = "done" if outcome is CREATED else "refused"
    assert (found[f"{where}/a.pdf"], found[f"{where}/a-2.pdf"]) == ("sibling", "another")
    assert found[f"{where}/a-2.json"] == FILES["a.json"]
    assert (f"{where}/a-2.reason.json" in found) == (outcome is REFUSED)


@pytest.mark.parametrize("name", ["x" * 250 + ".json", "x" * 251 + ".xml", "é" * 125 + ".json"])
def test_the_longest_names_have_reasons_and_numbers_too(tmp_path: Path, name: str) -> None:
    for _ in range(2):
        write(tmp_path, {name: "{}"})
        publish(tmp_path, REFUSED)

    found = files_in(tmp_path / "refused")
    assert name in found
    assert len(found) == 4


def test_a_kill_before_any_change_loses_and_doubles_nothing(tmp_path: Path) -> None:
    number, was_killed = 0, True
    while was_killed:
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder, FILES)
        was_killed = True
        with killed_before_change(number):
            publish(folder)
            was_killed = False
        publish(folder)

        found = {name: text for name, text in files_in(folder).items() if "reason" not in name}
        expected = {f"done/{name}": text for name, text in FILES.items() if "reason" not in name}
        assert found == expected, number
        assert list((folder / "sending").iterdir()) == [], number
    assert number > 10


def test_what_arrives_after_a_kill_is_another_report(tmp_path: Path) -> None:
    for number in range(1, 12):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder, FILES)
        with killed_before_change(number):
            publish(folder)
        write(folder, {"a.json": FILES["a.json"] + " ", "a.pdf": "second", "scans/77.pdf": "new"})

        publish(folder)
        publish(folder)

        kept = list(files_in(folder).values())
        assert FILES["a.json"] + " " in kept, number
        assert {"second", "new"} <= set(kept), number


@pytest.mark.parametrize(
    "url",
    ["b.json", "done/a.pdf", "../secret.pdf", "link/secret.pdf", ".hidden.pdf", "/etc/hosts"],
)
def test_a_report_takes_nothing_that_is_not_a_document_of_the_folder(
    tmp_path: Path, url: str
) -> None:
    folder = tmp_path / "in"
    others = {"b.json": "{}", "done/a.pdf": "earlier", ".hidden.pdf": "hidden"}
    folder.mkdir()
    write(
        folder, {"a.json": json.dumps(register_body("a", presentedForm=[{"url": url}]))} | others
    )
    (tmp_path / "secret.pdf").write_text("secret")
    (folder / "link").symlink_to("..")
    watched = WatchedFolder(folder, SERVICE, Settling(0))

    assert list(watched._named(folder / "a.json")) == []


def test_files_that_are_no_reports_stay(tmp_path: Path) -> None:
    names = dict.fromkeys((".a.json", "a.json.tmp", "a.json.part", "b.pdf", "c.txt"), "")
    write(tmp_path, names)
    (tmp_path / "x.json").mkdir()
    (tmp_path / "link.json").symlink_to("/etc/hosts")

    assert publish(tmp_path) == []
    assert {file.name for file in tmp_path.iterdir()} >= {*names, "x.json", "link.json"}


def test_a_file_is_complete_when_it_has_not_changed_for_long_enough(tmp_path: Path) -> None:
    settling = Settling(0.05)
    (tmp_path / "a").write_text("1")
    ages = [settling.has_settled(tmp_path / "a")]
    (tmp_path / "a").write_text("12")
    ages.append(settling.has_settled(tmp_path / "a"))

    assert ages == [False, False]
    assert wait_until(lambda: settling.has_settled(tmp_path / "a"))


def test_a_report_waits_for_a_document_that_it_names(folder: Path) -> None:
    (folder / "scans" / "77.pdf").rename(folder / "later")

    assert publish(folder) == []
    (folder / "later").rename(folder / "scans" / "77.pdf")
    assert publish(folder) == ["a.json"]


def test_a_folder_has_one_watcher_at_a_time(tmp_path: Path) -> None:
    watched = WatchedFolder(tmp_path, SERVICE, Settling(0))

    with watched.locked() as first, watched.locked() as second:
        pass
    with watched.locked() as afterwards:
        pass

    assert (first, second, afterwards) == (True, False, True)


def test_the_reason_of_a_refusal_is_an_outcome_with_its_text() -> None:
    assert reason_of(REFUSED) == {
        "resourceType": "OperationOutcome",
        "issue": [{"severity": "error", "code": "processing", "diagnostics": "400 Bad Request"}],
    }


@pytest.mark.parametrize("is_free", [True, False])
def test_without_links_no_file_is_overwritten_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_free: bool
) -> None:
    def refuse(*_paths: Any, **_options: Any) -> None:
        raise PermissionError("links are not supported")

    monkeypatch.setattr(claim, "os", SimpleNamespace(**{**vars(os), "link": refuse}))
    file, target = tmp_path / "a.pdf", tmp_path / "done" / "a.pdf"
    file.write_text("new")
    target.parent.mkdir()
    if not is_free:
        target.write_text("old")

    _move(file, target)

    found = {one.name: one.read_text() for one in target.parent.iterdir()}
    assert found == ({"a.pdf": "new"} if is_free else {"a.pdf": "old", "a-2.pdf": "new"})
    assert not file.exists()


def test_a_report_that_was_published_before_goes_to_done(folder: Path) -> None:
    publish(folder, Outcome(file="a.json", result="replayed"))

    assert "done/a.json" in files_in(folder)


def test_all_files_of_a_report_get_one_number_if_one_of_them_would_meet_another(
    folder: Path,
) -> None:
    (folder / "done" / "scans").mkdir(parents=True)
    (folder / "done" / "scans" / "77.pdf").write_text("of another report")

    publish(folder)

    found = files_in(folder / "done")
    assert found == {
        "scans/77.pdf": "of another report",
        "scans/77-2.pdf": "named",
        "a-2.json": FILES["a.json"],
        "a-2.pdf": "sibling",
    }


def test_a_refusal_has_the_issues_that_the_service_gave() -> None:
    issue = {"severity": "error", "code": "invalid", "diagnostics": "why"}
    refused = Outcome(file="a", result="refused", reason="400 Bad Request", issues=[issue])
    conflict = Outcome(file="a", result="other content", reason="409 Conflict", issues=[issue])

    assert [reason_of(one)["issue"] for one in (refused, conflict)] == [[issue]] * 2


def test_documents_of_a_report_that_is_gone_go_back(folder: Path) -> None:
    (folder / "a.json").unlink()
    documents = [folder / "scans" / "77.pdf", folder / "a.pdf", folder / "never.pdf"]

    assert Claim.take(folder, folder / "a.json", documents) is None

    assert files_in(folder) == {name: text for name, text in FILES.items() if name != "a.json"}
    assert [*(folder / "sending").iterdir()] == []


def test_what_is_given_back_does_not_overwrite_what_has_come_since(folder: Path) -> None:
    claim = Claim.take(folder, folder / "a.json", [folder / "a.pdf"])
    write(folder, {"a.pdf": "another"})

    assert claim is not None
    claim.give_back()

    found = files_in(folder)
    assert (found["a.json"], found["a.pdf"]) == (FILES["a.json"], "another")
    assert found["a-2.pdf"] == "sibling"


def test_a_draft_of_a_plan_that_was_left_behind_goes_with_the_plan(tmp_path: Path) -> None:
    claim = Claim(tmp_path, tmp_path / "sending" / "1")
    claim.folder.mkdir(parents=True)
    (claim.folder / "a.json").touch()
    (claim.folder / ".plan.tmp").write_text("{")
    (claim.folder / ".plan").write_text(json.dumps({"folder": "done", "number": 1}))

    claim.move_on()

    assert (tmp_path / "done" / "a.json").exists()
    assert not claim.folder.exists()


def test_a_document_below_is_not_the_report(tmp_path: Path) -> None:
    claim = Claim(tmp_path, tmp_path / "sending" / "1")
    (claim.folder / "a").mkdir(parents=True)
    (claim.folder / "a" / "a.json").touch()

    assert claim.report is None

    (claim.folder / "b.json").touch()
    assert claim.report == claim.folder / "b.json"
