"""The hooks that a plugin may implement, typed."""

from __future__ import annotations

from collections.abc import Sequence

import pluggy

from fhirpub.plugin_api.resource_type import ResourceType

PROJECT = "fhirpub"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Return the resource types that this plugin adds."""
    raise NotImplementedError
