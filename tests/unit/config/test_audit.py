"""The audit trail is on, and its reads are recorded soon, unless the settings differ."""

from __future__ import annotations

import dataclasses

from fhirpub.config.audit import AuditConfig


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
