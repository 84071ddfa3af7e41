"""Reports and vaccinations of people, registered and moved in a real store without HTTP."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from functools import cache
from typing import Any

from fhirpub.app.context import create_context
from fhirpub.config.patients import PatientsConfig
from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.context import Context
from fhirpub.interactions.patients.read import read_patient
from fhirpub.interactions.register import Candidate, prepare_registration, register
from fhirpub.interactions.relinking import targets
from fhirpub.interactions.relinking.corrections import Target
from fhirpub.interactions.relinking.relink import Note, Relink, relink
from fhirpub.interactions.submission.held import Held, read_with
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.runtime.stages import run_to_completion
from fhirpub.storage.contract import Version
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import LAB
from fhirpub.testing.samples import OTHER as OTHER_LAB
from tests.bodies import patient
from tests.clinical import immunization, with_author
from tests.panels import panel

NATIONAL, HOSPITAL = "https://registry.example/persons", "https://hospital.example/mrn"
SYSTEMS = (NATIONAL, HOSPITAL)
TENANT = Tenant(id=LAB, name="Lab", salt=b"s" * 32, created=0)
OTHER = Tenant(id=OTHER_LAB, name="Other", salt=b"t" * 32, created=0)
START = 1_800_000_000_000
DAY = 86_400_000
NOTE = Note(operator="jmeier", reason="mistyped")
EVERYTHING = frozenset({"DiagnosticReport", "Immunization"})


@cache
def _without_store(*systems: str) -> Context:
    config = replace(
        Config(),
        patients=PatientsConfig(person_systems=[*systems]),
        plugins=PluginsConfig(enabled=["diagnosticreport", "vaccination"]),
    )
    return create_context(config, clock=lambda: START)


def context_of(store: Store, *systems: str, now: int = START) -> Context:
    """Return what interactions work with at a time, on a store."""
    return replace(_without_store(*systems), resources=store, clock=lambda: now)


def person(*identifiers: tuple[str, str], **changes: Any) -> dict[str, Any]:
    """Return a patient with these identifiers, each a system and a value."""
    every = [{"system": system, "value": value} for system, value in identifiers]
    return patient(**{"identifier": every or None, **changes})


def may(*types: str) -> Any:
    """Return what allows to read and to search patients that came with some types."""
    return lambda _right, asked: bool({*asked} & {*types})


class Ward:
    """A tenant's store, and the days on which something is published."""

    def __init__(
        self, store: SqliteStore, *systems: str, tenant: Tenant = TENANT, day: int = 0
    ) -> None:
        self.store = store
        self.systems = systems
        self.tenant = tenant
        self.day = day

    @property
    def now(self) -> int:
        return START + self.day * DAY

    @property
    def context(self) -> Context:
        return context_of(self.store, *self.systems, now=self.now)

    @property
    def named(self) -> dict[str, Any]:
        return {"tenant": self.tenant, "context": self.context}

    async def report(
        self, value: str, one: dict[str, Any], *entries: dict[str, Any], day: int | None = None
    ) -> Version:
        """Register a report of a person on the next day, or on a certain one."""
        body = panel(value, *entries)
        body["parameter"][0]["resource"] = one
        return await self.registered(body, "DiagnosticReport", day)

    async def vaccination(
        self, value: str, one: dict[str, Any], *, day: int | None = None
    ) -> Version:
        """Register a vaccination of a person on the next day, or on a certain one."""
        body = with_author(immunization(value, system="https://clinic.example/vaccinations"))
        body["parameter"][0]["resource"] = one
        return await self.registered(body, "Immunization", day)

    async def referring(self, value: str, patient_id: str, *, day: int | None = None) -> Version:
        """Register a report that comes with a reference to a Patient alone."""
        body = panel(value, subject={"reference": f"Patient/{patient_id}"})
        del body["parameter"][0]
        known = await read_patient(patient_id, **self.named)
        held = Held("patient", f"Patient/{patient_id}", "diagnosticReport", known.body)
        return await self.registered(body, "DiagnosticReport", day, held=held)

    async def moved(self, version: Version, target: Target, *, day: int | None = None) -> Relink:
        """Move a resource to another Patient on the next day, or on a certain one."""
        self.day = self.day + 1 if day is None else day
        return await relink(version.id, target, NOTE, store=self.store, **self.named)

    async def moved_to(
        self, version: Version, system: str, value: str, *, day: int | None = None
    ) -> Relink:
        """Move a resource to the person with an identifier."""
        return await self.moved(version, targets.person_with(system, value, **self.named), day=day)

    async def apart(self, version: Version) -> Relink:
        """Move a resource to a Patient of its own."""
        return await self.moved(version, targets.apart(version.id, **self.named))

    async def registered(
        self,
        body: dict[str, Any],
        type_name: str,
        day: int | None = None,
        *,
        held: Held | None = None,
    ) -> Version:
        """Register a body; of what is held it brings a reference alone."""
        self.day = self.day + 1 if day is None else day

        def read_held(content: Any, resource_type: Any) -> Any:
            assert held is not None
            return read_with(content, resource_type, read=from_parameters, held=held)

        prepared = run_to_completion(
            prepare_registration(
                self.context,
                dumps(body),
                is_xml=False,
                read_body=read_held if held else from_parameters,
                type_name=type_name,
                tenant=self.tenant,
            )
        )
        assert isinstance(prepared, Candidate), prepared
        registration = await register(prepared, None, **self.named)
        assert registration.created
        return registration.first


def id_of(version: Version) -> str:
    """Return the id of the Patient that a version refers to."""
    body = json.loads(version.body)
    reference: str = body.get("subject", body.get("patient"))["reference"]
    return reference.removeprefix("Patient/")


def issues_of(version: Version) -> list[dict[str, Any]]:
    """Return the issues of the response to a registration."""
    parameters = json.loads(version.response)["parameter"]
    issues: list[dict[str, Any]] = parameters[-1]["resource"]["issue"]
    return issues


def families(bodies: Collection[Version]) -> list[str]:
    """Return the family names of patients."""
    return [json.loads(one.body)["name"][0]["family"] for one in bodies]


def called(family: str) -> list[dict[str, Any]]:
    return [{"family": family, "given": ["Ana"]}]
