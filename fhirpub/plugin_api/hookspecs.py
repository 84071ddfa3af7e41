"""The hooks that a plugin may implement, typed."""

from __future__ import annotations

from collections.abc import Sequence

import pluggy

from fhirpub.plugin_api.resource_type import ResourceType

PROJECT = "fhirpub"
API_VERSION = 1
"""The version of all that a plugin sees; what would break a plugin raises it.

A plugin states the one that it was made for by the group of its entry point: ``fhirpub.plugins``
is version 1, ``fhirpub.plugins.v2`` will be version 2. No import is needed to read it.
"""


def group_of(version: int) -> str:
    """Return the group of entry points by which a plugin says that it is made for a version."""
    return "fhirpub.plugins" if version == 1 else f"fhirpub.plugins.v{version}"


hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Return the resource types that this plugin adds."""
    raise NotImplementedError
