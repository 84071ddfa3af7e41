"""``fhirpub config`` and ``fhirpub plugins``: all settings and plugins, and those in use."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import click

from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import print_json, print_table
from fhirpub.config.groups import groups_of
from fhirpub.config.loader import reference
from fhirpub.config.settings import Config
from fhirpub.plugin_api.hookspecs import SUPPORTED_VERSIONS
from fhirpub.plugin_host.hooks import HOOKS, PluginHooks, hooks_of, since_version
from fhirpub.plugin_host.loader import examine, load
from fhirpub.plugin_host.settings import setting_groups
from fhirpub.plugin_host.sources import PluginSource, installed

_ORDER = (
    "pluggy decides the order: hooks with tryfirst, then the others, then those with trylast;\n"
    "within each of the three as `enabled` in [plugins] lists them. Wrappers surround them all."
)


@click.command(
    short_help="Print every setting with its default.",
    epilog="""\b
Examples:
  fhirpub config > fhirpub.toml             creates a file with every setting at its default
  fhirpub config --config f.toml --json     prints the settings of file and environment;
                                            no secret is shown, and no password
                                            in [storage] url
""",
)
@with_config
@with_json
def config(config: Config, *, as_json: bool) -> None:
    """Print the reference configuration: every setting with its default and its meaning.

    Plugins that the settings enable have their groups in it.
    """
    enabled = config.plugins.enabled
    if as_json:
        settings = dataclasses.asdict(config)
        settings["storage"]["url"] = without_password(config.storage.url)
        for name in groups_of(()):
            settings[name] |= _hidden(getattr(config, name))
        for name, group in config.by_plugin.items():
            settings["by_plugin"][name] |= _hidden(group)
        print_json(settings)
        return
    click.echo(reference(enabled, setting_groups(enabled)), nl=False)


def _hidden(group: Any) -> dict[str, str]:
    """Return what is shown instead of the secrets of a group that are set."""
    fields = dataclasses.fields(group)
    return {
        each.name: "***"
        for each in fields
        if each.metadata["secret"] and getattr(group, each.name)
    }


@click.command(short_help="List plugins, their hooks and their resource types.")
@click.option("--hooks", "shows_hooks", is_flag=True, help="Describe each hook instead.")
@with_config
@with_json
def plugins(config: Config, *, shows_hooks: bool, as_json: bool) -> None:
    """List the installed plugins: whether they are enabled, their hooks, and their resource types.

    Types off are those that a plugin would add if it were enabled: plugins are imported for it.
    """
    if shows_hooks:
        _print_hooks(config.plugins.enabled, as_json=as_json)
        return
    enabled = config.plugins.enabled
    load(enabled)
    records = [_plugin_record(source, enabled) for source in installed()]
    problems = {str(record["plugin"]): record.pop("problem") for record in records}
    if as_json:
        records = [{**each, "problem": problems[str(each["plugin"])]} for each in records]
    print_table(records, as_json=as_json, empty="No plugin is installed: pip install fhirpub")
    if as_json:
        return
    off = [name for name, problem in problems.items() if name not in enabled and not problem]
    if off:
        click.echo(f"Not enabled: {', '.join(off)}. To enable, add to `enabled` in [plugins].")
    for problem in filter(None, problems.values()):
        click.echo(f"Cannot be enabled: {problem}")


def _print_hooks(enabled: Sequence[str], *, as_json: bool) -> None:
    """Print what each hook is for, and which enabled plugins have it in the order of the calls."""
    hooks = PluginHooks(enabled)
    hooks.require_no_problems()
    records: list[dict[str, Any]] = [
        {
            "hook": name,
            "arguments": list(inspect.signature(hook).parameters),
            "since_api_version": since_version(name),
            "implemented_by": list(hooks.owners_of(name)),
            "documentation": inspect.getdoc(hook) or "",
        }
        for name, hook in HOOKS.items()
    ]
    if as_json:
        print_json(records)
        return
    for record in records:
        click.secho(f"{record['hook']}({', '.join(record['arguments'])})", bold=True)
        click.echo(textwrap.indent(record["documentation"], "  "))
        owners = ", ".join(record["implemented_by"]) or "no enabled plugin"
        click.echo(f"  Version {record['since_api_version']}. Implemented by: {owners}\n")
    click.echo(_ORDER)


def _plugin_record(source: PluginSource, enabled: Sequence[str]) -> dict[str, object]:
    is_supported = source.api in SUPPORTED_VERSIONS
    is_on = is_supported and source.name in enabled
    hooks: Sequence[str] = ()
    found = examine([source.name])
    problem = "; ".join(found.problems.get(source.name, ()))
    if not problem and is_supported:
        hooks = hooks_of(source)
    types = ", ".join(found.types) if hooks else ""
    return {
        "plugin": source.name,
        "enabled": is_on,
        "api_version": source.api,
        "hooks": ", ".join(hooks),
        "resource_types": types if is_on else "",
        "types_off": "" if is_on else types,
        "module": source.module,
        "distribution": f"{source.distribution} {source.version}".strip(),
        "problem": problem,
    }


def without_password(url: str) -> str:
    """Return a store's URL without its password.

    An unescaped password may contain any character: it ends at the last ``@``.
    """
    before, at, after = _SECRET_OPTION.sub(r"\1***", url).rpartition("@")
    user = _USER.match(before)
    if not at or (user and user.end() == len(before)):
        return before + at + after
    return f"{user[0] if user else ''}:***@{after}"


_USER = re.compile("[a-z+]+://[^:]*")
_SECRET_OPTION = re.compile(
    "([?&](?:tlsCertificateKeyFilePassword|authMechanismProperties)=)[^&]*", re.IGNORECASE
)
