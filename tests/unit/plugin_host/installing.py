"""Plugins as source text, installed for one test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

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

Install = Callable[..., str]


def declaring(extra: str = "") -> str:
    return MODULE % (GOOD_TYPE % extra)


def words_of(enabled: list[str]) -> list[str]:
    """Return the error about the plugins, line by line."""
    with pytest.raises(PluginError) as refusal:
        load(enabled)
    return str(refusal.value).splitlines()
