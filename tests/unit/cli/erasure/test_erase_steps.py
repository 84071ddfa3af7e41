"""What ``fhirpub erase`` plans, asks and shows, by responses that are known."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner, Result

from fhirpub.administration.erasure import operations
from fhirpub.cli.administration.target import Target
from fhirpub.cli.erasure.erase import _Options, _patients_meant, _reports_meant, _run
from tests.unit.cli.erasure.records import erased


class Service:
    """Answers operations as it is asked to, and keeps what they were."""

    def __init__(self, *pages: dict[str, Any], refused: Sequence[str] = ()) -> None:
        self.pages, self.refused = [*pages], refused
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.interrupts = False

    async def __call__(self, operation: Any, **given: Any) -> Any:
        self.calls.append((operation.command, given))
        if operation is operations.PLAN:
            return self.pages.pop(0)
        if operation is operations.RESUME:
            return {"erased": [], "refused": [], "following": None}
        if self.interrupts:
            raise KeyboardInterrupt
        rows = [erased(id=name.partition("/")[2]) for name in given["resources"]]
        return {"erased": rows, "refused": self.refused}

    def run(self, work: Any, *, creates_store: bool) -> Any:
        assert not creates_store
        return asyncio.run(work(self))

    @property
    def commands(self) -> list[str]:
        return [command for command, _given in self.calls]


def page(*ids: str, moved: Sequence[str] = (), following: int | None = None) -> dict[str, Any]:
    return {"planned": [erased(id=one) for one in ids], "moved": [*moved], "following": following}


def run(service: Service, answer: str = "", **options: Any) -> Result:
    usual: dict[str, Any] = {
        "reason": "order 7",
        "operator": "eve",
        "allow_reuse": False,
        "dry_run": False,
        "yes": True,
        "as_json": False,
    }

    @click.command()
    def command() -> None:
        _run(cast("Target", service), "t", {"reports": ["a"]}, _Options(**usual | options))

    return CliRunner().invoke(command, input=answer)


def test_everything_that_is_planned_is_erased_after_what_was_interrupted() -> None:
    service = Service(page("a", following=50), page("b"))

    done = run(service, allow_reuse=True)

    assert done.exit_code == 0, done.output
    assert service.commands == [
        "erase report --dry-run",
        "erase report --dry-run",
        "erase resume",
        "erase report",
    ]
    assert [given.get("from") for _command, given in service.calls[:2]] == [0, 50]
    assert service.calls[-1][1] == {
        "tenant": "t",
        "resources": ["DiagnosticReport/a", "DiagnosticReport/b"],
        "reason": "order 7",
        "operator": "eve",
        "allow_reuse": True,
    }


def test_a_dry_run_only_plans() -> None:
    service = Service(page("a"))

    done = run(service, dry_run=True, yes=False)

    assert (done.exit_code, service.commands) == (0, ["erase report --dry-run"])
    assert "DiagnosticReport/a" in done.stdout


def test_a_dry_run_names_nothing_that_is_left_to_do() -> None:
    later = {"planned": [erased(id="a", documents_later=3)], "moved": [], "following": None}

    assert run(Service(later), dry_run=True).stderr == ""


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_what_is_not_confirmed_is_not_erased(answer: str) -> None:
    service = Service(page("a"))

    done = run(service, answer, yes=False)

    assert done.exit_code == 1
    assert service.commands == ["erase report --dry-run"]
    assert "Erase this for good?" in done.stdout


@pytest.mark.usefixtures("terminal")
def test_what_is_confirmed_is_erased() -> None:
    service = Service(page("a"))

    assert run(service, "y\n", yes=False).exit_code == 0
    assert service.commands[-1] == "erase report"


@pytest.mark.usefixtures("terminal")
def test_nothing_is_asked_where_there_is_nothing_to_erase() -> None:
    done = run(Service(page()), yes=False)

    assert (done.exit_code, "Erase this" in done.stdout) == (0, False)
    assert "There is nothing to erase." in done.output


@pytest.mark.usefixtures("terminal")
def test_json_asks_nothing_even_on_a_terminal() -> None:
    service = Service(page("a"))

    done = run(service, yes=False, as_json=True)

    assert (done.exit_code, service.calls) == (2, [])


def test_without_a_terminal_nothing_is_asked() -> None:
    service = Service(page("a"))

    done = run(service, "y\n", yes=False)

    assert (done.exit_code, service.calls) == (2, [])
    assert "erasing is final: add --yes" in done.stderr


def test_a_refusal_is_an_error_and_nothing_is_shown() -> None:
    done = run(Service(page("a"), refused=["a is on hold", "b is on hold"]))

    assert (done.exit_code, done.stdout) == (1, "")
    assert "a is on hold; b is on hold" in done.stderr


def test_an_interruption_names_how_to_complete_it() -> None:
    service = Service(page("a"))
    service.interrupts = True

    done = run(service)

    assert done.exit_code == 1
    assert "interrupted; repeat the command, or run `fhirpub erase resume`" in done.stderr


def test_what_was_erased_before_is_named() -> None:
    planned = {
        "planned": [erased(id="a"), erased(id="b", versions=0)],
        "moved": [],
        "following": None,
    }

    done = run(Service(planned), dry_run=True)

    assert done.stderr == "Erased before, see `fhirpub erase list`: DiagnosticReport/b.\n"


@pytest.mark.parametrize(("count", "more"), [(1, ""), (5, ""), (6, " and 1 more")])
def test_a_few_that_were_moved_are_named_and_the_others_counted(count: int, more: str) -> None:
    moved = [f"DiagnosticReport/{number}" for number in range(count)]

    done = run(Service(page("a", moved=moved)), dry_run=True)

    names = ", ".join(moved[:5])
    assert done.stderr.startswith(f"{names}{more} belonged to the patient in an earlier version")


def test_json_has_what_was_erased_and_moved_and_whether_it_was_a_trial() -> None:
    for dry_run in (True, False):
        done = run(Service(page("a", moved=["x"])), as_json=True, dry_run=dry_run)
        shown = json.loads(done.stdout)
        assert (shown["moved"], shown["dry_run"]) == (["x"], dry_run)
        assert [one["id"] for one in shown["erased"]] == ["a"]


# What is meant


def test_reports_are_meant_by_ids_or_an_identifier_of_a_type() -> None:
    assert _reports_meant(["DiagnosticReport/a", "b"], None, "X") == {"reports": ["a", "b"]}
    assert _reports_meant([], ("s", "v"), "Composition") == {
        "report_identifier": "s|v",
        "type": "Composition",
    }


def test_patients_are_meant_by_ids_or_an_identifier() -> None:
    assert _patients_meant(["Patient/a", "b"], None) == {"patients": ["a", "b"]}
    assert _patients_meant([], ("s", "v")) == {"patient_identifier": "s|v"}


@pytest.mark.parametrize(
    ("ids", "identifier", "is_one"),
    [([], None, False), (["a"], ("s", "v"), False), (["a"], None, True), ([], ("s", "v"), True)],
)
def test_one_way_names_what_is_meant(
    ids: list[str], identifier: tuple[str, str] | None, *, is_one: bool
) -> None:
    outcome: Any = nullcontext() if is_one else pytest.raises(click.UsageError, match=r"^name ")
    with outcome:
        _reports_meant(ids, identifier, "DiagnosticReport")
    with outcome:
        _patients_meant(ids, identifier)
