"""The files of the hooks that a new plugin has beside a resource type, or without one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fhirpub import __version__
from fhirpub.config.settings import PluginsConfig
from fhirpub.errors import PluginError
from fhirpub.plugin_api.hookspecs import API_VERSION, group_of
from fhirpub.plugin_host.loader import load

Fill = Callable[[str, dict[str, str]], str]
_NAME = re.compile(r"[a-z][a-z0-9]{1,30}")
_ASYNC = ', "pytest-asyncio>=1.0"'


@dataclass(frozen=True, slots=True)
class HookPart:
    """A module of a plugin, and the hooks that are in it."""

    module: str
    hooks: tuple[str, ...]


PARTS: Mapping[str, HookPart] = {
    "settings": HookPart("settings", ("fhirpub_settings",)),
    "event-sinks": HookPart("sinks", ("fhirpub_event_sinks",)),
    "operations": HookPart("operations", ("fhirpub_operations",)),
    "commands": HookPart("commands", ("fhirpub_commands",)),
    "authenticate": HookPart("issuers", ("fhirpub_authenticate",)),
    "terminology": HookPart("codes", ("fhirpub_terminology",)),
    "lifetime": HookPart("lifetime", ("fhirpub_shutdown", "fhirpub_startup")),
}
"""What ``fhirpub plugin new --hook`` takes."""


def check_name(name: str) -> None:
    """Raise PluginError for what cannot be the name of a plugin without a resource type."""
    if not _NAME.fullmatch(name):
        raise PluginError(
            f"{name!r} is neither a resource type of FHIR nor a name of lower-case letters and "
            "digits, such as fhirpub plugin new stream --hook event-sinks"
        )


def files_of_hooks(
    plugin: str, wanted: Sequence[str], fill: Fill, *, type_name: str = ""
) -> dict[str, str]:
    """Return the modules and tests of some hooks, by their paths in the plugin's folder."""
    words = _words(plugin, type_name)
    found = {}
    for name in dict.fromkeys(wanted):
        module = PARTS[name].module
        found[f"{words['package']}/{module}.py"] = fill(f"{module}.py", words)
        found[f"tests/test_{module}.py"] = fill(f"test_{module}.py", words)
    return found


def files_without_type(plugin: str, wanted: Sequence[str], fill: Fill) -> dict[str, str]:
    """Return all files of a plugin that has only some hooks."""
    words = _words(plugin, "")
    package = words["package"]
    hooks = _imports(package, wanted)
    setup = fill("setup.py", words | {"type": plugin})
    return {
        "README.md": fill("bare_README.md", words),
        "setup.py": with_test_requirements(setup, wanted),
        "pyproject.toml": with_test_settings(fill("pyproject.toml", words), wanted),
        f"{package}/__init__.py": fill("bare_hooks.py", words | hooks),
        f"{package}/py.typed": "",
        **files_of_hooks(plugin, wanted, fill),
    }


def with_imports(text: str, package: str, wanted: Sequence[str]) -> str:
    """Return the module of a type's hooks with other hooks in it."""
    if not wanted:
        return text
    hooks = _imports(package, wanted)
    head, _, rest = text.partition(f"from {package}.rules")
    own, _, body = rest.partition("\n")
    imports = sorted([*hooks["imports"].splitlines(), f"from {package}.rules{own}"])
    names = hooks["names"] + '    "fhirpub_resource_types",\n'
    listed = "".join(sorted(names.splitlines(keepends=True)))
    return head + "\n".join(imports) + f"\n\n__all__ = [\n{listed}]\n" + body


def with_test_requirements(setup: str, wanted: Sequence[str]) -> str:
    """Return ``setup.py`` with what the tests of some hooks need."""
    if "event-sinks" not in wanted:
        return setup
    return setup.replace('"test": ["pytest>=8.3"]', f'"test": ["pytest>=8.3"{_ASYNC}]')


def with_test_settings(project: str, wanted: Sequence[str]) -> str:
    """Return ``pyproject.toml`` with what the tests of some hooks need."""
    return project + 'asyncio_mode = "auto"\n' if "event-sinks" in wanted else project


def _imports(package: str, wanted: Sequence[str]) -> dict[str, str]:
    parts = sorted({PARTS[name] for name in wanted}, key=lambda part: part.module)
    names = sorted(hook for part in parts for hook in part.hooks)
    return {
        "imports": "\n".join(
            f"from {package}.{part.module} import {', '.join(part.hooks)}" for part in parts
        ),
        "names": "".join(f'    "{name}",\n' for name in names),
    }


def _words(plugin: str, type_name: str) -> dict[str, str]:
    others = [] if type_name else PluginsConfig().enabled
    served = type_name or next(iter(load(others)))
    return {
        "plugin": plugin,
        "package": f"fhirpub_{plugin}",
        "distribution": f"fhirpub-{plugin}",
        "subject": served,
        "enabled": json.dumps([*others, plugin]),
        "release": __version__,
        "api": str(API_VERSION),
        "group": group_of(API_VERSION),
    }
