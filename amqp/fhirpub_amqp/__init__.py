"""Sends events to a broker that speaks AMQP 0-9-1."""

from __future__ import annotations

from collections.abc import Sequence

from fhirpub.plugin_api import EventSink, PluginContext, hookimpl
from fhirpub_amqp.settings import AmqpSettings
from fhirpub_amqp.sink import AmqpSink


@hookimpl
def fhirpub_settings() -> type[AmqpSettings]:
    """Return where the broker is."""
    return AmqpSettings


@hookimpl
def fhirpub_event_sinks(context: PluginContext) -> Sequence[EventSink]:
    """Add the sink, if there is a broker."""
    settings = context.settings(AmqpSettings)
    return [AmqpSink(settings)] if settings.url else []
