"""The sources of codes of enabled plugins, called safely."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fhirpub.config.settings import Config
from fhirpub.plugin_api.terminology import CodeSource
from fhirpub.plugin_host.settings import declarations
from fhirpub.runtime.faults import where
from fhirpub.runtime.logging import logger

Knows = Callable[[str, str], bool | None]

_log = logger()


def load_code_sources(config: Config) -> Sequence[Knows]:
    """Return what the sources of the enabled plugins know, in their order. Raises PluginError."""
    with declarations(config, "fhirpub_terminology", CodeSource) as (_hooks, found):
        return [_SafeSource(plugin, source).knows for plugin, source in found]


class _SafeSource:
    """A source whose failures reach no request: the first of each place is logged."""

    def __init__(self, plugin: str, source: CodeSource) -> None:
        self._plugin = plugin
        self._source = source
        self._seen: set[str] = set()

    def knows(self, system: str, code: str) -> bool | None:
        """Return what the source knows of a code; None if it fails."""
        try:
            found: Any = self._source.knows(system, code)
        except Exception as problem:  # noqa: BLE001 - of any kind, from another's code
            facts = where(problem)
            if facts["place"] not in self._seen:
                self._seen.add(facts["place"])
                _log.error("terminology failed", plugin_name=self._plugin, **facts)
            return None
        return found if isinstance(found, bool) else None
