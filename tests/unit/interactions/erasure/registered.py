"""Reports registered in a real store, as a service without HTTP registers them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

from fhirpub.app.context import create_context
from fhirpub.config.patients import PatientsConfig
from fhirpub.config.settings import Config
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.context import Context
from fhirpub.interactions.register import Candidate, prepare_registration
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.runtime.stages import run_to_completion
from fhirpub.storage.contract import Version
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import LAB, OTHER

NOW = 1_800_000_000_000
TYPE = "DiagnosticReport"
TENANT = Tenant(id=LAB, name="Lab", salt=b"s" * 32, created=0)
OTHER_TENANT = Tenant(id=OTHER, name="Other", salt=b"t" * 32, created=0)


@cache
def _without_store(*person_systems: str) -> Context:
    patients = PatientsConfig(person_systems=[*person_systems])
    return create_context(replace(Config(), patients=patients), clock=lambda: NOW)


def context_of(store: Store, *person_systems: str) -> Context:
    """Return what interactions work with, on this store.

    What has an identifier of one of these systems is the same Patient everywhere.
    """
    return replace(_without_store(*person_systems), resources=store)


async def registered(
    store: SqliteStore, body: dict[str, Any], *person_systems: str, tenant: Tenant = TENANT
) -> Version:
    """Register what a body holds; return its first version."""
    prepared = run_to_completion(
        prepare_registration(
            context_of(store, *person_systems),
            dumps(body),
            is_xml=False,
            read_body=from_parameters,
            type_name=TYPE,
            tenant=tenant,
        )
    )
    assert isinstance(prepared, Candidate), prepared
    assert await store.add(tenant.id, prepared.version, prepared.blobs)
    return prepared.version


def patient_of(version: Version) -> str:
    """Return the id of the Patient that a version refers to."""
    subject: str = json.loads(version.body)["subject"]["reference"]
    return subject.removeprefix("Patient/")
