"""The events of updates and revisions of a composition."""

from __future__ import annotations

from typing import Any

from fhirpub.plugin_api import Change, CompositionEvents, Event

AFTER = {"identifier": [{"system": "s", "value": "V 1"}], "status": "amended"}
BEFORE = {**AFTER, "status": "final"}


def event_of(**changes: Any) -> Event:
    usual: dict[str, Any] = {
        "id": "1", "version": 2, "after": AFTER, "before": BEFORE, "parts": {}
    }  # fmt: skip
    (event,) = CompositionEvents("report")(Change(**usual | changes))
    return event


def test_an_update_has_the_status_of_before_as_well() -> None:
    event = event_of()

    assert event.type == "report.updated"
    assert (event.data["status"], event.data["previous_status"]) == ("amended", "final")
    assert (event.data["id"], event.data["version"]) == ("1", 2)
    assert {"added", "changed", "author"}.isdisjoint(event.data)


def test_a_registration_has_no_status_of_before() -> None:
    event = event_of(before=None, version=1)

    assert event.type == "report.created"
    assert "previous_status" not in event.data


def test_the_identifier_is_the_key_in_its_normal_form() -> None:
    event = event_of(identifier={"system": "s", "value": "V1", "use": "usual"})

    assert event.data["identifier"] == {"system": "s", "value": "V1"}


def test_without_a_key_the_identifier_is_the_first_of_the_resource() -> None:
    assert event_of().data["identifier"] == {"system": "s", "value": "V 1"}


def test_a_revision_names_what_it_added_and_changed() -> None:
    added = event_of(added=("Observation/a",))
    changed = event_of(changed=("Observation/b", "Observation/c"))

    assert (added.data["added"], added.data["changed"]) == (["Observation/a"], [])
    assert changed.data["changed"] == ["Observation/b", "Observation/c"]
    assert changed.data["added"] == []


def test_the_author_is_the_practitioner_that_came_with_it() -> None:
    practitioner = {"name": [{"family": "Roe", "given": ["Ada"]}], "birthDate": "1970-01-02"}

    event = event_of(parts={"practitioner": practitioner, "patient": {"gender": "female"}})

    assert event.data["author"] == {
        "author_type": "practitioner",
        "lastname": "Roe",
        "firstname": "Ada",
        "date_of_birth": "1970-01-02",
    }
