"""The files of a new plugin, generated from its blueprint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib import resources
from string import Template

from fhirpub import __version__
from fhirpub.cli.scaffold.hook_parts import (
    files_of_hooks,
    files_without_type,
    with_imports,
    with_test_requirements,
    with_test_settings,
)
from fhirpub.cli.scaffold.plan import Blueprint
from fhirpub.fhir.definitions.element_tables import Tables
from fhirpub.fhir.definitions.schema_generator import resource
from fhirpub.plugin_api.hookspecs import API_VERSION, group_of

_MAX_IMPORTED = 88 - len("from fhirpub.plugin_api import ")
_ONE = '{"system": system, "value": value}'


def files_of(plan: Blueprint, tables: Tables, hooks: Sequence[str] = ()) -> dict[str, str]:
    """Return the text of every file of a new plugin by its path in the plugin's folder.

    ``hooks`` are those that it has beside the resource type, as `hook_parts.PARTS` names them.
    """
    words = _words(plan, brings_schema=plan.type not in tables.held)
    package = plan.package
    found = {
        "README.md": _fill_template("README.md", words),
        "setup.py": with_test_requirements(_fill_template("setup.py", words), hooks),
        "pyproject.toml": with_test_settings(_fill_template("pyproject.toml", words), hooks),
        f"{package}/__init__.py": with_imports(_fill_template("hooks.py", words), package, hooks),
        f"{package}/rules.py": _fill_template("rules.py", words),
        f"{package}/py.typed": "",
        f"tests/test_{plan.plugin}.py": _fill_template("test.py", words),
        "tests/register.json": _json(plan.body),
    }
    found |= files_of_hooks(plan.plugin, hooks, _fill_template, type_name=plan.type)
    if plan.type not in tables.held:
        found[f"{package}/{plan.type}.schema.json"] = _json(resource(plan.type, tables))
    return found


def files_of_bare_plugin(plugin: str, hooks: Sequence[str]) -> dict[str, str]:
    """Return the text of every file of a new plugin without a resource type."""
    return files_without_type(plugin, hooks, _fill_template)


def _words(plan: Blueprint, *, brings_schema: bool) -> dict[str, str]:
    """Return the value of each placeholder of the templates."""
    fields = {
        "attachments": plan.attachments,
        "times": plan.times,
        "codings": plan.codings,
        "summary": plan.summary,
    }
    lines = [f"    {name}={_tuple(values)},\n" for name, values in fields.items() if values]
    row = (
        f"| `{plan.package}/{plan.type}.schema.json` | its JSON Schema, from the tables of R4 |\n"
    )
    lines.append(f'    events=CompositionEvents("{plan.composition}"),\n')
    rule = ["IdentifierRule"] if plan.identified_by else []
    if rule:
        elements = ", ".join(f'"{path}"' for path in plan.identified_by)
        lines.append(
            "    # The first that there is is the key. To allow more, set most.\n"
            f"    identifier=IdentifierRule(elements=({elements})),\n"
        )
    parts = sorted(role.part for role in plan.roles)
    schema = f'Path(__file__).with_name("{plan.type}.schema.json")'
    if brings_schema:
        lines.append(f'    schemas={{"{plan.type}": json.loads(_SCHEMA.read_bytes())}},\n')
    return {
        "type": plan.type,
        "plugin": plan.plugin,
        "package": plan.package,
        "distribution": plan.distribution,
        "constant": plan.constant,
        "release": __version__,
        "api": str(API_VERSION),
        "group": group_of(API_VERSION),
        "imports": _imports(["CompositionEvents", *rule, "ResourceType", *parts]),
        "parts": _parts(plan),
        "create_statuses": _frozenset(plan.create_statuses),
        "update_statuses": _frozenset(plan.statuses),
        "fields": "".join(lines),
        "schema_imports": "import json\nfrom pathlib import Path\n\n" * brings_schema,
        "schema_reading": f"\n_SCHEMA = {schema}\n" * brings_schema,
        "identifier": f"[{_ONE}]" if plan.has_list else _ONE,
        "schema_row": row * brings_schema,
    }


def _parts(plan: Blueprint) -> str:
    optional = {True: "", False: ", required=False"}
    return _format_tuple(
        [
            f'{role.part}(referred_by="{role.referred_by}"{optional[role.required]})'
            for role in plan.roles
        ]
    )


def _imports(names: Sequence[str]) -> str:
    """Return names as an import of them is written: on one line, or else one on each."""
    line = ", ".join(names)
    if len(line) <= _MAX_IMPORTED:
        return line
    return "(\n" + "".join(f"    {name},\n" for name in names) + ")"


def _tuple(values: Iterable[str]) -> str:
    return _format_tuple([f'"{value}"' for value in values])


def _frozenset(values: Iterable[str]) -> str:
    inside = "".join(f'            "{value}",\n' for value in values)
    return f"frozenset(\n        {{\n{inside}        }}\n    )"


def _format_tuple(items: Sequence[str]) -> str:
    """Return a tuple as formatters write it: one item on one line, several on one line each."""
    if len(items) < 2:
        return f"({''.join(f'{item},' for item in items)})"
    return "(\n" + "".join(f"        {item},\n" for item in items) + "    )"


def _fill_template(name: str, words: dict[str, str]) -> str:
    template = resources.files("fhirpub.cli.scaffold") / "plugin_template" / f"{name}.txt"
    return Template(template.read_text(encoding="utf-8")).substitute(words)


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
