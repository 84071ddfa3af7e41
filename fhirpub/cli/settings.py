"""``fhirpub config`` and ``fhirpub plugins``: all settings and plugins, and those in use."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import click

from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import print_json, print_table
from fhirpub.config.loader import reference
from fhirpub.config.settings import Config
from fhirpub.plugin_api.hookspecs import API_VERSION
from fhirpub.plugin_host.loader import PluginSource, examine, hooks_of, installed, load


@click.command(
    short_help="Print every setting with its default.",
    epilog="""\b
Examples:
  fhirpub config > fhirpub.toml             creates a file with every setting at its default
  fhirpub config --config f.toml --json     prints the settings of file and environment;
                                            a password in [storage] url is not shown
""",
)
@with_config
@with_json
def config(config: Config, *, as_json: bool) -> None:
    """Print the reference configuration: every setting with its default and its meaning."""
    if as_json:
        settings = dataclasses.asdict(config)
        settings["storage"]["url"] = without_password(config.storage.url)
        print_json(settings)
        return
    click.echo(reference(), nl=False)


@click.command(short_help="List plugins, their hooks and their resource types.")
@with_config
@with_json
def plugins(config: Config, *, as_json: bool) -> None:
    """List the installed plugins: whether they are enabled, their hooks, and their resource types.

    Types off are those that a plugin would add if it were enabled: plugins are imported for it.
    """
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


def _plugin_record(source: PluginSource, enabled: Sequence[str]) -> dict[str, object]:
    is_on = source.api == API_VERSION and source.name in enabled
    hooks: Sequence[str] = ()
    found = examine([source.name])
    problem = "; ".join(found.problems.get(source.name, ()))
    if not problem and source.api == API_VERSION:
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
