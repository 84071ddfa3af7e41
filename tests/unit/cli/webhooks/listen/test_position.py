"""The file that remembers where a run stopped."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from fhirpub.cli.webhooks.listen.position import Position, usual_file


def test_a_position_is_there_for_the_next_run(tmp_path: Path) -> None:
    file = tmp_path / "state" / "listen.json"
    with Position.locked(file) as first:
        assert (first.endpoint, first.sequence) == ("", 0)
        first.move("e", 7)
        assert (first.endpoint, first.sequence) == ("e", 7)

    with Position.locked(file) as second:
        assert (second.endpoint, second.sequence) == ("e", 7)


def test_a_position_that_moved_replaces_its_file_and_leaves_no_other(tmp_path: Path) -> None:
    file = tmp_path / "listen.json"
    with Position.locked(file) as position:
        position.move("e", 1)
        before = file.stat().st_ino
        position.move("e", 2)

        assert file.stat().st_ino != before

    assert sorted(one.name for one in tmp_path.iterdir()) == ["listen.json", "listen.json.lock"]


def test_a_second_run_is_refused_while_the_first_has_the_file(tmp_path: Path) -> None:
    file = tmp_path / "listen.json"
    with (
        Position.locked(file),
        pytest.raises(click.ClickException, match="another --name"),
        Position.locked(file),
    ):
        pass


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"endpoint": "e", "sequence": "x"}'])
def test_a_file_that_holds_something_else_is_not_overwritten(content: str, tmp_path: Path) -> None:
    file = tmp_path / "listen.json"
    file.write_text(content)

    with pytest.raises(click.ClickException, match="holds no position"), Position.locked(file):
        pass

    assert file.read_text() == content


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with (
        pytest.raises(click.ClickException, match="cannot be used"),
        Position.locked(tmp_path / "file" / "listen.json"),
    ):
        pass


def test_each_service_and_client_has_a_file_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    places = [("https://a", "x"), ("https://b", "x"), ("https://a", "y")]

    files = {usual_file("laptop", base, client) for base, client in places}

    assert len(files) == 3
    assert {file.parent for file in files} == {tmp_path / "fhirpub"}


def test_the_usual_folder_is_below_the_home_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    file = usual_file("laptop", "https://a", "x")

    assert file.parent == tmp_path / ".local" / "state" / "fhirpub"
    assert file.name.startswith("listen-laptop-")
