"""A batch has limits unless the settings give others."""

from __future__ import annotations

import dataclasses

from fhirpub.config.batch import BatchConfig


def test_a_batch_is_limited_in_entries_seconds_and_bytes() -> None:
    assert dataclasses.asdict(BatchConfig()) == {
        "entries": 1000,
        "seconds": 30.0,
        "answer_bytes": 8388608,
    }
