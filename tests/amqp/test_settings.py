"""The settings of the broker, and what becomes of events without one."""

from __future__ import annotations

from dataclasses import fields

import pytest

from fhirpub.plugin_api import PluginContext
from fhirpub_amqp import fhirpub_event_sinks, fhirpub_settings
from fhirpub_amqp.settings import AmqpSettings
from fhirpub_amqp.sink import AmqpSink
from tests.amqp.events import EVENT
from tests.ports import free_port


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"url": "http://broker"}, "url must begin with amqp:// or amqps://"),
        ({"exchange": ""}, "exchange must not be empty"),
        ({"exchange": "", "declare": False}, "exchange must not be empty"),
        ({"exchange": "", "mandatory": False}, "exchange must not be empty"),
        ({"url": "broker"}, "url must begin with amqp:// or amqps://"),
        ({"connect_seconds": 0.0}, "connect_seconds must be above 0"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}"):
        AmqpSettings(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("scheme", ["amqp", "amqps"])
def test_a_broker_may_be_reached_with_and_without_tls(scheme: str) -> None:
    assert AmqpSettings(url=f"{scheme}://broker").url == f"{scheme}://broker"


def test_the_url_is_a_secret_as_it_has_a_password() -> None:
    (url,) = [one for one in fields(AmqpSettings) if one.name == "url"]

    assert url.metadata["secret"]
    assert "word" not in repr(AmqpSettings(url="amqp://user:word@broker"))


def test_the_plugin_has_its_settings() -> None:
    assert fhirpub_settings() is AmqpSettings


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
