"""A plugin of pytest for ``scripts/mutants``: what is cached before a run is forgotten.

Each mutant is tried in a process that is forked after all tests ran once. What our functions
cached in it would be returned instead of what the mutant computes, and loggers that were used in
it would write past what captures their lines.
"""

from __future__ import annotations

import sys

import structlog

_LOGGER = type(structlog.get_logger())


def pytest_sessionstart() -> None:
    """Empty the caches of all functions of our modules, and what their loggers have cached."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("fhirpub", "fhirpub_hl7v2", "fhirpub_amqp"):
            for value in vars(module).values():
                clear = getattr(value, "cache_clear", None)
                if callable(clear):
                    clear()
                if type(value) is _LOGGER:
                    vars(value).pop("bind", None)
