"""``fhirpub patient``: relink, show and conflicts, on the store of a running service (ADR 26)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fhirpub.testing.service import Integrator, RunningService
from tests.api.test_patients import (
    BASE,
    CONFIG,
    HOSPITAL,
    NATIONAL,
    identified,
    ids_in,
    named,
    of,
    subject_of,
)
from tests.api.test_patients_held import referring
from tests.api.test_patients_relink import id_of_report, patient_of
from tests.bodies import patient
from tests.panels import result

REASON = ("--reason", "twin under the same number, ticket 812")


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[str], str]
) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("command")
    with RunningService(folder, config=CONFIG, store_url=store_url("command")) as running:
        yield running


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    return service.integrator()


_SHELL = """
import json, sys
from click.testing import CliRunner
from fhirpub.cli.commands import Reporting
from fhirpub.cli.patient.command import patient
from fhirpub.runtime import logging

logging.configure(level="error", form="text")
for line in sys.stdin:
    result = CliRunner().invoke(Reporting(commands=[patient]), json.loads(line))
    print(json.dumps([result.exit_code, result.stdout, result.stderr]), flush=True)
"""
"""Runs one command after another in a process beside the service, which starts only once."""


def environment() -> dict[str, str]:
    folders = [name for name in sys.path if Path(name).is_dir()]
    return {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(folders)}


@pytest.fixture(scope="module")
def shell() -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", _SHELL]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=environment(), stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        assert process.stdin
        process.stdin.close()


@dataclass
class Done:
    """What a command has led to."""

    exit_code: int
    stdout: str
    stderr: str


@dataclass
class Command:
    """The command line of the service's operator, for one tenant."""

    file: Path
    tenant: str
    shell: subprocess.Popen[str]

    def run(self, *words: str) -> Done:
        assert self.shell.stdin
        assert self.shell.stdout
        line = json.dumps(["patient", *words, *self._options()])
        self.shell.stdin.write(f"{line}\n")
        self.shell.stdin.flush()
        return Done(*json.loads(self.shell.stdout.readline()))

    def start(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the whole program."""
        return subprocess.run(
            [sys.executable, "-m", "fhirpub", "patient", *words, *self._options()],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def json(self, *words: str) -> Any:
        done = self.run(*words, "--json")
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)

    def _options(self) -> tuple[str, ...]:
        return ("--tenant", self.tenant, "--config", str(self.file))


@pytest.fixture
def command(
    service: RunningService, lab: Integrator, tmp_path: Path, shell: subprocess.Popen[str]
) -> Command:
    file = tmp_path / "fhirpub.toml"
    settings = service.config
    file.write_text(
        f"[storage]\nurl = {json.dumps(settings.storage.url)}\n"
        f"[server]\nbase_url = {json.dumps(settings.base_url)}\n"
        f"[patients]\nperson_systems = {json.dumps(settings.patients.person_systems)}\n"
    )
    return Command(file, lab.tenant.id, shell)


@pytest.fixture
def twins(lab: Integrator) -> tuple[str, str, str]:
    """The reports of two newborns under one number: one of the first, two of the second."""
    for value, given in (("R-1", "Ada"), ("R-2", "Bea"), ("R-3", "Bea")):
        newborn = identified((NATIONAL, "1"), name=named("Birch", given))
        lab.register(of(value, newborn, result("hb")))
    first, second, third = (id_of_report(lab, value) for value in ("R-1", "R-2", "R-3"))
    return first, second, third


class TestRelink:
    """Reports are moved on the command line."""

    def test_two_persons_are_separated(
        self, command: Command, lab: Integrator, twins: tuple[str, str, str]
    ) -> None:
        first, second, third = twins
        (moved,) = command.json("relink", second, "--apart", *REASON)
        (joined,) = command.json("relink", third, "--patient", moved["to"], *REASON)

        assert moved["outcome"] == joined["outcome"] == "moved"
        assert (moved["report"], moved["version"]) == (f"DiagnosticReport/{second}", 2)
        assert moved["from"] == f"Patient/{patient_of(lab, first)}"
        assert joined["to"] == f"Patient/{patient_of(lab, second)}" == moved["to"]
        assert len(ids_in(lab.get(f"{BASE}/DiagnosticReport?patient={moved['to']}"))) == 2
        names = lab.get(f"{BASE}/{moved['from']}").json["name"]
        assert names == named("Birch", "Ada")

    def test_it_is_logged_with_the_reason(
        self, command: Command, twins: tuple[str, str, str]
    ) -> None:
        words = ("relink", twins[1], "--apart", *REASON, "--operator", "jmeier")
        done, again = command.start(*words), command.start(*words)

        (line,) = done.stderr.splitlines()
        for fact in ("resource moved to another patient", REASON[1], "jmeier", twins[1]):
            assert fact in line
        assert "Birch" not in line
        assert NATIONAL not in line
        assert again.returncode == 0
        assert again.stderr == ""
        assert "belongs to it already" in again.stdout

    def test_a_dry_run_moves_nothing(
        self, command: Command, lab: Integrator, twins: tuple[str, str, str]
    ) -> None:
        words = ("relink", *twins[1:], "--identifier", f"{NATIONAL}|2", *REASON, "--dry-run")
        planned = command.json(*words)

        assert [one["outcome"] for one in planned] == ["would be moved"] * 2
        assert {patient_of(lab, one) for one in twins} == {planned[0]["from"][8:]}

    def test_several_move_to_an_identifier(
        self, command: Command, lab: Integrator, twins: tuple[str, str, str]
    ) -> None:
        addresses = [f"DiagnosticReport/{one}" for one in twins[1:]]
        command.json("relink", *addresses, "--identifier", f"{NATIONAL}|2", *REASON)
        third = subject_of(lab.register(of("R-4", identified((NATIONAL, "2")))))

        assert {patient_of(lab, one) for one in twins[1:]} == {third[8:]}
        assert patient_of(lab, twins[0]) != third[8:]

    def test_nothing_moves_if_one_of_them_cannot(
        self, command: Command, lab: Integrator, twins: tuple[str, str, str]
    ) -> None:
        unknown = "00000000-0000-4000-8000-000000000000"
        words = ("relink", twins[1], unknown, "--identifier", f"{NATIONAL}|2", *REASON)
        done = command.run(*words)

        assert done.exit_code == 1
        assert f"the tenant has no report {unknown}" in done.stderr
        assert patient_of(lab, twins[1]) == patient_of(lab, twins[0])

    def test_what_would_be_left_is_named(self, command: Command, lab: Integrator) -> None:
        subject = subject_of(lab.register(of("R-1", identified((NATIONAL, "1")))))
        lab.register(referring("R-2", subject))
        first, second = (id_of_report(lab, value) for value in ("R-1", "R-2"))
        target = ("--identifier", f"{NATIONAL}|2", *REASON)
        refused = command.run("relink", first, *target)

        assert refused.exit_code == 1
        assert f"DiagnosticReport/{second} would stay with {subject}" in refused.stderr
        moved = command.json("relink", first, second, *target)
        assert [one["outcome"] for one in moved] == ["moved"] * 2

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["R", *REASON], "name one of --identifier, --patient and --apart"),
            (["R", "--apart", "--patient", "P", *REASON], "name one of"),
            (["R", "S", "--apart", *REASON], "--apart takes one report"),
            (["R", "--apart"], "--reason"),
            (["R", "--apart", "--reason", " "], "one line of printable text"),
            (["R", "--apart", "--reason", "a\nb"], "one line of printable text"),
            (["R", "--identifier", "1", *REASON], "'system|value'"),
            (["--apart", *REASON], "REPORT_ID"),
        ],
    )
    def test_wrong_usage_is_explained(self, command: Command, words: list[str], said: str) -> None:
        done = command.run("relink", *words)

        assert done.exit_code == 2
        assert said in done.stderr

    def test_a_store_that_is_indexed_otherwise_is_refused(
        self, command: Command, twins: tuple[str, str, str]
    ) -> None:
        command.file.write_text(command.file.read_text().replace(HOSPITAL, "https://b.example"))
        done = command.run("relink", twins[1], "--apart", *REASON)

        assert done.exit_code == 1
        assert "start the service with these settings once" in done.stderr

    def test_an_unknown_tenant_is_named(self, command: Command) -> None:
        command.tenant = "nobody"

        assert "fhirpub tenant list" in command.run("show", "P").stderr


class TestShow:
    """What was stated about a patient, and what was moved away."""

    def test_statements_are_shown_without_names(
        self, command: Command, lab: Integrator, twins: tuple[str, str, str]
    ) -> None:
        command.run("relink", twins[1], "--apart", *REASON, "--operator", "jmeier")
        shown = command.json("show", "--identifier", f"{NATIONAL}|1")
        apart = command.json("show", f"Patient/{patient_of(lab, twins[1])}")

        assert shown["patient"] == patient_of(lab, twins[0])
        reports = [one["report"] for one in shown["statements"]]
        assert reports == [f"DiagnosticReport/{one}" for one in reversed(twins)]
        assert [one["moved_to"] for one in shown["statements"]] == [
            None,
            f"Patient/{apart['patient']}",
            None,
        ]
        assert {one["identifiers"][0] for one in shown["statements"]} == {f"{NATIONAL}|1"}
        (stated,) = apart["statements"]
        assert (stated["operator"], stated["reason"]) == ("jmeier", REASON[1])
        assert stated["version"] == f"{twins[1]}.2"
        assert stated["identifiers"] == []
        assert "Birch" not in json.dumps([shown, apart])

    def test_names_are_shown_on_demand(
        self, command: Command, twins: tuple[str, str, str]
    ) -> None:
        assert twins
        shown = command.json("show", "--identifier", f"{NATIONAL}|1", "--names")
        listed = command.run("show", "--identifier", f"{NATIONAL}|1", "--names").stdout

        assert [one["name"] for one in shown["statements"]] == [
            "Bea Birch",
            "Bea Birch",
            "Ada Birch",
        ]
        assert {one["birth_date"] for one in shown["statements"]} == {"1980-02-29"}
        assert listed.splitlines()[0] == f"Patient/{shown['patient']}"
        assert "Ada Birch" in listed

    def test_a_patient_of_one_report_is_shown(self, command: Command, lab: Integrator) -> None:
        lab.register(of("R-1", patient()))
        report = id_of_report(lab, "R-1")
        shown = command.json("show", patient_of(lab, report))

        (stated,) = shown["statements"]
        assert (stated["version"], stated["report"]) == ("1", f"DiagnosticReport/{report}")

    def test_an_unknown_one_is_said_to_be(self, command: Command) -> None:
        unknown = command.run("show", "00000000-0000-4000-8000-000000000000")
        unused = command.run("show", "--identifier", f"{NATIONAL}|nobody")

        assert unknown.exit_code == 1
        assert "was not found" in unknown.stderr
        assert unused.exit_code == 0
        assert "Nothing was stated about it." in unused.stdout


class TestConflicts:
    """Identifiers that several Patients have are listed."""

    def test_each_is_listed_once(
        self, command: Command, lab: Integrator, twins: tuple[str, str, str]
    ) -> None:
        assert twins
        assert command.json("conflicts") == []
        both = [
            subject_of(lab.register(of(value, identified((NATIONAL, value), (HOSPITAL, "h")))))
            for value in ("R-5", "R-6", "R-7")
        ]
        (conflict,) = command.json("conflicts")

        assert conflict["identifier"] == f"{HOSPITAL}|h"
        assert sorted(conflict["patients"]) == sorted(both)
        assert f"{HOSPITAL}|h" in command.run("conflicts").stdout

    def test_former_identifiers_and_those_of_one_patient_are_none(
        self, command: Command, lab: Integrator
    ) -> None:
        former = identified((NATIONAL, "2"), (HOSPITAL, "h"))
        former["identifier"][1]["use"] = "old"
        lab.register(of("R-1", identified((NATIONAL, "1"), (HOSPITAL, "h"))))
        lab.register(of("R-2", identified((NATIONAL, "1"), (HOSPITAL, "h"))))
        lab.register(of("R-3", former))

        assert command.json("conflicts") == []

    def test_a_relink_settles_one(self, command: Command, lab: Integrator) -> None:
        lab.register(of("R-1", identified((NATIONAL, "1"), (HOSPITAL, "h"))))
        wrong = subject_of(lab.register(of("R-2", identified((HOSPITAL, "h")))))
        (conflict,) = command.json("conflicts")
        assert wrong in conflict["patients"]
        report = id_of_report(lab, "R-2")
        command.json("relink", report, "--identifier", f"{NATIONAL}|1", *REASON)

        assert command.json("conflicts") == []

    def test_one_tenant_does_not_see_those_of_another(
        self, service: RunningService, command: Command
    ) -> None:
        other = service.integrator()
        for value in ("R-1", "R-2"):
            other.register(of(value, identified((NATIONAL, value), (HOSPITAL, "h"))))

        assert command.json("conflicts") == []
