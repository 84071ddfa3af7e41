"""No identifier stands for a person unless the settings name its system."""

from __future__ import annotations

import dataclasses

from fhirpub.config.patients import PatientsConfig


def test_no_system_stands_for_persons_unless_set() -> None:
    assert dataclasses.asdict(PatientsConfig()) == {"person_systems": []}
