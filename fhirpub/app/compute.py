"""A process that prepares and serializes large or dense resources for the one that serves them.

`fhirpub.runtime.process_pool` starts it: ``python -m fhirpub.app.compute``. It opens no store.
"""

from __future__ import annotations

from fhirpub.app.context import create_context
from fhirpub.config.settings import Config
from fhirpub.interactions.context import Context
from fhirpub.runtime.clock import now_ms
from fhirpub.runtime.job_loop import serve_jobs
from fhirpub.runtime.logging import configure

MODULE = "fhirpub.app.compute"


def open_context(config: Config) -> Context:
    """Return what the functions work with, which are pure: they reach no store."""
    configure(level=config.logs.level, form=config.logs.format)
    return create_context(config, clock=now_ms)


if __name__ == "__main__":
    serve_jobs(open_context)
