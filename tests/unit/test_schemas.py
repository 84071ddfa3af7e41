"""The generated files under schemas/ match the output of the generator."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import orjson
import pytest

ROOT = Path(__file__).parents[2]


def generate(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "generate.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "schemas", tmp_path / "schemas"))


def test_the_files_equal_the_output_of_the_generator() -> None:
    checked = generate(ROOT / "schemas", "--check")

    assert (checked.returncode, checked.stdout) == (0, "")


def test_files_that_were_edited_lost_or_added_are_named_and_then_made_right(copied: Path) -> None:
    edited = copied / "r4" / "Patient.schema.json"
    edited.write_text(edited.read_text().replace('"gender"', '"sex"'))
    (copied / "valuesets" / "CodeSystem-v2-0203.json").unlink()
    (copied / "r4" / "Old.schema.json").write_text("{}")

    checked = generate(copied, "--check")
    generate(copied)
    checked_again = generate(copied, "--check")

    wrong = ["Old.schema.json", "Patient.schema.json", "CodeSystem-v2-0203.json"]
    assert checked.returncode == 1
    assert [line.rpartition("/")[2] for line in checked.stdout.splitlines()] == wrong
    assert checked_again.returncode == 0


def test_a_change_of_the_tables_changes_the_files(copied: Path) -> None:
    tables = copied / "source" / "fhir_r4_elements.json"
    tables.write_text(tables.read_text().replace('"Patient.birthDate"', '"Patient.bornOn"'))

    checked = generate(copied, "--check")

    wrong = [
        "out of date: schemas/r4/Patient.schema.json",
        "out of date: schemas/xml/elements.json",
    ]
    assert checked.stdout.splitlines() == wrong


def test_help_says_what_check_does() -> None:
    assert "exit status 1 when a file differs" in generate(ROOT / "schemas", "--help").stdout


@pytest.mark.parametrize("path", sorted((ROOT / "schemas" / "r4").iterdir()), ids=lambda p: p.stem)
def test_every_schema_is_valid_by_the_schema_of_schemas(path: Path) -> None:
    document = orjson.loads(path.read_bytes())

    jsonschema_rs.meta.validate(document)
    assert document["$id"] == f"urn:fhirpub:schemas:r4:{path.name.removesuffix('.schema.json')}"


def test_no_pattern_needs_more_than_linear_time_or_reads_otherwise_elsewhere() -> None:
    folder = ROOT / "schemas" / "r4"
    found = {pattern for path in folder.iterdir() for pattern in _patterns(path.read_bytes())}

    assert found
    for pattern in found:
        assert not any(mark in pattern for mark in (r"\d", r"\s", r"\w", r"\S", r"\b", "(?"))


def _patterns(raw: bytes) -> set[str]:
    waiting, found = [orjson.loads(raw)], set[str]()
    for node in waiting:  # grows while it is read
        if isinstance(node, dict):
            if isinstance(node.get("pattern"), str):
                found.add(node["pattern"])
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return found
