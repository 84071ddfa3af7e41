"""Events that a plugin may send."""

from __future__ import annotations

import pytest

from fhirpub.plugin_api import Event


def test_an_event_is_named_after_what_happened_to_what() -> None:
    assert Event(type="medication_request.created", data={}).type == "medication_request.created"


@pytest.mark.parametrize("name", ["", "created", "a.b.c", "A.b", "a-b.c", "a.b\n", ".b", "a."])
def test_an_event_with_another_name_cannot_be_made(name: str) -> None:
    with pytest.raises(ValueError, match="composition_type"):
        Event(type=name, data={})
