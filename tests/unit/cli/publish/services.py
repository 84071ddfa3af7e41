"""A service to publish at, the types that it serves, and responses that it may give."""

from __future__ import annotations

from functools import cache
from typing import Any

from fhirpub.app.context import create_context
from fhirpub.cli.publish.service import Service
from fhirpub.cli.publish.submission import Types
from fhirpub.config.settings import Config
from fhirpub.runtime.clock import now_ms

PUBLISHED: Any = (201, {"Location": "https://a.example/fhir/r4/DiagnosticReport/7/_history/1"}, {})
REFUSED: Any = (403, {}, {"resourceType": "OperationOutcome", "issue": []})


def service_at(base: str = "https://api.example", **changes: Any) -> Service:
    """Return a service of the usual types, with a limit that no report of a test reaches."""
    usual: dict[str, Any] = {"grant": {}, "cacert": None, "limit": 10**7}
    if "types" not in changes:
        usual["types"] = _usual_types()
    return Service(base=base, **usual | changes)


@cache
def _usual_types() -> Types:
    return create_context(Config(), clock=now_ms).types
