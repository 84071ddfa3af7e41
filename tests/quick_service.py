"""The service as a process that looks at its store and its keys more often than the released one.

What takes half a minute to reach every worker takes seconds in ``ServiceProcess(...,
module=QUICK)``. With FHIRPUB_TEST_FULL set, it is the released one.
"""

from __future__ import annotations

from types import ModuleType

from fhirpub.__main__ import main
from fhirpub.app import secret_checks
from fhirpub.auth import client_status, keys, tokens
from fhirpub.config.loader import variable
from fhirpub.web.admission import quota_exchange

QUICK = "fhirpub" if variable("FHIRPUB_TEST_FULL") else "tests.quick_service"
TIMES = 10.0
"""So many times as often."""
_INTERVALS: list[tuple[ModuleType, str]] = [
    (keys, "FRESH_SECONDS"),
    (tokens, "FRESH_SECONDS"),
    (client_status, "_FRESH_MS"),
    (quota_exchange, "OVERRIDE_SECONDS"),
    (secret_checks, "_RELOAD_SECONDS"),
]

if __name__ == "__main__":
    for module, name in _INTERVALS:
        vars(module)[name] /= TIMES
    main()
