"""A repetition of a registration, with the same content and with other content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.settings import Config, FhirConfig
from fhirpub.tenant import Tenant
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import document, register_body

BASE = "/fhir/r4/DiagnosticReport"
REGISTER = f"{BASE}/$register"
XML = {"Content-Type": "application/fhir+xml"}
WRONG_HASH = {"presentedForm": [document(hash="0" * 64)]}

Serve = Callable[..., Integrator]


@pytest.fixture
def serve(tmp_path: Path, store_url: Callable[[str], str]) -> Iterator[Serve]:
    """Return a function that serves one store with settings of ``[fhir]`` or of all."""
    url = store_url("repetition")
    tenants: list[Tenant] = []
    with ExitStack() as running:

        def start(config: Config | None = None, **fhir: Any) -> Integrator:
            running.close()
            config = config or replace(Config(), fhir=FhirConfig(**fhir))
            service = running.enter_context(RunningService(tmp_path, config=config, store_url=url))
            if tenants:
                return service.another_client(tenants[0])
            lab = service.integrator()
            tenants.append(lab.tenant)
            return lab

        yield start


def test_the_same_content_gets_the_first_answer_when_a_setting_refuses_it(serve: Serve) -> None:
    first = serve().register(register_body("R-1", **WRONG_HASH))
    strict = serve(hash_check="strict")

    again = strict.register(register_body("R-1", **WRONG_HASH))

    assert (again.status, again.body) == (201, first.body)
    assert strict.register(register_body("R-2", **WRONG_HASH)).status == 422


def test_the_same_content_gets_the_first_answer_when_a_limit_refuses_it(serve: Serve) -> None:
    first = serve().register(register_body("R-1"))
    small = replace(Config(), limits=replace(Config().limits, attachment_bytes=10))

    again = serve(small).register(register_body("R-1"))

    assert (again.status, again.body) == (201, first.body)


def test_other_content_is_validated_first(serve: Serve) -> None:
    serve().register(register_body("R-1", **WRONG_HASH))
    strict = serve(hash_check="strict")

    answer = strict.register(register_body("R-1", **WRONG_HASH, conclusion="MALIGNANT"))

    assert answer.status == 422
