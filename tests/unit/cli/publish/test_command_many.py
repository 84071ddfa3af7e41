"""``fhirpub publish`` of many reports: what it sends, prints, and stops at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fhirpub.testing.service import Integrator
from tests.bodies import register_body
from tests.unit.cli.publish.services import PUBLISHED

CREDENTIALS = {"FHIRPUB_CLIENT_ID": "the-id", "FHIRPUB_CLIENT_SECRET": "the-secret"}
OUTCOME = {"resourceType": "OperationOutcome", "issue": []}


def publish(run: Any, lab: Integrator, *words: str, stdin: str = "") -> Any:
    options = ("--url", lab.service.base_url, "--audience", lab.service.config.auth.audience)
    known = {"FHIRPUB_CLIENT_ID": lab.client_id, "FHIRPUB_CLIENT_SECRET": lab.client_secret}
    return run("publish", *words, *options, stdin=stdin, **known)


def write_lines(file: Path, *values: str) -> str:
    named = [{"contentType": "application/pdf", "url": "scans/a.pdf"}]
    lines = [json.dumps(register_body(value, presentedForm=named)) for value in values]
    file.write_text("\n".join(lines))
    return file.read_text()


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "a.pdf").write_bytes(b"%PDF-")
    return tmp_path / "scans"


def test_lines_are_published_and_the_causes_of_refusals_are_grouped(
    run: Any, lab: Integrator, tmp_path: Path, scans: Path
) -> None:
    write_lines(tmp_path / "x.ndjson", "many-1", "many-2", "many-1")
    with (tmp_path / "x.ndjson").open("a") as file:
        bad = json.dumps(register_body("bad", category=None))
        file.write(f"\n{{\n{bad}\n{bad}")

    done = publish(run, lab, "x.ndjson", "--report", "out.ndjson")

    report = [json.loads(line) for line in (tmp_path / "out.ndjson").read_text().splitlines()]
    assert done.returncode == 1
    assert done.stderr == ""
    assert ": 2 created, 1 replayed, 2 refused, 1 not sent" in done.stdout.splitlines()[0]
    assert done.stdout.splitlines()[4].split()[:2] == ["2", "element-required"]
    assert sorted(record["line"] for record in report) == [1, 2, 3, 4, 5, 6]


def test_lines_of_standard_input_have_documents_from_a_folder(
    run_program: Any, lab: Integrator, tmp_path: Path, scans: Path
) -> None:
    lines = write_lines(tmp_path / "unused", "stdin-1", "stdin-2").replace("scans/a", "a")

    done = publish(
        run_program, lab, "-", "--ndjson", "--json", "--documents-from", "scans", stdin=lines
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["created"] == 2


def test_a_token_that_expires_is_renewed(run: Any, tmp_path: Path, stub: Any) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.json").write_text(json.dumps(register_body(str(number))))
    stub.answers = [PUBLISHED, (401, {}, OUTCOME), PUBLISHED]

    done = run("publish", "in", "--jobs", "1", "--url", stub.address, "--json", **CREDENTIALS)

    paths = [path.rpartition("/")[2] for path, _, _ in stub.requests]
    assert json.loads(done.stdout)["created"] == 3
    assert paths.count("token") == 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((401, {}, OUTCOME), "does not accept the token that it issued"),
        ((403, {}, OUTCOME), "the service refuses this client (403 Forbidden)"),
        ((404, {}, "not here"), "is not a service of this kind: 404 Not Found. Is --url right?"),
        ((200, {}, "welcome"), "is not a service of this kind: 200 OK"),
        ((201, {}, {}), "is not a service of this kind: 201 Created"),
        ((429, {"Retry-After": "3600"}, OUTCOME), "a quota is used up for 3600 s"),
    ],
)
def test_a_load_stops_when_nothing_can_be_accepted(
    run: Any, tmp_path: Path, stub: Any, answer: Any, message: str
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(30):
        (tmp_path / "in" / f"{number}.json").write_text(json.dumps(register_body(str(number))))
    stub.answers = [answer]

    done = run("publish", "in", "--jobs", "2", "--url", stub.address, **CREDENTIALS)

    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Stopped: about 30 reports are left.")
    assert len(stub.requests) < 10


def test_an_empty_folder_is_no_error(run: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()

    done = run("publish", "in", "--url", "http://127.0.0.1:1", **CREDENTIALS)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("0 reports in ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("none/*.json",), "no file matches none/*.json"),
        ((".", "none/*.json"), "no file matches none/*.json"),
        (("none",), "'none' does not exist"),
        ((".", "--resume"), "--resume needs the --report"),
        ((".", "--document", "a.pdf"), "--document belongs to one FILE.json"),
        ((".", "-"), "- needs --ndjson"),
    ],
)
def test_words_that_do_not_belong_together_are_refused(
    run: Any, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "a.pdf").touch()

    done = run("publish", *words, "--url", "http://127.0.0.1:1", **CREDENTIALS)

    assert done.returncode == 2
    assert message in done.stderr
