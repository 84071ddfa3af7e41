"""Where commands act: on the store of the settings, or on the service at a URL."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from fhirpub.administration import tenants
from fhirpub.administration.erasure import holds
from fhirpub.cli.administration.target import (
    Caller,
    Target,
    confirm_final,
    with_key,
    with_target,
    with_yes,
)
from fhirpub.errors import ConfigurationError
from tests.unit.cli.bureau import KEY, Bureau


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "f.toml"
    file.write_text(f'[storage]\nurl = "sqlite:///{tmp_path}/fhirpub.db"\n')
    return file


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FHIRPUB_ADMIN_URL", raising=False)
    monkeypatch.setenv("FHIRPUB_ADMIN_KEY", KEY)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@click.command()
@with_key
@with_yes
@with_target
def shown(target: Target, key: str | None, *, yes: bool) -> None:
    click.echo(f"{target.url} {key} {yes}")


def test_without_a_url_the_store_of_the_settings_is_meant(file: Path, tmp_path: Path) -> None:
    target = Target(file, "", None)

    added = target.call(tenants.ADD, name="Lab")

    assert [one["id"] for one in target.call(tenants.LIST)] == [added["id"]]
    assert (tmp_path / "fhirpub.db").exists()


def test_a_url_is_used_in_place_of_the_store(file: Path, tmp_path: Path, bureau: Bureau) -> None:
    bureau.answer(tenants.ADD, {"id": "t-1"})

    assert Target(file, bureau.url, None).call(tenants.ADD, name="Lab") == {"id": "t-1"}
    assert bureau.only() == ("tenant add", {"name": "Lab"})
    assert not (tmp_path / "fhirpub.db").exists()


def test_an_option_is_stronger_than_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FHIRPUB_ADMIN_URL", "https://variable.example")

    assert Target(None, "", None).url == "https://variable.example"
    assert Target(None, "https://option.example", None).url == "https://option.example"


def test_the_file_of_a_key_is_used(bureau: Bureau, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("of-file")
    bureau.answer(tenants.LIST, [])

    Target(None, bureau.url, tmp_path / "key").call(tenants.LIST)

    assert bureau.asked[0].headers["Authorization"] == "Bearer of-file"


def test_wrong_arguments_are_refused_as_words_of_the_command(file: Path, tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="name: must be one line"):
        Target(file, "", None).call(tenants.ADD, name=" ")

    assert not (tmp_path / "fhirpub.db").exists()


def test_an_operation_that_only_reads_creates_no_store(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Target(file, "", None).call(holds.LIST, tenant="t-1")

    path = tmp_path / "fhirpub.db"
    assert str(refused.value) == (
        f"[storage] url: there is no store at {path}: correct the url, or create it by "
        "`fhirpub check`"
    )
    assert not path.exists()


def test_without_a_store_and_settings_the_option_that_names_them_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigurationError) as refused:
        Target(None, "", None).call(holds.LIST, tenant="t-1")

    path = tmp_path / "fhirpub-data" / "fhirpub.db"
    advice = "name the file of the settings with --config"
    assert str(refused.value) == f"[storage] url: there is no store at {path}: {advice}"
    assert not path.parent.exists()


@pytest.mark.parametrize(
    ("file", "url", "key", "words"),
    [
        (None, "", None, ""),
        (Path("/etc/f.toml"), "", None, " --config /etc/f.toml"),
        (Path("my lab.toml"), "", None, " --config 'my lab.toml'"),
        (None, "https://a.example", Path("k"), " --admin-url https://a.example --admin-key k"),
    ],
)
def test_a_command_to_run_next_has_the_options_of_this_one(
    file: Path | None, url: str, key: Path | None, words: str
) -> None:
    assert Target(file, url, key).repeated("fhirpub check") == f"fhirpub check{words}"


def test_several_operations_may_create_a_store_unless_they_must_not(
    file: Path, tmp_path: Path
) -> None:
    async def work(call: Caller) -> Any:
        return await call(tenants.LIST)

    with pytest.raises(ConfigurationError, match="there is no store"):
        Target(file, "", None).run(work, creates_store=False)
    assert not (tmp_path / "fhirpub.db").exists()
    assert Target(file, "", None).run(work) == []


def test_a_key_file_that_is_created_is_noted_once(file: Path) -> None:
    target = Target(file, "", None)

    target.call(tenants.LIST)
    target.call(tenants.LIST)

    (note,) = target.notes
    assert note.startswith("Created ")
    assert note.endswith(", the key of the secrets in the store: keep a copy.")


def test_nothing_is_noted_where_the_key_was_there(file: Path) -> None:
    Target(file, "", None).call(tenants.LIST)
    target = Target(file, "", None)

    target.call(tenants.LIST)

    assert target.notes == []


def test_the_options_become_one_target() -> None:
    words = ["--admin-url", "https://a.example", "--key", "k", "--yes"]

    assert CliRunner().invoke(shown, words).stdout == "https://a.example k True\n"
    assert CliRunner().invoke(shown, []).stdout == " None False\n"


def test_nothing_is_asked_where_yes_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    monkeypatch.setattr(sys, "stderr", Terminal())

    confirm_final("Remove it?", yes=True)

    assert sys.stdin.read() == "n\n"


@pytest.mark.parametrize("stream", ["stdin", "stderr"])
def test_nothing_is_asked_where_no_person_can_answer(
    monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(sys, stream, io.StringIO())

    confirm_final("Remove it?", yes=False)


def test_a_person_may_stop_what_cannot_be_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    monkeypatch.setattr(sys, "stderr", errors := Terminal())

    with pytest.raises(click.Abort):
        confirm_final("Remove it?", yes=False)

    assert errors.getvalue().startswith("Remove it? This cannot be undone. [y/N]: ")
