"""The metrics of a service that runs in this process."""

from __future__ import annotations

from prometheus_client import parser

from fhirpub.testing.service import RunningService


def text_of(service: RunningService, accept: str = "") -> str:
    """Return the metrics in the form that is asked for."""

    async def text() -> bytes:
        return service.services.metrics.text(accept)[0]

    return service.call(text()).decode()


def shown(service: RunningService, name: str, **labels: str) -> float:
    """Return the value of a sample, or the sum of several; 0 if there is none."""
    return sum(
        sample.value
        for family in parser.text_string_to_metric_families(text_of(service))
        for sample in family.samples
        if sample.name == f"fhirpub_{name}" and labels.items() <= sample.labels.items()
    )


class Moves:
    """The growth of samples since this object was created."""

    def __init__(self, service: RunningService) -> None:
        self._service = service
        self._before = self._now()

    def by(self, name: str, **labels: str) -> float:
        key = (f"fhirpub_{name}", frozenset(labels.items()))
        return self._now().get(key, 0.0) - self._before.get(key, 0.0)

    def _now(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in parser.text_string_to_metric_families(text_of(self._service))
            for sample in family.samples
        }
