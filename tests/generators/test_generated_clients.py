"""Clients that generators make of the OpenAPI document, as the guide says, call the service.

This downloads generators and runs compilers for minutes: ``scripts/test --full`` runs it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.loader import variable
from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.testing.service import RunningService
from tests.bodies import SYSTEM, register_body, self_contained
from tests.shelf import SHELF

HERE = Path(__file__).parent
GUIDE = (HERE.parents[1] / "docs" / "integrators.md").read_text(encoding="utf-8")
SECTION = GUIDE.partition("\n## With a generated client\n")[2].partition("\n## ")[0]
BLOCKS: list[str] = re.findall(r"^```sh\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
PREPARE, *GENERATE = BLOCKS
MYPY = (sys.executable, "-m", "mypy", "--config-file=", "--strict")
STRICT = "--strict --noUncheckedIndexedAccess --exactOptionalPropertyTypes".split()
RUN_TYPESCRIPT = """
import { text } from "node:stream/consumers";
import { publish } from "./publish.mjs";
console.log(JSON.stringify(await publish(JSON.parse(await text(process.stdin)))));
"""

pytestmark = pytest.mark.skipif(
    not variable("FHIRPUB_TEST_FULL"), reason="scripts/test --full generates clients"
)


@dataclass(frozen=True)
class Language:
    """How a client in one language is generated, checked and run."""

    name: str
    generate: str
    tools: tuple[str, ...]
    source: str
    """The file that the program is copied to."""
    check: tuple[str, ...]
    run: tuple[str, ...]
    ours: str
    """What is in every line of the check about the program, not about the generated code."""
    known: tuple[str, ...] = field(default=())
    """Warnings of the generator that the guide mentions."""


LANGUAGES = (
    Language(
        name="python",
        generate=GENERATE[0],
        tools=(),
        source="publish.py",
        check=(*MYPY, "--python-executable", "tools/bin/python", "publish.py"),
        run=("tools/bin/python", "publish.py"),
        ours="publish.py:",
    ),
    Language(
        name="typescript",
        generate=GENERATE[1],
        tools=("node", "npm"),
        source="publish.mts",
        check=("npx", "tsc", *STRICT, "--module", "nodenext", "--target", "es2022", "publish.mts"),
        run=("node", "--input-type=module", "--eval", RUN_TYPESCRIPT),
        ours="",
    ),
    Language(
        name="go",
        generate=GENERATE[2],
        tools=("go",),
        source="main.go",
        check=("go", "vet", "./..."),
        run=("go", "run", "."),
        ours="",
        known=("OpenAPI 3.1 support is still in beta", "type (reserved word) cannot be used"),
    ),
)


@dataclass(frozen=True)
class Client:
    """What a generator wrote, and a folder with its client."""

    language: Language
    folder: Path
    said: str

    def start(self, *command: str, given: Any = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            input=json.dumps(given),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service with every resource type of the included plugins."""
    names = SHELF
    config = Config(plugins=PluginsConfig(enabled=names))
    with RunningService(tmp_path_factory.mktemp("complete"), config=config) as running:
        yield running


@pytest.fixture(scope="module", params=LANGUAGES, ids=lambda language: str(language.name))
def client(
    request: pytest.FixtureRequest,
    complete: RunningService,
    tmp_path_factory: pytest.TempPathFactory,
) -> Client:
    language: Language = request.param
    for tool in ("bash", "curl", *language.tools):
        if shutil.which(tool) is None:
            pytest.skip(f"a client in {language.name} needs {tool}, which is not on the PATH")
    folder = tmp_path_factory.mktemp(language.name)
    script = f"set -e\nBASE={complete.base_url}\n{PREPARE}\n{language.generate}"
    made = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    said = made.stdout + made.stderr
    assert made.returncode == 0, said
    program = f"publish{Path(language.source).suffix}"
    shutil.copy(HERE / program, folder / language.source)
    return Client(language, folder, said)


def test_the_generator_warns_of_nothing_else(client: Client) -> None:
    warned = [
        line
        for line in client.said.splitlines()
        if re.search(r"warn|error|skipp|unsupported", line, re.IGNORECASE)
        and not line.startswith(("npm ", "[main] INFO "))
        and not any(text in line for text in client.language.known)
    ]

    assert warned == []


def test_a_program_has_types_for_each_of_its_results(client: Client) -> None:
    checked = client.start(*client.language.check)

    about = [line for line in checked.stdout.splitlines() if client.language.ours in line]
    assert about == [], checked.stdout
    assert client.language.ours or checked.returncode == 0, checked.stderr


@pytest.fixture
def facts(client: Client, complete: RunningService) -> dict[str, Any]:
    """What the program found."""
    lab, name = complete.integrator(), client.language.name
    given = {
        "base": complete.base_url,
        "audience": complete.config.auth.audience,
        "clientId": lab.client_id,
        "clientSecret": lab.client_secret,
        "identifier": f"{SYSTEM}|{name}-1",
        "toRegister": register_body(f"{name}-1"),
        "toRepeat": register_body(f"{name}-1", conclusion="Malignant"),
        "toCreate": self_contained(f"{name}-2"),
        "toRefuse": register_body(f"{name}-3", category=None),
    }

    done = client.start(*client.language.run, given=given)

    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_its_calls_work(facts: dict[str, Any]) -> None:
    assert facts.pop("registered") == facts.pop("found")
    assert facts == {
        "repeated": "different",
        "conclusion": "Within the reference ranges",
        "tried": ["information"],
        "patched": ["amended", "2"],
        "created": "DiagnosticReport",
        "refused": [["Parameters.parameter[2].resource.category"]],
        "unauthorized": "invalid_client",
    }
