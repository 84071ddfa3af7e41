"""``fhirpub config`` and ``fhirpub plugins``: all settings and plugins, and those in use."""

from __future__ import annotations

import dataclasses
import re

import click

from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import print_json, print_table
from fhirpub.config.loader import reference
from fhirpub.config.settings import Config
from fhirpub.plugin_host.loader import available, load


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


@click.command(short_help="List plugins and their resource types.")
@with_config
@with_json
def plugins(config: Config, *, as_json: bool) -> None:
    """List the installed plugins, their resource types, and whether they are enabled."""
    enabled = config.plugins.enabled
    sources = available()
    types = {name: ", ".join(load([name])) for name in enabled}
    records = [
        {
            "plugin": source.name,
            "enabled": source.name in enabled,
            "resource_types": types.get(source.name, ""),
            "module": source.module,
            "distribution": f"{source.distribution} {source.version}".strip(),
        }
        for source in sources
    ]
    load(enabled)
    print_table(records, as_json=as_json, empty="No plugin is installed: pip install fhirpub")
    if not as_json:
        off = [source.name for source in sources if source.name not in enabled]
        if off:
            click.echo(f"Not enabled: {', '.join(off)}. To enable, add to `enabled` in [plugins].")


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
