"""A body that is corrected before it is accepted: its digest, its remarks, and its refusal."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from fhirpub.app.context import create_context
from fhirpub.config.settings import Config, FhirConfig
from fhirpub.interactions.context import Context
from fhirpub.interactions.register import Candidate, Rejected
from tests.bodies import document, register_body
from tests.unit.interactions import registering
from tests.unit.interactions.updating import CONTEXT, TENANT

LENIENT = create_context(
    replace(Config(), fhir=FhirConfig(empty_values="drop")), clock=CONTEXT.clock
)


def prepared(context: Context, **changes: Any) -> Candidate | Rejected:
    body = register_body("R-1")
    body["parameter"][2]["resource"] |= changes
    return registering.prepared(context, body, tenant=TENANT)


def test_what_is_corrected_has_the_digest_of_what_was_sent() -> None:
    accepted, refused = (prepared(one, language="") for one in (LENIENT, CONTEXT))
    right = prepared(LENIENT)

    assert isinstance(accepted, Candidate)
    assert isinstance(refused, Rejected)
    assert accepted.digest == refused.digest != right.digest
    assert isinstance(right, Candidate)
    assert accepted.version.body == right.version.body


def test_what_stays_wrong_is_refused_with_what_was_corrected() -> None:
    refused = prepared(LENIENT, language="", status="nonsense")

    assert isinstance(refused, Rejected)
    assert [
        (one.severity, one.expression.rpartition(".")[2]) for one in refused.refusal.issues
    ] == [
        ("error", "status"),
        ("warning", "language"),
    ]


def warnings_of(accepted: Candidate) -> list[tuple[str, str]]:
    """Return the places and codes of the warnings that the response to a registration has."""
    issues = json.loads(accepted.version.response)["parameter"][-1]["resource"]["issue"]
    return [
        (one["expression"][0], one["details"]["coding"][0]["code"])
        for one in issues
        if one["severity"] == "warning"
    ]


def test_what_is_corrected_is_accepted_with_a_warning() -> None:
    corrected, right = prepared(LENIENT, language=""), prepared(LENIENT)

    assert isinstance(corrected, Candidate)
    assert isinstance(right, Candidate)
    added = [one for one in warnings_of(corrected) if one not in warnings_of(right)]
    assert added == [("Parameters.parameter[2].resource.language", "value-empty")]


def test_the_documents_of_what_is_corrected_are_stored_as_they_were_sent() -> None:
    forms = [document(bytes(range(256)) * 400)]
    corrected = prepared(LENIENT, language="", presentedForm=forms)
    right = prepared(LENIENT, presentedForm=forms)

    assert isinstance(corrected, Candidate)
    assert isinstance(right, Candidate)
    assert len(corrected.blobs) == 1
    assert corrected.blobs == right.blobs
