"""Tests that what is accepted fast is stored as the long way would store it (ADR 31)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from fhirpub.errors import Refused
from fhirpub.fhir.elements import element_of
from fhirpub.fhir.strict_json import dumps, loads
from fhirpub.interactions.context import Context
from fhirpub.interactions.register import Candidate, Prepared, Rejected, prepare_registration
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.interactions.update import Update, prepare
from fhirpub.interactions.validation.acceptance import accept
from fhirpub.interactions.validation.usual import find_plain
from fhirpub.interactions.validation.validation import normalize, take_documents
from fhirpub.runtime.stages import run_to_completion
from fhirpub.storage.contract import Version
from fhirpub.tenant import Tenant
from fhirpub.testing.contracts.resource_type.members import ResourceMemberContract
from fhirpub.testing.mutations import LIKELY, mutants, near_misses
from fhirpub.testing.service import RunningService

_TENANT = Tenant.new("Contract", created=0)
_NOW = 1_800_000_000_000
_MUTANTS = 300
_ALL_COMPARED = 40
"""Of what is not accepted fast one of so many is compared: the long way has both of them."""
_MIN_ACCEPTED = 50
_MAX_PATCHES, _MIN_UPDATED = 400, 25
_MIN_SHARE = 0.75


class ResourceAcceptanceContract(ResourceMemberContract):
    """Bodies that are nearly right lead to the same record, or to the same words, both ways."""

    def test_what_is_accepted_fast_is_what_the_long_way_makes_of_it(
        self, service: RunningService
    ) -> None:
        fast = replace(service.services.context, clock=lambda: _NOW)
        slow = replace(fast, accepts_fast=False)
        accepted = missed = 0
        for number, body in enumerate(self._bodies()):
            raw = dumps(body)
            is_accepted = self._is_accepted_fast(raw, fast)
            if not is_accepted and number % _ALL_COMPARED:
                continue

            found = self._prepared(raw, fast)

            assert repr(found) == repr(self._prepared(raw, slow)), raw
            assert isinstance(found, Candidate) or not is_accepted
            accepted += is_accepted
            missed += _ALL_COMPARED * (isinstance(found, Candidate) and not is_accepted)
        assert accepted >= _MIN_ACCEPTED
        assert accepted >= (accepted + missed) * _MIN_SHARE

    def test_an_update_that_is_accepted_fast_is_what_the_long_way_makes_of_it(
        self, service: RunningService
    ) -> None:
        fast = replace(service.services.context, clock=lambda: _NOW)
        slow = replace(fast, accepts_fast=False)
        first = self._prepared(dumps(self.body(self.fresh_value())), fast)
        assert isinstance(first, Candidate)
        accepted = 0
        for patch in self._patches():
            raw = dumps(patch)

            found = self._updated(raw, first.version, fast)

            assert repr(found) == repr(self._updated(raw, first.version, slow)), raw
            accepted += isinstance(found, Update)
        assert accepted >= _MIN_UPDATED

    def _patches(self) -> Iterator[Any]:
        """Yield partial resources with what is nearly right in the elements of a body."""
        name, updatable = self.resource_type.name, self.resource_type.updatable
        for body in islice(self._bodies(), _MAX_PATCHES):
            entries = body.get("parameter") if isinstance(body, dict) else None
            for entry in entries if isinstance(entries, list) else ():
                resource = entry.get("resource") if isinstance(entry, dict) else None
                if isinstance(resource, dict) and resource.get("resourceType") == name:
                    fields = {
                        field: value
                        for field, value in resource.items()
                        if element_of(field, updatable) in updatable
                    }
                    yield {"resourceType": name, **fields}

    def _updated(self, raw: bytes, latest: Version, context: Context) -> Update | tuple[Any, ...]:
        """Return the next version, or what refuses it."""
        work = prepare(context, raw, form="fhir", is_xml=False, latest=latest, tenant=_TENANT)
        try:
            return run_to_completion(work)
        except Refused as refusal:
            return type(refusal).__name__, refusal.issues

    def _bodies(self) -> Iterator[Any]:
        body, with_members = self.body(self.fresh_value()), self.body_with_members()
        systems = (*LIKELY["system"], f"https://lab.example/{_TENANT.id}")
        statuses = sorted(self.resource_type.update_statuses)
        yield from (body, with_members)
        yield from near_misses(body, {**LIKELY, "system": systems, "status": statuses})
        yield from mutants(body, seed=1, number=_MUTANTS)
        yield from mutants(with_members, seed=2, number=_MUTANTS if self.repeating else 0)

    def _prepared(self, raw: bytes, context: Context) -> Prepared | Refused | tuple[Any, ...]:
        """Return what would be stored, or what refuses it."""
        work = prepare_registration(
            context,
            raw,
            is_xml=False,
            read_body=from_parameters,
            type_name=self.resource_type.name,
            tenant=_TENANT,
        )
        try:
            prepared = run_to_completion(work)
        except Refused as refusal:
            return type(refusal).__name__, refusal.issues
        if isinstance(prepared, Rejected):
            refused = prepared.refusal
            return prepared.id, prepared.digest, type(refused).__name__, refused.issues
        return prepared

    def _is_accepted_fast(self, raw: bytes, context: Context) -> bool:
        """Return whether a body takes the short way."""
        try:
            submission = from_parameters(loads(raw), context.types[self.resource_type.name])
            take_documents(submission)
            zones = normalize(submission, context)
        except Refused:
            return False
        find_plain(submission, context)
        work = accept(submission, zones, context, _TENANT.id)
        return not submission.undecodable and run_to_completion(work) is not None
