"""``fhirpub erase``, ``hold`` and ``restore`` as an operator uses them (ADR 36)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fhirpub.audit.record import BEGUN
from fhirpub.cli.audit.command import audit
from fhirpub.cli.commands import Reporting
from fhirpub.cli.erasure.erase import erase
from fhirpub.cli.erasure.hold import hold
from fhirpub.cli.erasure.restore import restore
from fhirpub.storage.erasure.contract import Erasure
from fhirpub.testing.service import Integrator, RunningService
from tests.api.test_erasure import BASE, Published, publish
from tests.bodies import SYSTEM, register_body

REASON = ("--reason", "order 7")

ORDER = {
    "tenant": "t",
    "type": "DiagnosticReport",
    "id": "00000000-0000-4000-8000-000000000000",
    "ordered": 1,
    "operator": "a",
    "reason": "b",
}


class Shell:
    """Runs commands on the store of a running service."""

    def __init__(self, service: RunningService, lab: Integrator, folder: Path) -> None:
        self.service, self.lab, self.folder = service, lab, folder
        self._file = folder / "f.toml"
        self._file.write_text(f'[storage]\nurl = "{service.config.storage.url}"\n')
        self.tenant = ("--tenant", lab.tenant.id)

    def run(self, *words: str) -> Result:
        group = Reporting(commands=[audit, erase, hold, restore])
        return CliRunner().invoke(group, [*words, "--config", str(self._file)])

    def json(self, *words: str) -> Any:
        result = self.run(*words, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    def status(self, address: str) -> int:
        return self.lab.get(f"{BASE}/{address}").status


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with RunningService(tmp_path) as service:
        yield Shell(service, service.integrator(), tmp_path)


@pytest.fixture
def published(shell: Shell) -> Published:
    return publish(shell.lab)


def test_a_dry_run_shows_what_would_go_and_changes_nothing(
    shell: Shell, published: Published
) -> None:
    (one,) = shell.json("erase", "report", published.report, *shell.tenant, *REASON, "--dry-run")[
        "erased"
    ]

    assert (one["versions"], one["members"], one["documents"]) == (1, 2, 1)
    assert shell.status(published.report) == 200
    assert shell.json("erase", "list") == []


def test_a_report_is_erased_by_its_id_or_its_identifier(
    shell: Shell, published: Published
) -> None:
    other = publish(shell.lab, "R-2")

    shell.json("erase", "report", published.report, *shell.tenant, *REASON, "--yes")
    by_identifier = ("--identifier", f"{SYSTEM}|R-2")
    shell.json("erase", "report", *by_identifier, *shell.tenant, *REASON, "--yes")

    assert [shell.status(one.report) for one in (published, other)] == [410, 410]


def test_without_yes_and_without_a_terminal_nothing_is_erased(
    shell: Shell, published: Published
) -> None:
    for words in ((), ("--json",)):
        result = shell.run("erase", "report", published.report, *shell.tenant, *REASON, *words)
        assert result.exit_code == 2
        assert "add --yes, or --dry-run" in result.stderr
    assert shell.status(published.report) == 200


def test_one_that_cannot_be_erased_stops_all_others(shell: Shell, published: Published) -> None:
    unknown = "00000000-0000-4000-8000-000000000000"

    result = shell.run(
        "erase", "report", published.report, unknown, *shell.tenant, *REASON, "--yes"
    )

    assert result.exit_code == 1
    assert unknown in result.stderr
    assert shell.status(published.report) == 200


def test_a_patient_is_erased_with_all_reports_that_have_the_identifier(shell: Shell) -> None:
    reports = [publish(shell.lab, value).report for value in ("R-1", "R-2")]
    identifier = ("--identifier", "http://hl7.org/fhir/sid/AR|AAB123456")

    shown = shell.json("erase", "patient", *identifier, *shell.tenant, *REASON, "--yes")

    assert {f"{one['type']}/{one['id']}" for one in shown["erased"]} == {*reports}
    assert shown["moved"] == []
    assert [shell.status(one) for one in reports] == [410, 410]


def test_a_patient_is_named_by_id(shell: Shell, published: Published) -> None:
    other = publish(shell.lab, "R-2")

    result = shell.run("erase", "patient", published.patient, *shell.tenant, *REASON, "--yes")

    assert result.exit_code == 0
    assert published.report in result.stdout
    assert [shell.status(one.report) for one in (published, other)] == [410, 200]


@pytest.mark.parametrize("command", ["report", "patient"])
@pytest.mark.parametrize("named", [[], ["id", "--identifier", "a|b"]])
def test_what_is_meant_is_named_in_one_way(shell: Shell, command: str, named: list[str]) -> None:
    assert shell.run("erase", command, *named, *shell.tenant, *REASON).exit_code == 2


def test_orders_are_listed_with_who_and_why(shell: Shell, published: Published) -> None:
    by = ("--operator", "jmeier")
    shell.json("erase", "report", published.report, *shell.tenant, *REASON, *by, "--yes")

    (order,) = shell.json("erase", "list", *shell.tenant)

    assert (order["operator"], order["reason"]) == ("jmeier", "order 7")
    assert order["version"] == 2
    assert order["finished"] >= order["ordered"]
    assert shell.json("erase", "list", *shell.tenant, "--unfinished") == []
    assert published.report in shell.run("erase", "list").stdout


def test_an_order_that_was_interrupted_is_resumed(shell: Shell, published: Published) -> None:
    id_ = published.report.partition("/")[2]
    order = Erasure(
        tenant=shell.lab.tenant.id,
        type="DiagnosticReport",
        id=id_,
        ordered=1,
        operator="eve",
        reason="order 7",
    )
    shell.service.call(shell.service.services.store.put_erasure(order))
    assert len(shell.json("erase", "list", "--unfinished")) == 1

    (erased,) = shell.json("erase", "resume", *shell.tenant)

    assert (erased["id"], erased["versions"]) == (id_, 1)
    assert shell.status(published.report) == 410
    assert shell.run("erase", "resume", *shell.tenant).stdout == "No order was interrupted.\n"


def test_a_hold_forbids_and_its_release_allows(shell: Shell, published: Published) -> None:
    assert shell.run("hold", "add", published.patient, *shell.tenant, *REASON).exit_code == 0
    (on_hold,) = shell.json("hold", "list", *shell.tenant)

    refused = shell.run("erase", "report", published.report, *shell.tenant, *REASON, "--yes")
    released = shell.run("hold", "release", published.patient, *shell.tenant)
    again = shell.run("hold", "release", published.patient, *shell.tenant)

    assert (on_hold["resource"], on_hold["reason"]) == (published.patient, "order 7")
    assert refused.exit_code == 1
    assert "is on hold" in refused.stderr
    assert (released.exit_code, again.exit_code) == (0, 1)
    assert shell.json("erase", "report", published.report, *shell.tenant, *REASON, "--yes")


@pytest.mark.parametrize("name", ["7d1a", "DiagnosticReport/7d1a", "/", "Patient/"])
def test_a_hold_is_of_a_type_and_an_id(shell: Shell, name: str) -> None:
    assert shell.run("hold", "add", name, *shell.tenant, *REASON).exit_code == 2


def test_erasures_are_repeated_on_another_store_also_of_what_it_never_had(
    shell: Shell, published: Published, tmp_path: Path
) -> None:
    later = publish(shell.lab, "later")
    for one in (published, later):
        shell.json("erase", "report", one.report, *shell.tenant, *REASON, "--yes")
    assert shell.run("erase", "export", str(tmp_path / "list.jsonl")).exit_code == 0
    with RunningService(tmp_path / "other") as service:
        store = service.services.store
        service.call(store.put_tenant(shell.lab.tenant))
        there = Integrator(service, shell.lab.tenant, "", "")
        other = service.another_client(shell.lab.tenant)
        there.token = other.token
        assert publish(there, "R-1").report == published.report
        elsewhere = Shell(service, there, tmp_path / "other")

        words = ("restore", "--erasures", str(tmp_path / "list.jsonl"))
        shown = [elsewhere.json(*words) for _time in range(2)]

        assert [len(one["erased"]) for one in shown] == [2, 2]
        assert [elsewhere.status(one.report) for one in (published, later)] == [410, 410]
        bodies = [register_body(value) for value in ("R-1", "later")]
        assert [there.register(body).status for body in bodies] == [409, 409]


def test_orders_of_an_unknown_tenant_are_passed_over_and_named(
    shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "list.jsonl").write_text(json.dumps(ORDER) + "\n")

    shown = shell.json("restore", "--erasures", str(tmp_path / "list.jsonl"))

    assert shown == {"erased": [], "unknown_tenants": ["t"]}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{}",
        "[]",
        "no JSON",
        '{"tenant": 1}',
        *(
            json.dumps(ORDER | change)
            for change in (
                {"type": "../"},
                {"id": "a/b"},
                {"ordered": 10**17},
                {"ordered": -1},
                {"reason": "x" * 2_001},
            )
        ),
    ],
)
def test_a_file_with_something_else_is_refused_with_the_lines(
    shell: Shell, tmp_path: Path, line: str
) -> None:
    (tmp_path / "list.jsonl").write_text(f"{line}\n")

    result = shell.run("restore", "--erasures", str(tmp_path / "list.jsonl"))

    assert result.exit_code == 1
    assert "line 1" in result.stderr


def test_an_erasure_leaves_a_record_before_it_and_one_after_it(
    shell: Shell, published: Published
) -> None:
    shell.json("erase", "report", published.report, *shell.tenant, *REASON, "--yes")

    found = shell.json("audit", "list", *shell.tenant, "--action", "erase")
    assert [record["status"] for record in found] == [200, BEGUN]
    assert {tuple(record["what"]) for record in found} == {(published.report,)}
