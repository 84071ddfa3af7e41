"""The operations of enabled plugins, checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from fhirpub.config.settings import Config
from fhirpub.plugin_api import Operation, OperationParameter, ResourceType
from fhirpub.plugin_api.operations import ParameterType, PluginOperation
from fhirpub.plugin_host.functions import matches, wrong_plain_function
from fhirpub.plugin_host.settings import declarations
from fhirpub.suggestion import did_you_mean

_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PARAMETER = re.compile(r"[a-zA-Z][A-Za-z0-9-]*")
_MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]+(; ?[a-z]+=[A-Za-z0-9-]+)*")
_PARAMETER_TYPES = get_args(ParameterType)
_OWN_CODES = frozenset({"register", "revise", "validate"})


def load_operations(
    config: Config, types: Mapping[str, ResourceType]
) -> dict[str, list[PluginOperation]]:
    """Return the operations of the enabled plugins by type. Raises PluginError."""
    found: dict[str, list[PluginOperation]] = {}
    known: dict[tuple[str, str], str] = {}
    with declarations(config, "fhirpub_operations", Operation) as (hooks, declared):
        for plugin, operation in declared:
            where = f"{hooks.sources[plugin].where}: operation {operation.code!r}"
            problems = [f"{where} {problem}" for problem in _problems(operation, types)]
            key = (operation.type, operation.code)
            if key in known:
                problems.append(f"{where} of {operation.type} is already of plugin {known[key]}")
            known[key] = plugin
            hooks.report(plugin, problems)
            found.setdefault(operation.type, []).append(PluginOperation(plugin, operation))
    return found


def _problems(operation: Operation, types: Mapping[str, ResourceType]) -> Iterator[str]:
    """Yield what is wrong with an operation; its includes are checked with the searches."""
    if operation.type not in types:
        nearest = did_you_mean(operation.type, types) or f"there are: {', '.join(types)}"
        yield f"is of {operation.type}, which no enabled plugin registers; {nearest}"
    if not matches(_CODE, operation.code):
        yield "has a code that is not of lower-case letters, digits and hyphens"
    elif operation.code in _OWN_CODES:
        yield "has the code of an operation of the service"
    if not matches(_MEDIA_TYPE, operation.media_type):
        yield f"has a media type that is none: {operation.media_type!r}"
    if operation.includes and not operation.on_instance:
        yield "is about a type, and has no references to follow"
    yield from wrong_plain_function("a run", operation.run, "OperationRequest")
    yield from _wrong_parameters(operation.parameters)


def _wrong_parameters(parameters: Sequence[OperationParameter]) -> Iterator[str]:
    names = [parameter.name for parameter in parameters]
    for parameter in parameters:
        if not matches(_PARAMETER, parameter.name):
            yield f"has a parameter with the name {parameter.name!r}, which cannot be one"
        if parameter.type not in _PARAMETER_TYPES:
            known = ", ".join(_PARAMETER_TYPES)
            yield f"has the parameter {parameter.name}, whose type must be one of {known}"
    if len(set(names)) < len(names):
        yield "has two parameters of one name"
