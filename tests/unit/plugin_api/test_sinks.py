"""Events on their way to a sink."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fhirpub.plugin_api.sinks import EventSink, SinkEvent


def an_event(body: Any) -> SinkEvent:
    return SinkEvent(
        tenant="t",
        endpoint="e",
        destination="",
        event_id="evt_1",
        event_type="x.created",
        sequence=1,
        attempt=1,
        body=json.dumps(body).encode(),
        headers={"webhook-signature": "v1,geheim"},
    )


@pytest.mark.parametrize(
    ("body", "resource"),
    [
        ({"data": {"resource_type": "Flag", "id": "7"}}, "Flag/7"),
        ({"data": {"id": "7"}}, ""),
        ({"data": {}}, ""),
        ({}, ""),
    ],
)
def test_an_event_names_the_resource_that_it_is_about(body: Any, resource: str) -> None:
    assert an_event(body).resource == resource


def test_a_printed_event_shows_neither_its_body_nor_its_signature() -> None:
    text = repr(an_event({"data": {"lastname": "Roe"}}))

    assert "evt_1" in text
    assert "Roe" not in text
    assert "geheim" not in text


async def test_a_sink_without_connections_has_nothing_to_close() -> None:
    class Sink(EventSink):
        name = "x"

        async def send(self, event: SinkEvent) -> None:
            raise NotImplementedError

    await Sink().close()
