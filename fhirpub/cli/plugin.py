"""``fhirpub plugin``: create the package of a new plugin."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import print_record
from fhirpub.cli.scaffold.plan import blueprint
from fhirpub.cli.scaffold.writer import files_of
from fhirpub.config.settings import Config
from fhirpub.errors import PluginError
from fhirpub.fhir.definitions.element_tables import Tables
from fhirpub.plugin_host.sources import available


@click.group()
def plugin() -> None:
    """Create a plugin that adds a resource type."""


@plugin.command(
    short_help="Create a plugin for a FHIR R4 type.",
    epilog="""\b
Example:
  fhirpub plugin new Immunization           creates the folder fhirpub-immunization
  pip install -e 'fhirpub-immunization[test]'
  pytest fhirpub-immunization               passes before you change a line
""",
)
@click.argument("type_name", metavar="TYPE")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    help="Folder to create; default: fhirpub-<type> in the working directory.",
)
@with_config
@with_json
def new(type_name: str, directory: Path | None, config: Config, *, as_json: bool) -> None:
    """Create a package that adds TYPE, with its schema and its tests.

    It can be installed and tested without changes. Existing files are not touched.
    """
    tables = Tables.read()
    plan = blueprint(type_name, tables)
    for plugin_source in available():
        if plugin_source.name == plan.plugin:
            home = (
                f"{plugin_source.module} of {plugin_source.distribution} {plugin_source.version}"
            )
            raise PluginError(f"a plugin {plan.plugin} is already installed: {home}")
    folder = directory or Path(plan.distribution)
    if folder.name == plan.package:
        hint = "Python would import it instead of the package inside; choose another name"
        raise PluginError(f"{folder}: a folder of this name hides the plugin. {hint}")
    written = _write(files_of(plan, tables), folder)
    record = {
        "resource_type": plan.type,
        "plugin": plan.plugin,
        "package": plan.package,
        "directory": str(folder),
        "files": written,
    }
    enabled = json.dumps([*config.plugins.enabled, plan.plugin])
    then = (
        f"Install it with: pip install -e '{folder}[test]', test it with: pytest {folder}\n"
        f"Serve it with: enabled = {enabled} under [plugins]"
    )
    print_record("Plugin created.", record, as_json=as_json, then=then)


def _write(files: dict[str, str], folder: Path) -> list[str]:
    try:
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise PluginError(f"{folder} exists; choose another folder with --directory") from None
    except OSError as problem:
        raise PluginError(f"{folder} cannot be written: {problem.strerror}") from None
    return list(files)
