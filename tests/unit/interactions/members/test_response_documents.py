"""The short form of a type that must have documents: they are shown by their addresses."""

from __future__ import annotations

import json
from dataclasses import replace

from fhirpub.app.context import create_context
from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.register import Candidate, prepare_registration
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.runtime.stages import run_to_completion
from tests.clinical import document_reference, with_author
from tests.unit.interactions.patients.people import START, TENANT

TYPE = "DocumentReference"


def test_a_document_that_a_resource_must_have_is_in_its_short_form() -> None:
    config = replace(Config(), plugins=PluginsConfig(enabled=["documentreference"]))
    context = create_context(config, clock=lambda: START)
    sent = with_author(document_reference("D-1", system="https://lab.example/documents"))

    made = run_to_completion(
        prepare_registration(
            context,
            dumps(sent),
            is_xml=False,
            read_body=from_parameters,
            type_name=TYPE,
            tenant=TENANT,
        )
    )

    assert isinstance(made, Candidate), made
    short = json.loads(made.version.response)["parameter"][0]["resource"]
    (content,) = short["content"]
    assert content["attachment"]["url"] == f"{context.fhir_url}/Binary/{made.id}.1.1"
    assert "data" not in content["attachment"]
    assert "description" not in short
