"""What others send is accepted fast, and stored as the long way would store it.

The contract of each resource type compares both ways for bodies that are nearly right.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from fhirpub.app.context import create_context
from fhirpub.config.settings import Config
from fhirpub.errors import InvalidContent
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.interactions.register import (
    Candidate,
    prepare_registration,
    receive_registration,
)
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.validation.acceptance import accept
from fhirpub.interactions.validation.usual import find_plain
from fhirpub.interactions.validation.validation import normalize, take_documents
from fhirpub.runtime.stages import run_to_completion
from fhirpub.tenant import Tenant
from tests.bodies import register_body
from tests.corpus import bodies as corpus

CORPUS = Path(__file__).parents[3] / "corpus"
TENANT = Tenant("00000000-0000-4000-8000-000000000001", "Lab", b"s" * 32, 0, disabled=False)
FAST = create_context(Config(), clock=lambda: 1_800_000_000_000)
SLOW = replace(FAST, accepts_fast=False)
TYPE = "DiagnosticReport"


def third_party_bodies() -> Iterator[Any]:
    """Yield the reports and panels of the corpus as bodies of ``$register``."""
    for name in ("reports", "panels"):
        with gzip.open(CORPUS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for entry in map(json.loads, lines):
                yield entry.get("body") or corpus.register_body(entry, "completed")


def prepared(raw: bytes, context: Any) -> Any:
    """Return what becomes of a body."""
    work = prepare_registration(
        context, raw, is_xml=False, read_body=from_parameters, type_name=TYPE, tenant=TENANT
    )
    try:
        return run_to_completion(work)
    except InvalidContent as refusal:
        return refusal.issues


def is_accepted_fast(body: Any) -> bool:
    """Return whether a body takes the short way."""
    submission = from_parameters(loads(dumps(body)), FAST.types[TYPE])
    take_documents(submission)
    zones = normalize(submission, FAST)
    find_plain(submission, FAST)
    return run_to_completion(accept(submission, zones, FAST, TENANT.id)) is not None


def test_valid_bodies_of_third_parties_are_accepted_fast_and_stored_alike() -> None:
    valid = accepted = 0
    for body in third_party_bodies():
        found = prepared(dumps(body), FAST)
        if isinstance(found, Candidate):
            valid += 1
            accepted += is_accepted_fast(body)
            assert found == prepared(dumps(body), SLOW)

    assert valid > 300
    assert accepted > valid * 3 / 4


def test_what_is_read_has_the_identifier_and_the_digest_that_are_stored() -> None:
    valid = 0
    for body in third_party_bodies():
        raw = dumps(body)
        stored = prepared(raw, FAST)
        if not isinstance(stored, Candidate):
            continue
        stages = receive_registration(
            FAST, raw, is_xml=False, read_body=from_parameters, type_name=TYPE
        )

        received = run_to_completion(stages)

        assert received.key is not None
        assert TENANT.resource_id(*received.key) == stored.id
        assert received.submission.digest == stored.digest
        valid += 1
    assert valid > 300


def test_a_time_with_an_offset_that_no_zone_has_is_left_to_the_long_way() -> None:
    body = register_body("A-1")
    body["parameter"][-1]["resource"]["issued"] = "2026-11-20T10:00:00+15:00"

    assert not is_accepted_fast(body)
    assert repr(prepared(dumps(body), FAST)) == repr(prepared(dumps(body), SLOW))
