"""``fhirpub plugin``: create the package of a new plugin."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path

import click

from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import is_terminal, print_record
from fhirpub.cli.scaffold.hook_parts import PARTS, check_name
from fhirpub.cli.scaffold.plan import blueprint
from fhirpub.cli.scaffold.writer import files_of, files_of_bare_plugin
from fhirpub.config.settings import Config
from fhirpub.errors import PluginError
from fhirpub.fhir.definitions.element_tables import Tables
from fhirpub.plugin_host.hooks import HOOKS
from fhirpub.plugin_host.sources import available
from fhirpub.suggestion import did_you_mean


@click.group()
def plugin() -> None:
    """Create a plugin: a resource type, other hooks, or both."""


@plugin.command(
    short_help="Create a plugin for a FHIR R4 type, or with other hooks.",
    epilog="""\b
Example:
  fhirpub plugin new Immunization           creates the folder fhirpub-immunization
  pip install -e 'fhirpub-immunization[test]'
  pytest fhirpub-immunization               passes before you change a line
  fhirpub plugin new stream --hook event-sinks --hook settings
                                            creates a plugin without a resource type
""",
)
@click.argument("type_name", metavar="TYPE|NAME")
@click.option(
    "--hook",
    "hooks",
    multiple=True,
    type=click.Choice(list(PARTS)),
    help="Hook to begin with, beside the resource type; may be repeated.",
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    help="Folder to create; default: fhirpub-<type> in the working directory.",
)
@with_config
@with_json
def new(
    type_name: str,
    hooks: tuple[str, ...],
    directory: Path | None,
    config: Config,
    *,
    as_json: bool,
) -> None:
    """Create a package that adds TYPE, with its schema and its tests, or one with other hooks.

    With --hook it also has these hooks, each with its tests; then a lower-case NAME creates a
    plugin without a resource type. Without it the command asks, if it is run in a terminal. The
    package can be installed and tested without changes. Existing files are not touched.
    """
    if not hooks and not as_json and is_terminal(sys.stdin):
        hooks = _asked_hooks()
    is_bare = bool(hooks) and not type_name[:1].isupper()
    if is_bare:
        check_name(type_name)
        files, plugin_name = files_of_bare_plugin(type_name, hooks), type_name
    else:
        tables = Tables.read()
        plan = blueprint(type_name, tables)
        files, plugin_name = files_of(plan, tables, hooks), plan.plugin
    package, distribution = f"fhirpub_{plugin_name}", f"fhirpub-{plugin_name}"
    _refuse_installed(plugin_name)
    folder = directory or Path(distribution)
    if folder.name == package:
        hint = "Python would import it instead of the package inside; choose another name"
        raise PluginError(f"{folder}: a folder of this name hides the plugin. {hint}")
    written = _write(files, folder)
    record = {
        "resource_type": "" if is_bare else type_name,
        "plugin": plugin_name,
        "package": package,
        "directory": str(folder),
        "files": written,
    }
    enabled = json.dumps([*config.plugins.enabled, plugin_name])
    then = (
        f"Install it with: pip install -e '{folder}[test]', test it with: pytest {folder}\n"
        f"Serve it with: enabled = {enabled} under [plugins]"
    )
    print_record("Plugin created.", record, as_json=as_json, then=then)


def _asked_hooks() -> tuple[str, ...]:
    """Ask which hooks the plugin begins with; return their names."""
    click.echo("A plugin may have other hooks beside a resource type:", err=True)
    for name, part in PARTS.items():
        summary = (inspect.getdoc(HOOKS[part.hooks[-1]]) or "").partition("\n")[0]
        click.echo(f"  {name:<13} {summary}", err=True)
    asked = "Which, separated by commas (none: Enter)"
    answer: tuple[str, ...] = click.prompt(
        asked, default="", show_default=False, value_proc=_hooks_in, err=True
    )
    return answer


def _hooks_in(text: str) -> tuple[str, ...]:
    """Return the hooks that an answer names; raises UsageError, after which it is asked again."""
    names = tuple(name for part in text.split(",") if (name := part.strip()))
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        advice = did_you_mean(unknown[0], PARTS) or f"known are {', '.join(PARTS)}"
        raise click.UsageError(f"{unknown[0]} is not one of them; {advice}")
    return names


def _refuse_installed(name: str) -> None:
    """Raise PluginError if there is a plugin of a name."""
    for source in available():
        if source.name == name:
            home = f"{source.module} of {source.distribution} {source.version}"
            way_out = "use that one, or create one of another type or name"
            raise PluginError(f"a plugin {name} is already installed: {home}; {way_out}")


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
