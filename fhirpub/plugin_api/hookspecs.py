"""The hooks that a plugin may implement, with their types."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

from fhirpub.plugin_api.context import PluginContext
from fhirpub.plugin_api.issuers import TokenIssuer
from fhirpub.plugin_api.keys import KeyProvider
from fhirpub.plugin_api.operations import Operation
from fhirpub.plugin_api.resource_type import ResourceType
from fhirpub.plugin_api.sinks import EventSink
from fhirpub.plugin_api.terminology import CodeSource

if TYPE_CHECKING:  # the service does not load it
    import click

PROJECT = "fhirpub"
API_VERSION = 2
"""The version of everything that a plugin sees. A change that a plugin must know of raises it.

A plugin states the version that it was made for by the group of its entry point:
``fhirpub.plugins`` is version 1, ``fhirpub.plugins.v2`` is version 2. No import is needed to
read it.
"""
SUPPORTED_VERSIONS = (1, 2)
"""The versions of which plugins are loaded: version 2 has added hooks and changed none."""


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
"""Marks a function of a plugin as the implementation of a hook.

It takes pluggy's options: ``tryfirst``, ``trylast`` and ``wrapper``.
"""


@hookspec
def fhirpub_resource_types() -> Sequence[ResourceType]:
    """Return the resource types that this plugin adds.

    It is called when a process starts, and by commands that need the types.

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


@hookspec
def fhirpub_settings() -> type[Any]:
    """Return the settings of this plugin: a frozen dataclass whose fields `setting` makes.

    The operator sets them under the plugin's name, such as ``[file]``, or by variables such as
    ``FHIRPUB_FILE__FOLDER``. They are checked as all other settings are before the service starts:
    a ``ValueError`` from ``__post_init__`` is reported as a problem of the group. Other hooks get
    them from `PluginContext.settings`. It is called when settings are read that only a plugin
    knows, and when a process starts.

    Returns:
        The class, in which every field has a default and a meaning.
    """
    raise NotImplementedError


@hookspec
def fhirpub_event_sinks(context: PluginContext) -> Sequence[EventSink]:
    """Return where events of commits can go beside webhooks.

    An endpoint whose URL is ``sink:NAME`` is sent to the sink of that name, with all that holds
    for webhooks. It is called once for each event loop that sends: connections belong to a loop.
    No request runs it.

    Args:
        context: The settings, and what is known of the service.

    Returns:
        The sinks, each with a name of its own. They are opened when they get their first event.
    """
    raise NotImplementedError


@hookspec
def fhirpub_operations(context: PluginContext) -> Sequence[Operation]:
    """Return what can be asked of resources beside reading them: ``GET {type}/{id}/${code}``.

    They are in the CapabilityStatement and in OpenAPI. The service checks token, tenant, scopes
    and quotas, and records the access. It is called when a process starts; ``run`` is called for
    each request, in a thread.

    Args:
        context: The settings, and what is known of the service.

    Returns:
        The operations, of types that are registered on their own, also by other plugins.
    """
    raise NotImplementedError


@hookspec
def fhirpub_commands(context: PluginContext) -> Sequence[click.Command]:
    """Return commands of click that ``fhirpub`` has beside its own.

    It is called when a command line names no command of the service, or asks for the list of
    commands: with the settings of ``--config``, which each command takes as well.

    Args:
        context: The settings, and what is known of the service.

    Returns:
        The commands, each with a name that no other has.
    """
    raise NotImplementedError


@hookspec
def fhirpub_startup(context: PluginContext) -> Awaitable[None] | None:
    """Start what the plugin runs in a process that serves requests or sends webhooks.

    It is called in a thread once in each such process, before requests are accepted, and may
    block. A coroutine runs on the event loop of the process. What it raises prevents the start.

    Args:
        context: The settings, and what is known of the service.

    Returns:
        None, or a coroutine.
    """
    raise NotImplementedError


@hookspec
def fhirpub_shutdown(context: PluginContext) -> Awaitable[None] | None:
    """Stop what the plugin runs, after the last request of the process.

    It is called as ``fhirpub_startup`` is, also if the start of a plugin has failed, with the
    plugins in the reverse order. All of them together have ten seconds; one that has taken half of
    what is left goes on beside those behind it. What it raises is logged.

    Args:
        context: The settings, and what is known of the service.

    Returns:
        None, or a coroutine.
    """
    raise NotImplementedError


@hookspec
def fhirpub_terminology(context: PluginContext) -> Sequence[CodeSource]:
    """Return where codes are looked up that the service does not hold.

    It is called once in each process that validates resources. `CodeSource.knows` is called while
    a resource is validated, for each such code, and answers from memory.

    Args:
        context: The settings, and what is known of the service.

    Returns:
        The sources. The first one that knows anything of a code decides.
    """
    raise NotImplementedError


@hookspec
def fhirpub_authenticate(context: PluginContext) -> Sequence[TokenIssuer]:
    """Return the other issuers whose access tokens are accepted beside the service's own.

    It is called when a process starts that serves requests. `TokenIssuer.identify` is called on
    the event loop for a token that is not known yet, once its signature and claims are verified.

    Args:
        context: The settings, and what is known of the service.

    Returns:
        The issuers, each with a name and a URL that no other has.
    """
    raise NotImplementedError


HOOKS_OF_VERSION_1 = frozenset({"fhirpub_resource_types", "fhirpub_key_provider"})
"""The hooks that plugins of version 1 may have; all others came with version 2."""
