"""``fhirpub plugin new`` writes a plugin for every type that can be registered."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fhirpub.cli.plugin import new
from fhirpub.cli.scaffold.hook_parts import PARTS
from fhirpub.cli.scaffold.plan import Blueprint, blueprint
from fhirpub.cli.scaffold.writer import files_of
from fhirpub.errors import PluginError
from fhirpub.fhir.definitions.schema_generator import resource
from fhirpub.fhir.schema import Schemas
from fhirpub.plugin_api import IdentifierRule, ResourceType
from fhirpub.plugin_host.declaration_check import problems_of
from fhirpub.plugin_host.hooks import hooks_of
from fhirpub.plugin_host.schemas import _against
from fhirpub.plugin_host.sources import available
from tests.element_tables import tables
from tests.plugin_examples import write_metadata


def blueprints() -> dict[str, Blueprint]:
    """Return the plans of all types that can be registered."""
    found = {}
    for name in tables().resource_types():
        try:
            found[name] = blueprint(name, tables())
        except PluginError:
            continue
    return found


PLANS = blueprints()


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    """The schemas of all these types together: compiling them one by one takes longer."""
    brought = {name: resource(name, tables()) for name in PLANS if name not in tables().held}
    return Schemas(brought)


def test_most_types_of_r4_that_have_a_status_can_be_registered() -> None:
    assert len(PLANS) == 88
    assert {"Immunization", "Procedure", "CarePlan", "Composition"} <= set(PLANS)


def test_every_example_is_valid_by_the_schema_of_its_type(schemas: Schemas) -> None:
    wrong = {
        name: [*schemas.problems(name, plan.body["parameter"][-1]["resource"])]
        for name, plan in PLANS.items()
    }

    assert {name: problems for name, problems in wrong.items() if problems} == {}


def test_every_declaration_names_only_what_its_type_has(schemas: Schemas) -> None:
    wrong = [name for plan in PLANS.values() for name in _against(schemas, declared_in(plan))]

    assert wrong == []


def declared_in(plan: Blueprint) -> ResourceType:
    """Return the declaration of the new ``rules.py``, without its schema."""
    files = files_of(plan, tables())
    source = re.sub(r"\n    schemas=.*\n", "\n", files[f"{plan.package}/rules.py"])
    module: dict[str, Any] = {"__file__": "rules.py"}
    exec(compile(source, plan.package, "exec"), module)
    declared = module[plan.constant]
    assert isinstance(declared, ResourceType)
    return declared


def test_no_answer_to_a_registration_repeats_a_document() -> None:
    assert "content" not in PLANS["Media"].summary
    assert "source[x]" not in PLANS["Consent"].summary
    assert "content" not in PLANS["Library"].summary


def test_every_declaration_is_one_that_a_plugin_may_have() -> None:
    wrong = {name: problems_of(declared_in(plan)) for name, plan in PLANS.items()}

    assert {name: problems for name, problems in wrong.items() if problems} == {}


def test_a_type_with_another_element_for_its_key_declares_it() -> None:
    manifest, composition = declared_in(PLANS["DocumentManifest"]), PLANS["Composition"]

    assert manifest.identifier == IdentifierRule(elements=("masterIdentifier", "identifier"))
    assert isinstance(composition.body["parameter"][-1]["resource"]["identifier"], dict)


def test_documents_below_elements_are_declared_as_documents() -> None:
    assert PLANS["DocumentReference"].attachments == ("content.attachment",)
    assert PLANS["Media"].attachments == ("content",)


@pytest.mark.parametrize(
    "name",
    [
        "Immunization",
        "CoverageEligibilityResponse",
        "Observation",
        "DocumentManifest",
        "Composition",
    ],
)
def test_new_files_are_formatted_and_without_blame(name: str, tmp_path: Path) -> None:
    for path, text in files_of(PLANS[name], tables()).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)

    for words in (["format", "--check"], ["check", "--select", "E,F,I,UP", "--ignore", "E501"]):
        ruff = [sys.executable, "-m", "ruff", *words, "--isolated", "--quiet", "."]
        done = subprocess.run(ruff, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")


def test_a_type_that_the_service_has_a_schema_of_brings_none() -> None:
    assert not [file for file in files_of(PLANS["Observation"], tables()) if "schema" in file]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Immunisation", "FHIR R4 has no resource type Immunisation; did you mean Immunization?"),
        ("immunization", "did you mean Immunization?"),
        ("Zzzzzz", "FHIR R4 has no resource type Zzzzzz"),
        ("HumanName", "FHIR R4 has no resource type HumanName"),
        ("DomainResource", "FHIR R4 has no resource type DomainResource"),
        ("Provenance", "it has no identifier; declare it by hand, with a function as its key"),
        ("Patient", "Patient cannot be registered: it has no status of type code"),
    ],
)
def test_a_type_that_cannot_be_registered_is_refused_with_the_reason(
    name: str, words: str
) -> None:
    with pytest.raises(PluginError) as refusal:
        blueprint(name, tables())

    assert str(refusal.value).startswith(words) or str(refusal.value).endswith(words)


def test_the_command_lists_what_it_wrote(run: Any, tmp_path: Path) -> None:
    done = run("plugin", "new", "Procedure", "--json")

    output = json.loads(done.stdout)
    there = {
        str(path.relative_to(tmp_path / "fhirpub-procedure"))
        for path in (tmp_path / "fhirpub-procedure").rglob("*")
        if path.is_file()
    }
    assert (output["plugin"], output["package"]) == ("procedure", "fhirpub_procedure")
    assert set(output["files"]) == there


def test_the_text_says_what_to_do_next(run: Any) -> None:
    done = run("plugin", "new", "Procedure", "--directory", "mine/first")

    assert done.stdout.splitlines()[0] == "Plugin created."
    assert "pip install -e 'mine/first[test]'" in done.stdout


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["Procedure", "--directory", "there"], "there exists; choose another folder with"),
        (["Procedure", "--directory", "there/file/x"], "there/file/x cannot be written: Not a"),
        (["Procedure", "--directory", "fhirpub_procedure"], "hides the plugin"),
        (["DiagnosticReport"], "a plugin diagnosticreport is already installed"),
    ],
)
def test_a_folder_or_a_plugin_that_is_there_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], refusal: str
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("mine")
    monkeypatch.chdir(tmp_path)

    error = CliRunner().invoke(new, words).exception

    assert isinstance(error, PluginError)
    assert refusal in str(error)
    assert [path.name for path in tmp_path.rglob("*")] == ["there", "file"]


def test_the_command_refuses_in_one_line(run: Any) -> None:
    done = run("plugin", "new", "Procedur")

    error = "Error: FHIR R4 has no resource type Procedur; did you mean Procedure?\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", error)


def create_with_every_hook(name: str, folder: Path) -> None:
    """Create a plugin with every hook, and let it be found in its folder."""
    words = [word for hook in PARTS for word in ("--hook", hook)]
    done = CliRunner().invoke(new, [name, *words, "--directory", str(folder)])
    assert done.exit_code == 0, done.output
    plugin = name.lower()
    module = f"fhirpub_{plugin}"
    write_metadata(folder, module, {plugin: module}, group="fhirpub.plugins.v2")


@pytest.mark.parametrize("name", ["stream", "Immunization"])
def test_a_new_plugin_has_every_hook_that_was_asked_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "new"
    create_with_every_hook(name, folder)
    monkeypatch.syspath_prepend(folder)
    (source,) = [one for one in available() if one.name == name.lower()]

    found = {*hooks_of(source)}

    ruff = [sys.executable, "-m", "ruff", "format", "--check", "--isolated", str(folder)]
    assert subprocess.run(ruff, capture_output=True, check=False).returncode == 0
    expected = {hook for part in PARTS.values() for hook in part.hooks}
    assert found == expected | ({"fhirpub_resource_types"} if name[0].isupper() else set())
    for module in [one for one in sys.modules if one.startswith(f"fhirpub_{name.lower()}")]:
        del sys.modules[module]


def test_the_tests_of_a_new_plugin_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "new"
    create_with_every_hook("stream", folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))

    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )

    assert tests.returncode == 0, tests.stdout
    assert "passed" in tests.stdout


@pytest.mark.parametrize("name", ["My-Stream", "my stream", "7up"])
def test_a_name_that_cannot_be_a_plugin_is_refused(name: str, tmp_path: Path) -> None:
    words = [name, "--hook", "commands", "--directory", str(tmp_path / "new")]

    done = CliRunner().invoke(new, words)

    assert done.exit_code != 0
    assert isinstance(done.exception, PluginError)


def answer_in_terminal(words: Sequence[str], answers: str, folder: Path) -> str:
    """Run the command in a terminal, type the answers, and return what it printed."""
    command = [sys.executable, "-m", "fhirpub", "plugin", "new", *words]
    controller, terminal = pty.openpty()
    with os.fdopen(controller, "w", encoding="utf-8") as keyboard:
        run = subprocess.Popen(
            command, cwd=folder, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        os.close(terminal)
        keyboard.write(answers)
        keyboard.flush()
        printed, _nothing = run.communicate(timeout=60)
    assert run.returncode == 0, printed
    return printed.decode()


def test_in_a_terminal_the_command_asks_for_hooks_until_it_knows_them(tmp_path: Path) -> None:
    printed = answer_in_terminal(["stream"], "event-sink\nevent-sinks, settings\n", tmp_path)

    assert "did you mean event-sinks" in printed
    assert (tmp_path / "fhirpub-stream/fhirpub_stream/sinks.py").exists()
    assert (tmp_path / "fhirpub-stream/fhirpub_stream/settings.py").exists()


def test_in_a_terminal_a_type_may_have_no_other_hooks(tmp_path: Path) -> None:
    answer_in_terminal(["Immunization"], "\n", tmp_path)

    package = tmp_path / "fhirpub-immunization/fhirpub_immunization"
    assert not [one.name for one in package.glob("*.py") if one.name in ("sinks.py", "codes.py")]
