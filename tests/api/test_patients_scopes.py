"""Patients that several resources share, for those who may not read them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fhirpub.config.patients import PatientsConfig
from fhirpub.config.settings import AuthConfig, Config
from fhirpub.testing.service import RunningService
from tests.api.test_patients import NATIONAL, identified, of
from tests.api.test_results_include import included, remarks
from tests.panels import result

QUERY = "Observation?_include=Observation:patient"


def test_a_shared_patient_that_the_token_may_not_read_is_named_as_left_out(
    tmp_path: Path, store_url: Callable[[str], str]
) -> None:
    config = Config(
        auth=AuthConfig(enforce_scopes=True), patients=PatientsConfig(person_systems=[NATIONAL])
    )
    with RunningService(tmp_path, config=config, store_url=store_url("shared")) as running:
        publisher = running.integrator(scopes=("system/DiagnosticReport.c",))
        publisher.register(of("R-1", identified((NATIONAL, "1")), result("hb")))
        reader = running.another_client(publisher.tenant, scopes=("system/Observation.rs",))

        assert included(reader, QUERY) == set()
        (said,) = remarks(reader, QUERY)

    assert said == "no Patient is included: the access token has no scope for it"
