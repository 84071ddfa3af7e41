"""``fhirpub sample`` fills a store for trials, as often as it is run, and never in production."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fhirpub.testing.service import Integrator, RunningService

REPORTS = "/fhir/r4/DiagnosticReport"
Done = subprocess.CompletedProcess[str]


@pytest.fixture(params=["sqlite", "mongodb"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/trial.db"
    url: str = request.getfixturevalue("mongodb_url")
    return url


def published(run: Any, url: str, *words: str) -> dict[str, Any]:
    done = run("sample", *words, "--json", FHIRPUB_STORAGE__URL=url)
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def test_the_reports_are_served_with_their_results_documents_and_corrections(
    run: Any, store_url: str, tmp_path: Path
) -> None:
    record = published(run, store_url, "--reports", "40")

    assert (record["reports"], record["registered"], record["there_already"]) == (40, 40, 0)
    with RunningService(tmp_path, store_url=store_url) as service:
        tenants = service.call(service.services.store.tenants())
        (tenant,) = [one for one in tenants if one.id == record["tenant"]]
        lab = service.another_client(tenant)
        check_what_is_served(lab, corrections=record["revised"] + record["updated"])


def check_what_is_served(lab: Integrator, *, corrections: int) -> None:
    found = lab.get(f"{REPORTS}?_count=100").json
    versions = [int(entry["resource"]["meta"]["versionId"]) for entry in found["entry"]]
    assert found["total"] == 40
    assert sum(versions) == 40 + corrections > 45
    hemoglobin = lab.get("/fhir/r4/Observation?code=http://loinc.org|718-7").json
    assert hemoglobin["total"] > 10
    (form,) = found["entry"][0]["resource"]["presentedForm"]
    document = lab.get(form["url"], Accept="application/pdf")
    assert document.headers["content-type"] == "application/pdf"
    assert document.body.startswith(b"%PDF-1.4")


def test_a_repetition_adds_nothing_and_a_larger_number_adds_the_rest(
    run: Any, store_url: str
) -> None:
    first = published(run, store_url, "--reports", "6")
    again = published(run, store_url, "--reports", "6")
    more = published(run, store_url, "--reports", "9")

    assert (again["registered"], again["there_already"]) == (0, 6)
    assert (again["revised"], again["updated"]) == (0, 0)
    assert (more["registered"], more["there_already"]) == (3, 6)
    assert first["tenant"] == again["tenant"] == more["tenant"]


def test_other_options_leave_reports_of_the_same_numbers_as_they_are(run: Any) -> None:
    url = "sqlite:///trial.db"
    published(run, url, "--reports", "4")

    other = published(run, url, "--reports", "4", "--from", "2024-01-01")

    assert (other["registered"], other["of_other_content"]) == (0, 4)


def test_in_production_it_refuses_and_creates_no_store(run: Any, tmp_path: Path) -> None:
    done = run("sample", "--reports", "1", FHIRPUB_AUTH__ENVIRONMENT="production")

    assert done.returncode == 1
    assert done.stderr == (
        'Error: [auth] environment is "production": invented reports do not belong there\n'
    )
    assert list(tmp_path.iterdir()) == []


def test_without_the_plugin_it_refuses_and_adds_no_tenant(run: Any) -> None:
    done = run("sample", "--reports", "1", FHIRPUB_PLUGINS__ENABLED="encounter")

    assert done.returncode == 1
    assert "the plugin diagnosticreport is needed" in done.stderr
    assert json.loads(run("tenant", "list", "--json").stdout) == []


def test_they_belong_to_the_tenant_that_is_named(run: Any) -> None:
    tenant = json.loads(run("tenant", "add", "Lab", "--json").stdout)["id"]

    record = json.loads(run("sample", "--reports", "1", "--tenant", tenant, "--json").stdout)

    assert record["tenant"] == tenant
    assert len(json.loads(run("tenant", "list", "--json").stdout)) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--reports", "0"], "0 is not in the range x>=1"),
        (["--reports", "1", "--seed", "a b"], "must be letters and digits, 40 at most"),
        (["--reports", "1", "--from", "TOMORROW"], "no report is of tomorrow"),
        ([], "Missing option '--reports'"),
    ],
)
def test_wrong_options_are_explained(run: Any, words: list[str], message: str) -> None:
    tomorrow = str((datetime.now(UTC) + timedelta(days=1)).date())  # noqa: TID251 - as the command

    done = run("sample", *(tomorrow if word == "TOMORROW" else word for word in words))

    assert done.returncode == 2
    assert message in done.stderr


def test_a_full_disk_is_one_line_and_the_next_run_adds_the_rest(
    run: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    words = ["sample", "--reports", "300"]
    limited = f'ulimit -f 2500; exec "$0" -m fhirpub {" ".join(words)}'
    full = subprocess.run(
        ["sh", "-c", limited, sys.executable],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=False,
        text=True,
    )

    record = json.loads(run(*words, "--json").stdout)

    assert full.returncode == 1
    assert full.stderr.startswith("Error: the store cannot be used: the disk is full")
    assert full.stderr.count("\n") == 1
    assert record["registered"] + record["there_already"] == 300
    assert record["there_already"] > 0


def test_people_are_shown_what_to_try_next(run: Any) -> None:
    lines = run("sample", "--reports", "2").stdout.splitlines()

    assert lines[0] == "Published"
    assert any(line.startswith("  fhirpub client add --tenant ") for line in lines)
