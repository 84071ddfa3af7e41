"""The command line as a whole: its help teaches, its errors are one clear line."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from fhirpub import __version__
from fhirpub.cli.commands import fhirpub
from fhirpub.config.loader import reference
from fhirpub.config.settings import Config
from tests.bodies import register_body

SOON = "serverSelectionTimeoutMS=200"
"""A command waits ten seconds for a server, through an election, unless the URL asks for less."""


def leaves(group: click.Group, *path: str) -> list[tuple[str, ...]]:
    found = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = (*path, name)
        found += leaves(command, *inner) if isinstance(command, click.Group) else [inner]
    return found


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = fhirpub
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


PROSE = {("serve",), ("dispatch",), ("demo",)}
ONLY_JSON = {("audit", "export"), ("erase", "export")}
WITHOUT_SETTINGS = {
    ("endpoint", "verify"),
    ("admin", "new-key"),
    ("admin", "new-caller"),
    ("console", "login"),
}


def test_the_commands_are_those_that_other_tools_rely_on() -> None:
    assert {" ".join(leave) for leave in leaves(fhirpub)} == {
        "serve",
        "sample",
        "demo",
        "publish",
        "tenant add",
        "tenant list",
        "tenant show",
        "tenant rename",
        "tenant disable",
        "tenant enable",
        "transfer",
        "plugin new",
        "client add",
        "client list",
        "client show",
        "client rotate",
        "client scopes",
        "client disable",
        "client edit",
        "client add-person",
        "client invite",
        "client remove-passkey",
        "console login",
        "token revoke",
        "patient relink",
        "patient show",
        "patient conflicts",
        "quota set",
        "quota show",
        "dispatch",
        "webhooks listen",
        "webhooks trigger",
        "endpoint add",
        "endpoint list",
        "endpoint show",
        "endpoint set",
        "endpoint ping",
        "endpoint verify-endpoint",
        "endpoint rotate",
        "endpoint rotate-token",
        "endpoint enable",
        "endpoint pause",
        "endpoint disable",
        "endpoint rm",
        "endpoint stats",
        "endpoint reseal",
        "endpoint verify",
        "deliveries list",
        "deliveries show",
        "deliveries replay",
        "erase report",
        "erase patient",
        "erase expired",
        "erase list",
        "erase export",
        "erase resume",
        "hold add",
        "hold list",
        "hold release",
        "restore",
        "audit list",
        "audit export",
        "audit verify",
        "admin new-key",
        "admin new-caller",
        "keys list",
        "keys rotate",
        "secrets reseal",
        "secrets new-key",
        "check",
        "plugins",
        "config",
    }


@pytest.mark.parametrize("path", leaves(fhirpub), ids=" ".join)
def test_every_command_explains_itself_and_takes_the_shared_options(path: tuple[str, ...]) -> None:
    command = command_at(path)
    options = {word for parameter in command.params for word in parameter.opts}

    assert command.help
    assert ("--config" in options) == (path not in WITHOUT_SETTINGS)
    assert ("--json" in options) == (path not in PROSE | ONLY_JSON)
    assert not options & {"--secret", "--client-secret", "--password"}


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_help_shows_the_first_five_minutes(words: list[str]) -> None:
    shown = CliRunner().invoke(fhirpub, words).output

    for step in ("fhirpub demo", "tenant add", "client add", "fhirpub serve", "fhirpub publish"):
        assert step in shown


@pytest.mark.parametrize("path", leaves(fhirpub), ids=" ".join)
def test_help_fits_the_terminal(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(command_at(path), ["--help"], terminal_width=80).output

    assert max(map(len, shown.splitlines())) <= 99


def test_the_version_is_that_of_the_package(run_program: Any) -> None:
    assert run_program("--version").stdout == f"fhirpub {__version__}\n"


def test_config_prints_the_reference(run_program: Any) -> None:
    assert run_program("config").stdout == reference()


def test_config_as_json_is_what_is_in_force(run_program: Any, tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text("[server]\nport = 9\n")

    shown = run_program(
        "config", "--config", "f.toml", "--json", FHIRPUB_SERVER__HOST="::1"
    ).stdout

    server = dataclasses.replace(Config().server, port=9, host="::1")
    assert json.loads(shown) == dataclasses.asdict(Config(server=server))


def test_trouble_of_the_program_is_one_line_on_standard_error(run_program: Any) -> None:
    done = run_program("tenant", "disable", "no-such-id")

    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: there is no tenant no-such-id; `fhirpub tenant list`")


@pytest.mark.parametrize(
    ("words", "environment", "message"),
    [
        (["serve", "--config", "none.toml"], {}, "none.toml: cannot be read"),
        (["tenant", "list"], {"FHIRPUB_SERVER__PRT": "1"}, "did you mean port?"),
        (["plugins"], {"FHIRPUB_PLUGINS__ENABLED": "nothing-such"}, "there is no plugin"),
        (["tenant", "list"], {"FHIRPUB_STORAGE__URL": "oracle://x"}, "must be sqlite:///"),
        (["tenant", "disable", "no-such-id"], {}, "no tenant no-such-id; `fhirpub tenant list`"),
        (["client", "add", "--tenant", "no-such-id"], {}, "there is no tenant no-such-id"),
        (["client", "list", "--tenant", "no-such-id"], {}, "there is no tenant no-such-id"),
        (["deliveries", "show", "none"], {}, "no delivery none; `fhirpub deliveries list`"),
        (["client", "rotate", "no-such-id"], {}, "there is no client no-such-id"),
        (["client", "disable", "no-such-id"], {}, "there is no client no-such-id"),
    ],
)
def test_trouble_is_one_line_on_standard_error(
    run: Any, words: list[str], environment: dict[str, str], message: str
) -> None:
    done = run(*words, **environment)

    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ")
    assert message in line


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("words", [["tenant", "add", "Lab"], ["--help"]])
def test_a_disk_without_room_for_the_answer_is_reported(
    tmp_path: Path, environment: dict[str, str], words: list[str]
) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fhirpub", *words],
            cwd=tmp_path,
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert done.returncode == 1
    assert done.stderr == b"Error: the disk is full, and the output is lost\n"


@pytest.mark.parametrize("words", [["tenant", "disable"], ["endpoint", "list", "--tenant"]])
def test_words_that_are_not_utf_8_are_wrong_usage(
    tmp_path: Path, environment: dict[str, str], words: list[str]
) -> None:
    line: list[str | bytes] = [sys.executable, "-m", "fhirpub", *words, b"\xff"]

    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, check=False)

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == b"Error: the command line has words that are not UTF-8"


def test_ctrl_c_before_all_is_loaded_ends_it_without_a_word(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    interrupting = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    (tmp_path / "click.py").write_text(interrupting)  # found instead of the real one

    done = subprocess.run(
        [sys.executable, "-m", "fhirpub", "tenant", "list"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


def test_ctrl_c_while_python_shuts_down_leaves_the_exit_status(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    script = """if True:
        import os, signal
        from fhirpub.__main__ import main
        class Last:
            kill, number, pid = os.kill, signal.SIGINT, os.getpid()
            def __del__(self):
                Last.kill(self.pid, self.number)
        last = Last()
        main()
    """

    done = subprocess.run(
        [sys.executable, "-c", script, "--version"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")


def test_a_copy_is_made_without_standard_error(
    run_program: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    run_program("tenant", "add", "Lab")
    script = '"$0" -m fhirpub transfer --to sqlite:///copy.db 2>&-'

    done = subprocess.run(
        ["sh", "-c", script, sys.executable], cwd=tmp_path, env=environment, check=False
    )

    assert done.returncode == 0
    assert (tmp_path / "copy.db").exists()


def test_a_report_without_credentials_and_standard_input_is_wrong_usage(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    body = register_body("R-1")
    (tmp_path / "report.json").write_text(json.dumps(body))
    script = '"$0" -m fhirpub publish report.json <&-'

    done = subprocess.run(
        ["sh", "-c", script, sys.executable], cwd=tmp_path, env=environment, check=False
    )

    assert done.returncode == 2


@pytest.mark.parametrize(
    "words",
    [
        ["nothing"],
        ["tenant", "add"],
        ["tenant", "add", " "],
        ["serve", "--port", "x"],
        ["serve", "--host", ""],
        ["client"],
    ],
)
def test_wrong_usage_exits_with_2(run: Any, words: list[str]) -> None:
    done = run(*words)

    assert done.returncode == 2
    assert done.stdout == ""


def test_the_plugins_that_are_on_and_off_are_listed(run_program: Any) -> None:
    listed = {load["plugin"]: load for load in json.loads(run_program("plugins", "--json").stdout)}

    if not listed:
        pytest.skip("fhirpub is not installed, so no plugin is known")
    assert listed["diagnosticreport"]["enabled"] is True
    assert listed["diagnosticreport"]["resource_types"] == "DiagnosticReport"
    assert listed["diagnosticreport"]["hooks"] == "fhirpub_resource_types"
    assert listed["diagnosticreport"]["api_version"] == 2
    assert listed["diagnosticreport"]["types_off"] == ""
    assert listed["encounter"]["enabled"] is False
    assert listed["encounter"]["resource_types"] == ""
    assert listed["encounter"]["types_off"] == "Encounter"


@pytest.mark.parametrize(
    "words",
    [
        "config --json",
        "check",
        "tenant list",
        "serve --port 0",
        "transfer --to sqlite:///copy.db",
        f"transfer --to mongodb://user:secret-word@127.0.0.1:1/x?{SOON}",
        "transfer --to mongodb://user:secret-word@127.0.0.1:1",
        "transfer --to mongodb:user:secret-word@127.0.0.1:1/x",
        "transfer --to //user:secret-word@127.0.0.1:1/x",
    ],
)
def test_no_command_shows_the_password_of_the_store(run_program: Any, words: str) -> None:
    url = f"mongodb://user:secret-word@127.0.0.1:1/x?w=1&{SOON}"
    settings = {"FHIRPUB_STORAGE__DEADLINE_SECONDS": "0.2", "FHIRPUB_LOGS__LEVEL": "debug"}
    if "secret-word" not in words:
        settings["FHIRPUB_STORAGE__URL"] = url

    done = run_program(*words.split(), **settings)

    assert done.stdout + done.stderr
    assert "secret-word" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if words == "config --json":
        shown = json.loads(done.stdout)["storage"]["url"]
        assert shown == url.replace("secret-word", "***")
