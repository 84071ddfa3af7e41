"""Plugins as source text, installed for one test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.errors import PluginError
from fhirpub.plugin_host.loader import load

GOOD_TYPE = """ResourceType(
    name="Flag",
    parts=(Part(name="patient", type="Patient", referred_by="subject"),),
    create_statuses=frozenset({"active"}),
    update_statuses=frozenset({"active", "inactive"}),
    %s
)"""

MODULE = """
from fhirpub.plugin_api import Part, ResourceType, hookimpl

@hookimpl
def fhirpub_resource_types():
    return [%s]
"""

V2 = "fhirpub.plugins.v2"
"""The group of entry points with all hooks."""
SINK = """
from fhirpub.plugin_api import EventSink, hookimpl

class Sink(EventSink):
    def __init__(self, name):
        self.name = name
    async def send(self, event):
        pass

@hookimpl
def fhirpub_event_sinks(context):
    return [%s]
"""

Install = Callable[..., str]


def declaring(extra: str = "") -> str:
    return MODULE % (GOOD_TYPE % extra)


def sinks_named(*names: object) -> str:
    """Return the source of a plugin that declares sinks."""
    return SINK % ", ".join(f"Sink({name!r})" for name in names)


def enabling(*plugins: str) -> Config:
    """Return settings with plugins beside that of reports."""
    return Config(plugins=PluginsConfig(enabled=["diagnosticreport", *plugins]))


def refusal_of(read: Callable[[Config], Any], *plugins: str) -> list[str]:
    """Return why what plugins declare cannot be read, line by line."""
    with pytest.raises(PluginError) as refusal:
        read(enabling(*plugins))
    return str(refusal.value).splitlines()


def words_of(enabled: list[str]) -> list[str]:
    """Return the error about the plugins, line by line."""
    with pytest.raises(PluginError) as refusal:
        load(enabled)
    return str(refusal.value).splitlines()
