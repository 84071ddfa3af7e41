"""Every response that the API tests get is checked by R4 validators, and its issues' codes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pytest

from fhirpub.config.loader import variable
from fhirpub.config.settings import AuthConfig, Config
from fhirpub.testing.service import Answer, RunningService, Service
from tests.corpus.validator import Validator
from tests.issue_codes import uncoded_issues

_VALIDATORS = ("fhir.resources", "fhirclient")
_LARGEST = 64 * 1024


@pytest.fixture(scope="module")
def strict(
    tmp_path_factory: pytest.TempPathFactory, store_url: Callable[[str], str]
) -> Iterator[RunningService]:
    """A service that demands scopes."""
    config = Config(auth=AuthConfig(enforce_scopes=True))
    folder = tmp_path_factory.mktemp("strict")
    with RunningService(folder, config=config, store_url=store_url("strict")) as running:
        yield running


@pytest.fixture(autouse=True, scope="session")
def answers_are_valid_r4() -> Iterator[None]:
    """Collect the service's FHIR JSON responses to these tests and validate them at the end.

    A response fails only if all validators reject it, because each has its own quirks. Each of
    its issues must have a code of the service that says what kind of problem it is.
    """
    gathered: dict[bytes, str] = {}
    send = Service.request

    @wraps(send)
    def request(self: Service, *arguments: Any, **named: Any) -> Answer:
        answer = send(self, *arguments, **named)
        fhir = answer.headers.get("content-type", "").startswith("application/fhir+json")
        is_gzip = answer.headers.get("content-encoding") == "gzip" and answer.body
        body = gzip.decompress(answer.body) if is_gzip else answer.body
        test = variable("PYTEST_CURRENT_TEST")
        if test.startswith("tests/api/") and fhir and 0 < len(body) <= _LARGEST:
            gathered.setdefault(body, test)
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Service, "request", request)
        yield
    validators = [Validator(name) for name in _VALIDATORS]
    try:
        verdicts = [_verdict(body, test, validators) for body, test in gathered.items()]
    finally:
        for validator in validators:
            validator.close()
    refused = [name for name in verdicts if name]
    assert not refused, f"{len(refused)} of {len(verdicts)} answers:\n" + "\n".join(refused[:20])


def _verdict(body: bytes, test: str, validators: list[Validator]) -> str:
    """Return what is wrong with a response, or nothing."""
    resource = json.loads(body)
    if uncoded := [*uncoded_issues(resource)]:
        return f"{test}: issues without a code of their own: {'; '.join(uncoded)}"
    faults = []
    for validator in validators:
        fault = validator.fault(resource)
        if fault is None:
            return ""
        faults.append(f"{fault.validator}: {fault.reason}")
    return f"{test}: {'; '.join(faults)}"
