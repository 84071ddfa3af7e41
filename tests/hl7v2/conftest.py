"""Shared by the tests of messages: the command, and independent validators."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fhirpub.testing.service import Integrator
from fhirpub_hl7v2.__main__ import main
from tests.corpus.validator import Validator

Run = Callable[..., Result]

MAPPING = """
[message]
time_zone = "Europe/Madrid"

[authorities]
LIS = "https://north-quay.example/reports"
REG = "https://registry.example/persons"
HIS = "https://hospital.example/orders"
"""


@pytest.fixture(scope="session")
def validators() -> Iterator[list[Validator]]:
    """Two validators of R4 that are not ours."""
    running = [Validator(name) for name in ("fhir.resources", "fhirclient")]
    yield running
    for validator in running:
        validator.close()


def environment(lab: Integrator) -> dict[str, str]:
    """Return the variables of a command that publishes for a client."""
    return {
        "PATH": os.defpath,
        "PYTHONPATH": ":".join(sys.path),
        "FHIRPUB_CLIENT_ID": lab.client_id,
        "FHIRPUB_CLIENT_SECRET": lab.client_secret,
    }


@pytest.fixture
def run(lab: Integrator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``fhirpub-hl7v2 publish`` with the bytes of a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mapping.toml").write_text(MAPPING)

    def publish(raw: bytes, *options: str) -> Result:
        (tmp_path / "messages.hl7").write_bytes(raw)
        words = ["publish", "messages.hl7", "--mapping", "mapping.toml", *options]
        return CliRunner().invoke(
            main, [*words, "--url", lab.service.base_url], env=environment(lab)
        )

    return publish
