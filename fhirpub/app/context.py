"""Creates what every interaction works with, from the configuration alone."""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from fhirpub.config.settings import Config, PluginsConfig
from fhirpub.errors import ConfigurationError, PluginError
from fhirpub.fhir.schema import Schemas
from fhirpub.fhir.terminology import Terminology
from fhirpub.interactions.context import Context, fhir_url
from fhirpub.interactions.indexing.persons import PATIENT
from fhirpub.interactions.operations.execution import includes_of
from fhirpub.interactions.parameters import SearchIndexer
from fhirpub.interactions.patients.declaration import PATIENTS
from fhirpub.interactions.revision.comparison import revisable
from fhirpub.plugin_api import ResourceType
from fhirpub.plugin_api.member_types import MemberType, member_type_of, member_types
from fhirpub.plugin_host.declaration_check import problems_of
from fhirpub.plugin_host.loader import load_with_owners
from fhirpub.plugin_host.operations import load_operations
from fhirpub.plugin_host.schemas import compile_schema
from fhirpub.plugin_host.sources import available
from fhirpub.plugin_host.terminology import load_code_sources
from fhirpub.runtime.clock import Clock
from fhirpub.runtime.faults import name_plugins
from fhirpub.storage.contract import Resources


def create_context(config: Config, *, clock: Clock) -> Context:
    """Load the plugins, compile their schemas, and return a context without a store.

    Raises ConfigurationError, PluginError.
    """
    plugins = load_with_owners(config.plugins.enabled)
    name_plugins_of(config.plugins)
    types = {name: _with_updatable(config, each) for name, each in plugins.types.items()}
    schemas = compile_schema(types, plugins.owners)
    _check_state_flows(config, types)
    members = member_types(types)
    terminology = Terminology.load(
        [Path(p) for p in config.terminology.value_set_directories],
        assume=config.terminology.assume,
    )
    terminology = replace(terminology, sources=load_code_sources(config))
    context = Context(
        added=ignore_new_events,
        config=config,
        resources=cast("Resources", None),  # pure functions reach no store
        types=types,
        members=members,
        revisable={name: revisable(one) for name, one in types.items() if one.repeating},
        searched=_search_indexers(config, types, members, schemas, terminology),
        schemas=schemas,
        terminology=terminology,
        clock=clock,
        default_zone=_zone(config.fhir.default_timezone),
        operations=load_operations(config, types),
    )
    _check_includes(context)
    return context


def _check_includes(context: Context) -> None:
    """Raise PluginError for references that operations cannot follow."""
    found = [
        f"plugin {declared.plugin}: operation {operation.code!r} follows {name}, which is no "
        "reference that a search includes"
        for operations in context.operations.values()
        for declared in operations
        for operation in [declared.operation]
        for name, known in zip(operation.includes, includes_of(operation, context), strict=True)
        if known is None
    ]
    if found:
        raise PluginError("\n".join(found))


def name_plugins_of(config: PluginsConfig) -> None:
    """Let faults name the plugin in whose code they are, by the modules of the plugins (D-375)."""
    enabled = [source for source in available() if source.name in config.enabled]
    packages = [source.module.partition(".")[0] for source in enabled]
    names = {
        package if packages.count(package) == 1 else source.module: source.name
        for source, package in zip(enabled, packages, strict=True)
    }
    name_plugins(names, shows_tracebacks=config.environment == "development")


def _with_updatable(config: Config, declared: ResourceType) -> ResourceType:
    """Return a type with the elements that the configuration makes updatable as well."""
    further = config.of_type(declared.name).updatable
    if not further:
        return declared
    extended = replace(declared, updatable=declared.updatable.union(further))
    for problem in problems_of(extended):
        raise ConfigurationError(f"[{declared.name.lower()}] updatable: {problem}")
    return extended


def _check_state_flows(config: Config, types: Mapping[str, ResourceType]) -> None:
    """Raise ConfigurationError where a state flow is configured that the type does not declare."""
    for name, resource_type in types.items():
        if config.of_type(name).state_flow == "clinical" and not resource_type.state_flow:
            raise ConfigurationError(f"[{name.lower()}] state_flow: the type declares none")


def _search_indexers(
    config: Config,
    types: Mapping[str, ResourceType],
    members: Mapping[str, MemberType],
    schemas: Schemas,
    terminology: Terminology,
) -> dict[str, SearchIndexer]:
    index = partial(
        SearchIndexer,
        schemas=schemas,
        terminology=terminology,
        fhir_url=fhir_url(config),
        zone=_zone(config.fhir.default_timezone),
    )
    alone = {name: index(one) for name, one in types.items() if name not in members}
    searched = alone | {
        name: index(one.resource_type, member=one.part) for name, one in members.items()
    }
    if PATIENT not in searched and any(one.statements for one in searched.values()):
        patients = member_type_of(PATIENTS)
        searched[PATIENT] = index(patients.resource_type, member=patients.part)
    for one in searched.values():
        one.person_systems = config.patients.person_systems
    return searched


def _zone(name: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigurationError(
            f"[fhir] default_timezone: there is no zone {name}; an example is America/Lima"
        ) from None


def ignore_new_events() -> None:
    """Do nothing: the process that sends polls the outbox."""
