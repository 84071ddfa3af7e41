"""The sinks of enabled plugins, checked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fhirpub.config.settings import Config
from fhirpub.plugin_api.sinks import EventSink
from fhirpub.plugin_host.functions import matches
from fhirpub.plugin_host.settings import declarations

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


def load_event_sinks(config: Config) -> Sequence[EventSink]:
    """Return new sinks of the enabled plugins, for one event loop. Raises PluginError."""
    found: dict[str, tuple[str, EventSink]] = {}
    with declarations(config, "fhirpub_event_sinks", EventSink) as (hooks, declared):
        for plugin, sink in declared:
            where, name = hooks.sources[plugin].where, getattr(sink, "name", "")
            if not matches(_NAME, name):
                said = "has a sink whose name is not of lower-case letters, digits and hyphens"
                hooks.report(plugin, [f"{where}: {said}"])
            elif name in found:
                hooks.report(plugin, [f"{where}: the sink {name} is already of {found[name][0]}"])
            else:
                found[name] = (plugin, sink)
    return [sink for _, sink in found.values()]
