"""The hooks that a plugin may implement, with their types."""

from __future__ import annotations

from collections.abc import Sequence

import pluggy

from fhirpub.plugin_api.keys import KeyProvider
from fhirpub.plugin_api.resource_type import ResourceType

PROJECT = "fhirpub"
API_VERSION = 1
"""The version of everything that a plugin sees. A change that would break a plugin raises it.

A plugin states the version that it was made for by the group of its entry point:
``fhirpub.plugins`` is version 1, ``fhirpub.plugins.v2`` will be version 2. No import is needed to
read it.
"""


def group_of(version: int) -> str:
    """Return the group of entry points of plugins for a version of the plugin API.

    Args:
        version: The version, from 1.

    Returns:
        The name of the group.
    """
    return "fhirpub.plugins" if version == 1 else f"fhirpub.plugins.v{version}"


hookspec = pluggy.HookspecMarker(PROJECT)
"""Marks a hook specification."""
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin as the implementation of a hook."""


@hookspec
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Return the resource types that this plugin adds.

    Returns:
        The types. Several plugins may be enabled; each adds its own.
    """
    raise NotImplementedError


@hookspec
def fhirpub_key_provider() -> KeyProvider:
    """Return what wraps the keys that encrypt the secrets in the store.

    It is called when a key is created or a wrapped one is read, not when a plugin is loaded.

    Returns:
        The provider. At most one of the enabled plugins may have this hook.
    """
    raise NotImplementedError
