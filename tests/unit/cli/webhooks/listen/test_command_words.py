"""What the words of ``fhirpub webhooks listen`` mean."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from fhirpub.cli.webhooks.listen import command
from fhirpub.cli.webhooks.listen.command import _check_name, _host_name, _Place, _Words
from fhirpub.cli.webhooks.listen.position import usual_file
from fhirpub.config.settings import Config


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("0", (0, None)),
        ("123456789", (123_456_789, None)),
        ("9" * 15, (10**15 - 1, None)),
        ("1970-01-01T00:00:01Z", (None, 1_000)),
    ],
)
def test_a_place_is_a_sequence_or_a_time(text: str, place: object) -> None:
    assert _Place().convert(text, None, None) == place


@pytest.mark.parametrize("text", ["9" * 16, "-1", "1.5", "soon"])
def test_another_text_is_no_place(text: str) -> None:
    with pytest.raises(click.BadParameter, match="must be a time such as"):
        _Place().convert(text, None, None)


def test_each_pattern_of_events_is_taken_once_in_its_order() -> None:
    words = _Words(
        config=Config(),
        forward_to=None,
        events=" b.*, a.created,,b.* ",
        start=(None, None),
        skip_refused=False,
        name="desk",
        state=None,
        as_json=False,
    )

    assert words.patterns == ["b.*", "a.created"]


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("desk", "desk"),
        ("Desk-7.lab.example", "desk-7"),
        ("_My_PC_", "my-pc"),
        ("ü.example", "listen"),
        ("a" * 90, "a" * 64),
    ],
)
def test_the_name_of_a_machine_becomes_one_of_a_queue(
    monkeypatch: pytest.MonkeyPatch, host: str, name: str
) -> None:
    monkeypatch.setattr(command, "socket", SimpleNamespace(gethostname=lambda: host))

    found = _host_name()

    assert found == name
    assert _check_name(click.Context(click.Command("x")), click.Option(["--x"]), found) == name


def test_each_client_has_a_position_of_its_own(
    run: Any, stub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    stub.token_answer = (401, {}, {"error": "invalid_client"})

    for client in ("a", "b"):
        variables = {"FHIRPUB_CLIENT_ID": client, "FHIRPUB_CLIENT_SECRET": "s"}
        words = ("webhooks", "listen", "--url", stub.address, "--name", "desk")
        assert "no token: 401" in run(*words, **variables).stderr

    locks = {file.name for file in (tmp_path / "state" / "fhirpub").iterdir()}
    assert locks == {
        f"{usual_file('desk', stub.address, client).name}.lock" for client in ("a", "b")
    }
