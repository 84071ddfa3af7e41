"""The guide for plugin authors, followed word by word in a fresh environment with the wheel."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Integrator
from tests.ports import free_port
from tests.rounds import ONLY_FULL

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(sh|python|diff)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PLACE = re.compile(r"`([\w./-]+\.py)`:\s*$")
REGISTER = "fhirpub-immunization/tests/register.json"
PATH = "/fhir/r4/Immunization"

pytestmark = [
    pytest.mark.skipif(shutil.which("curl") is None, reason="the guide needs curl"),
    ONLY_FULL,
]


@dataclass(frozen=True)
class Block:
    """A block of the guide, and its file if it is no command."""

    language: str
    text: str
    file: str


def blocks() -> list[Block]:
    """Return the blocks of the guide; consecutive blocks are about the same file."""
    text, found, file = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8"), [], ""
    for match in BLOCK.finditer(text):
        named = PLACE.search(text[: match.start()])
        file = named[1] if named else file
        found.append(Block(match[1], match[2], file))
    return found


@dataclass(frozen=True)
class Author:
    """An author in an empty folder, with bash and pip and without a network."""

    folder: Path
    wheel: Path

    @property
    def python(self) -> str:
        """The interpreter of the environment that the guide creates."""
        return str(self.folder / "venv" / "bin" / "python")

    def run(self, *commands: str) -> str:
        """Run commands; return their output."""
        environment = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_FIND_LINKS": str(self.wheel.parent),
            "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the opposite of its name
            "PIP_NO_DEPS": "1",
            "PIP_NO_INDEX": "1",
            "FHIRPUB_SERVER__PORT": str(free_port()),
        }
        script = "\n".join(["set -e", *commands])
        port = f"127.0.0.1:{environment['FHIRPUB_SERVER__PORT']}"
        script = script.replace("127.0.0.1:8080", port).replace("/path/to/clone", str(self.wheel))
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def edit(self, block: Block) -> None:
        """Write a new file, add to the end of a file, or change some of its lines."""
        path = self.folder / block.file
        if block.language == "diff":
            lines = block.text.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] != "+")
            after = "".join(line[1:] for line in lines if line[0] != "-")
            text = path.read_text()
            assert text.count(before) == 1
            path.write_text(text.replace(before, after))
        elif block.text.startswith(" "):
            path.write_text(f"{path.read_text()}\n{block.text}")
        else:
            assert not path.exists()
            path.write_text(block.text)

    def finds_what_fhirpub_needs(self) -> None:
        """Link our packages into the environment, except those that are installed as editable."""
        # Python 3.11 installs a setuptools there that cannot build wheels.
        self.run(f"{self.python} -m pip uninstall --quiet --yes setuptools")
        packages = Path(self.run(f"{self.python} -c 'import sysconfig as s; {PRINT_PURELIB}'"))
        ours = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
        (packages / "lent.pth").write_text("\n".join(ours))


PRINT_PURELIB = 'print(s.get_path("purelib"), end="")'


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel under test, or build one from the sources."""
    given = variable("FHIRPUB_TEST_WHEEL")
    if given:
        return Path(given)
    copy, dist = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("dist")
    for name in ("fhirpub", "plugins", "schemas", "setup.py", "pyproject.toml", "README.md"):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, copy / name)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(dist)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(copy)], check=True)
    return next(dist.glob("*.whl"))


@pytest.fixture(scope="module")
def author(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Author:
    return Author(tmp_path_factory.mktemp("author"), wheel)


@pytest.fixture(scope="module")
def output(author: Author) -> list[str]:
    """Follow the guide; return the output of its commands, part by part."""
    install, new, test, *rest = (block for block in blocks() if block.language == "sh")
    activate = ". venv/bin/activate"
    output = [author.run(install.text)]
    author.finds_what_fhirpub_needs()
    output.append(author.run(activate, new.text, test.text))
    for block in blocks():
        if block.language != "sh":
            author.edit(block)
    test_again, *serve = rest
    output.append(author.run(activate, test_again.text))
    output.append(author.run(activate, *(block.text for block in serve)))
    return output


@pytest.fixture(scope="module", autouse=True)
def elsewhere(author: Author) -> Iterator[None]:
    """Change to another folder than that of the sources: Python would find them first."""
    with contextlib.chdir(author.folder):
        yield


@pytest.fixture(scope="module")
def lab(output: list[str], author: Author) -> Iterator[Integrator]:
    """A client that may publish, at a service with the plugin enabled."""
    assert output
    folder = author.folder / "enabled"
    folder.mkdir()
    settings = {"plugins": {"enabled": ["diagnosticreport", "immunization"]}}
    with ServiceProcess(folder, settings=settings, python=author.python) as service:
        yield service.integrator()


@pytest.fixture
def body(author: Author) -> dict[str, Any]:
    """The example body of the new plugin."""
    read: dict[str, Any] = json.loads((author.folder / REGISTER).read_bytes())
    return read


def declared(lab: Integrator) -> set[str]:
    """Return the types that the CapabilityStatement declares."""
    return {
        resource_entry["type"]
        for resource_entry in lab.get("/metadata").json["rest"][0]["resource"]
    }


def test_a_new_plugin_installs_and_passes_its_tests_untouched(output: list[str]) -> None:
    assert re.search(r"\b[2-9][0-9] passed\b", output[1])
    assert "failed" not in output[1]


def test_one_whose_patient_stands_in_a_list_passes_its_tests_too(
    output: list[str], author: Author
) -> None:
    assert output
    commands = (
        "fhirpub plugin new Account",
        "pip install --quiet -e './fhirpub-account[test]'",
        "python -m pytest fhirpub-account",
    )

    assert re.search(r"\b[2-9][0-9] passed\b", author.run(". venv/bin/activate", *commands))


def test_the_rule_of_the_guide_is_proved_by_its_test(output: list[str]) -> None:
    assert re.search(r"\b[1-9][0-9]? passed\b", output[2])
    assert "failed" not in output[2]


def test_the_guide_leads_to_a_check_without_errors(output: list[str]) -> None:
    findings = [line.split() for line in output[3].splitlines() if line.startswith(("ok", "err"))]

    assert ["ok", "plugins", "immunization", "adds", "Immunization"] in findings
    assert {finding[0] for finding in findings} == {"ok"}


def test_the_guide_registers_an_immunization_and_finds_it(output: list[str]) -> None:
    assert "published as Immunization " in output[3]
    assert json.loads(output[3].splitlines()[-1])["total"] == 1


def test_what_the_guide_made_comes_from_the_wheel(output: list[str], author: Author) -> None:
    assert output
    home = author.run(f"{author.python} -c 'import fhirpub; print(fhirpub.__file__)'")

    assert home.startswith(str(author.folder / "venv"))


def test_the_new_type_is_registered_read_updated_and_found(
    lab: Integrator, body: dict[str, Any]
) -> None:
    registered = lab.register(body, type_name="Immunization")
    resource = registered.json["parameter"][0]["resource"]
    path = f"{PATH}/{resource['id']}"
    update = {"resourceType": "Immunization", "note": [{"text": "left arm"}]}

    patched = lab.patch(path, update, If_Match='W/"1"')
    read = lab.get(path).json
    found = lab.get(f"{PATH}?identifier=https://lab.example/immunization%7C1001").json

    assert (registered.status, patched.status) == (201, 204)
    assert (read["meta"]["versionId"], read["note"]) == ("2", [{"text": "left arm"}])
    assert [entry["resource"]["id"] for entry in found["entry"]] == [resource["id"]]


def test_the_new_rule_refuses_over_http(lab: Integrator, body: dict[str, Any]) -> None:
    body["parameter"][-1]["resource"]["expirationDate"] = "2025"

    answer = lab.register(body, type_name="Immunization")

    assert (answer.status, answer.issues[0]["code"]) == (422, "business-rule")


def test_an_enabled_type_is_declared_with_the_others(lab: Integrator) -> None:
    assert {"Immunization", "DiagnosticReport", "Patient"} <= declared(lab)


def test_an_installed_plugin_that_is_not_enabled_is_not_there(
    output: list[str], author: Author, body: dict[str, Any]
) -> None:
    assert output
    folder = author.folder / "not-enabled"
    folder.mkdir()

    with ServiceProcess(folder, python=author.python) as service:
        lab = service.integrator()
        registered = lab.register(body, type_name="Immunization")
        asked = [lab.get(path).status for path in (PATH, f"{PATH}/1", f"{PATH}/1/_history")]
        types = declared(lab)
        listed = {item["plugin"]: item["enabled"] for item in service.command("plugins")}

    assert (registered.status, registered.issues[0]["code"]) == (404, "not-supported")
    assert asked == [404, 404, 404]
    assert "Immunization" not in types
    assert listed["immunization"] is False
