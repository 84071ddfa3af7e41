"""A stored report, and what an update makes of it without a store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fhirpub.app.context import create_context
from fhirpub.config.settings import Config, TypeConfig
from fhirpub.errors import Refused
from fhirpub.fhir.strict_json import dumps, loads_stored
from fhirpub.interactions.context import Context
from fhirpub.interactions.patch_formats import Form
from fhirpub.interactions.register import Candidate, prepare_registration
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.update import Update, prepare
from fhirpub.runtime.stages import run_to_completion
from fhirpub.storage.contract import Version
from fhirpub.tenant import Tenant
from fhirpub.testing.samples import LAB
from tests.bodies import register_body

NOW = 1_800_000_000_000
SECOND = 1_000
TENANT = Tenant(id=LAB, name="Lab", salt=b"s" * 32, created=0)
CONTEXT = create_context(Config(), clock=lambda: NOW)
LATER = replace(CONTEXT, clock=lambda: NOW + SECOND)
CLINICAL = replace(
    LATER,
    config=replace(Config(), by_type={"diagnosticreport": TypeConfig(state_flow="clinical")}),
)


def registered(**changes: Any) -> Version:
    """Return a report as it was registered."""
    prepared = run_to_completion(
        prepare_registration(
            CONTEXT,
            dumps(register_body("U-1", **changes)),
            is_xml=False,
            read_body=from_parameters,
            type_name="DiagnosticReport",
            tenant=TENANT,
        )
    )
    assert isinstance(prepared, Candidate)
    return prepared.version


def updated(
    latest: Version,
    content: Any = None,
    *,
    context: Context = LATER,
    form: Form = "fhir",
    **fields: Any,
) -> Update:
    """Return what an update makes, of fields in FHIR's own form or of any content."""
    body = {"resourceType": "DiagnosticReport", **fields} if content is None else content
    raw = body if isinstance(body, bytes) else dumps(body)
    return run_to_completion(
        prepare(context, raw, form=form, is_xml=raw[:1] == b"<", latest=latest, tenant=TENANT)
    )


def body_of(made: Update) -> dict[str, Any]:
    """Return the resource of an update as it is stored."""
    found: dict[str, Any] = loads_stored(made.version.body)
    return found


def refused(kind: type[Refused], latest: Version, **fields: Any) -> list[str]:
    """Return the places of what an update is refused for."""
    with pytest.raises(kind) as refusal:
        updated(latest, **fields)
    assert type(refusal.value) is kind
    return [issue.expression for issue in refusal.value.issues]
