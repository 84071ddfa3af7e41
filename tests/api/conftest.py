"""Every answer that the tests of the API get is shown to independent validators of R4."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import wraps
from typing import Any

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.service import Answer, Service
from tests.corpus.validator import Validator

_JUDGES = ("fhir.resources", "fhirclient")
_LARGEST = 64 * 1024


@pytest.fixture(autouse=True, scope="session")
def answers_are_valid_r4() -> Iterator[None]:
    """Gather what the service answers in FHIR JSON, and have it judged at the end.

    An answer fails if all judges are against it: each has opinions of its own.
    """
    gathered: dict[bytes, str] = {}
    send = Service.request

    @wraps(send)
    def request(self: Service, *arguments: Any, **named: Any) -> Answer:
        answer = send(self, *arguments, **named)
        fhir = answer.headers.get("content-type", "").startswith("application/fhir+json")
        if fhir and 0 < len(answer.body) <= _LARGEST:
            gathered.setdefault(answer.body, variable("PYTEST_CURRENT_TEST"))
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Service, "request", request)
        yield
    judges = [Validator(judge) for judge in _JUDGES]
    try:
        told = [_judged(body, test, judges) for body, test in gathered.items()]
    finally:
        for judge in judges:
            judge.close()
    refused = [name for name in told if name]
    assert not refused, f"{len(refused)} of {len(told)} answers:\n" + "\n".join(refused[:20])


def _judged(body: bytes, test: str, judges: list[Validator]) -> str:
    """Return what is wrong with an answer, or nothing."""
    resource = json.loads(body)
    faults = []
    for judge in judges:
        fault = judge.fault(resource)
        if fault is None:
            return ""
        faults.append(f"{fault.validator}: {fault.reason}")
    return f"{test}: {'; '.join(faults)}"
