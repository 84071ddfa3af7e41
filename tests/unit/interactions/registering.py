"""Registrations of one report in a real store, without HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.context import Context
from fhirpub.interactions.register import (
    Candidate,
    Rejected,
    find_first,
    prepare_registration,
)
from fhirpub.interactions.submission.parameters import from_parameters
from fhirpub.runtime.stages import run_to_completion
from fhirpub.storage.contract import Version
from tests.bodies import SYSTEM, register_body
from tests.unit.interactions.patients.people import TENANT

KEY = ("DiagnosticReport", SYSTEM, "R-1")
Given = dict[str, Any]


class Quota:
    """Notes what is reserved, and what became of it."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.outcomes: list[bool] = []

    def __call__(self, size: int) -> Callable[..., None]:
        self.sizes.append(size)

        def finish(*, created: bool) -> None:
            self.outcomes.append(created)

        return finish


def prepared(context: Context, body: Given, **changes: Any) -> Candidate | Rejected:
    return run_to_completion(
        prepare_registration(
            context,
            dumps(body),
            is_xml=False,
            read_body=from_parameters,
            type_name="DiagnosticReport",
            **{"tenant": TENANT, **changes},
        )
    )


def candidate(context: Context, **changes: Any) -> Candidate:
    found = prepared(context, register_body("R-1", **changes))
    assert isinstance(found, Candidate)
    return found


def rejected(context: Context, **changes: Any) -> Rejected:
    found = prepared(context, register_body("R-1", **changes))
    assert isinstance(found, Rejected)
    return found


async def found(context: Context) -> Version | None:
    return await find_first(KEY, tenant=TENANT, context=context)
