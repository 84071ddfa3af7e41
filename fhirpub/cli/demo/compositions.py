"""The other resources that the demo publishes: one of each type that an EHR has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from fhirpub.cli.demo.printer import Step

PLUGINS = ("encounter", "medicationrequest", "servicerequest", "devicerequest", "observation")
"""The plugins that serve them."""

_SENTENCES = {
    "encounter": "Publish a consultation as an EHR does: with the practitioner as its author.",
    "medicationRequest": "Publish the prescription of a medication.",
    "serviceRequest": "Publish the order of an examination.",
    "deviceRequest": "Publish the prescription of a device.",
    "observation": "Publish a vital sign.",
}
_EVENTS = {
    "encounter": "encounter_outpatient.created",
    "medicationRequest": "medication_request.created",
    "serviceRequest": "service_request.created",
    "deviceRequest": "device_request.created",
    "observation": "observation.created",
}
_COMING_ALONG = ("patient", "organization")


def bodies(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a body of ``$register`` for each resource, by the name of its file.

    Patient and organization are those of the report.
    """
    sample = json.loads((files("fhirpub.cli.demo") / "sample" / "compositions.json").read_bytes())
    author, *own = sample["parameter"]
    parts = [parameter for parameter in report["parameter"] if parameter["name"] in _COMING_ALONG]
    return {_file(item["name"]): {**sample, "parameter": [*parts, author, item]} for item in own}


def steps() -> Iterator[tuple[Step, str]]:
    """Yield the step that publishes each resource, and the event that it causes."""
    for name, sentence in _SENTENCES.items():
        type_name = name[0].upper() + name[1:]
        step = Step(
            sentence=sentence,
            method="POST",
            path=f"/fhir/r4/{type_name}/$register",
            file=_file(name),
            prefer="return=minimal",
            expected=201,
        )
        yield step, _EVENTS[name]


def _file(name: str) -> str:
    return f"{name}.json"
