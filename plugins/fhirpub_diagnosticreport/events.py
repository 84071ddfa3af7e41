"""What the outside world is told of a report."""

from __future__ import annotations

from collections.abc import Iterator

from fhirpub.plugin_api import Change, Event


def events_of(change: Change) -> Iterator[Event]:
    """Tell of a report that was registered or updated; nothing of the patient goes along."""
    report = change.after
    data = {
        "id": change.id,
        "version": change.version,
        "identifier": {
            "system": report["identifier"][0]["system"],
            "value": report["identifier"][0]["value"],
        },
        "status": report["status"],
    }
    if change.before is None:
        yield Event(type="diagnostic_report.created", data=data)
        return
    data["previous_status"] = change.before["status"]
    yield Event(type="diagnostic_report.updated", data=data)
