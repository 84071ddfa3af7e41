"""The sinks of enabled plugins, checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fhirpub.config.settings import Config
from fhirpub.plugin_api.sinks import EventSink
from fhirpub.plugin_host.hooks import PluginHooks
from fhirpub.plugin_host.settings import plugin_context

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


def load_event_sinks(config: Config) -> Sequence[EventSink]:
    """Return new sinks of the enabled plugins, for one event loop. Raises PluginError."""
    hooks = PluginHooks(config.plugins.enabled)
    if not hooks.owners_of("fhirpub_event_sinks"):
        return ()
    found: dict[str, tuple[str, EventSink]] = {}
    context = plugin_context(config, hooks)
    kind: Any = EventSink  # abstract
    for plugin, sink in hooks.declared("fhirpub_event_sinks", kind, context=context):
        where, name = hooks.sources[plugin].where, getattr(sink, "name", None)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            said = "has a sink whose name is not of lower-case letters, digits and hyphens"
            hooks.report(plugin, [f"{where}: {said}"])
        elif name in found:
            hooks.report(plugin, [f"{where}: the sink {name} is already of {found[name][0]}"])
        else:
            found[name] = (plugin, sink)
    hooks.require_no_problems()
    return [sink for _, sink in found.values()]
