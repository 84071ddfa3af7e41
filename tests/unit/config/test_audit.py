"""The audit trail is on, and its reads are recorded soon, unless the settings differ."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from fhirpub.config.audit import AuditConfig
from tests.unit.config.files import loaded, problems_of


def test_every_access_is_recorded_and_nothing_is_deleted_unless_set() -> None:
    assert dataclasses.asdict(AuditConfig()) == {
        "enabled": True,
        "reads": "soon",
        "checkpoint_seconds": 60.0,
        "checkpoints_file": "",
        "checkpoints_syslog": "",
        "checkpoints_syslog_ca_file": "",
        "keep_days": 0,
    }


@pytest.mark.parametrize("reads", ["before_answer", "soon", "off"])
def test_reads_are_recorded_before_the_answer_soon_or_not(tmp_path: Path, reads: str) -> None:
    assert loaded(tmp_path, f"[audit]\nreads = '{reads}'\n").audit.reads == reads


def test_reads_are_recorded_in_no_other_way(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, "[audit]\nreads = 'later'\n")

    assert problem.endswith("reads in [audit]: must be one of before_answer, soon, off")
