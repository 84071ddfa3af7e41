"""The settings of the broker, and what becomes of events without one."""

from __future__ import annotations

import pytest

from fhirpub.plugin_api import PluginContext
from fhirpub_amqp import fhirpub_event_sinks
from fhirpub_amqp.settings import AmqpSettings
from fhirpub_amqp.sink import AmqpSink
from tests.amqp.events import EVENT
from tests.ports import free_port


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"url": "http://broker"}, "url must begin with amqp:// or amqps://"),
        ({"exchange": ""}, "exchange must not be empty"),
        ({"connect_seconds": 0.0}, "connect_seconds must be above 0"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        AmqpSettings(**fields)  # type: ignore[arg-type]


def test_without_a_broker_there_is_no_sink() -> None:
    def sinks(url: str) -> int:
        groups = {AmqpSettings: AmqpSettings(url=url)}
        context = PluginContext(base_url="", environment="sandbox", groups=groups)
        return len(fhirpub_event_sinks(context))

    assert (sinks(""), sinks("amqp://broker")) == (0, 1)


async def test_a_broker_that_is_away_is_reported() -> None:
    sink = AmqpSink(AmqpSettings(url=f"amqp://guest:guest@127.0.0.1:{free_port()}/"))

    with pytest.raises(OSError, match=r"[Cc]onnect"):
        await sink.send(EVENT)
    await sink.close()
