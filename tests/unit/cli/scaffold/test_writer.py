"""The files of a new plugin, and the declaration that is written into them."""

from __future__ import annotations

import json

import pytest

from fhirpub import __version__
from fhirpub.cli.scaffold.plan import Blueprint
from fhirpub.cli.scaffold.writer import _imports, files_of, files_of_bare_plugin
from fhirpub.fhir.definitions.schema_generator import resource
from fhirpub.plugin_api.hookspecs import API_VERSION, group_of
from tests.element_tables import tables
from tests.unit.cli.scaffold.plans import planned


def rules(plan: Blueprint) -> str:
    return files_of(plan, tables())[f"{plan.package}/rules.py"]


def test_a_new_plugin_has_its_declaration_its_schema_and_a_test() -> None:
    assert sorted(files_of(planned("DocumentManifest"), tables())) == [
        "README.md",
        "fhirpub_documentmanifest/DocumentManifest.schema.json",
        "fhirpub_documentmanifest/__init__.py",
        "fhirpub_documentmanifest/py.typed",
        "fhirpub_documentmanifest/rules.py",
        "pyproject.toml",
        "setup.py",
        "tests/register.json",
        "tests/test_documentmanifest.py",
    ]


def test_the_schema_and_the_example_are_those_of_the_type() -> None:
    found = files_of(planned("DocumentManifest"), tables())

    schema = found["fhirpub_documentmanifest/DocumentManifest.schema.json"]
    assert json.loads(schema) == resource("DocumentManifest", tables())
    assert json.loads(found["tests/register.json"]) == planned("DocumentManifest").body
    assert found["tests/register.json"].endswith("}\n")


def test_a_type_with_a_schema_in_the_service_brings_and_names_none() -> None:
    found = files_of(planned("Observation"), tables())

    assert not [path for path in found if "schema" in path]
    assert not [path for path, text in found.items() if "schema.json" in text]
    assert "_SCHEMA" not in rules(planned("Observation"))


def test_a_type_without_one_reads_its_own() -> None:
    text = rules(planned("DocumentManifest"))

    assert "import json\nfrom pathlib import Path\n\nfrom fhirpub.plugin_api" in text
    assert '\n_SCHEMA = Path(__file__).with_name("DocumentManifest.schema.json")\n' in text
    assert '    schemas={"DocumentManifest": json.loads(_SCHEMA.read_bytes())},\n' in text
    files = files_of(planned("DocumentManifest"), tables())
    assert "DocumentManifest.schema.json" in files["README.md"]


def test_the_declaration_has_what_the_blueprint_has() -> None:
    text = rules(planned("DocumentManifest"))

    assert 'DOCUMENT_MANIFEST = ResourceType(\n    name="DocumentManifest",\n' in text
    assert (
        "    parts=(\n"
        '        patient(referred_by="subject", required=False),\n'
        '        organization(referred_by="author", required=False),\n'
        "    ),\n"
    ) in text
    assert '    times=("created",),\n' in text
    assert '    codings=("type",),\n' in text
    assert '    summary=(\n        "masterIdentifier",\n        "type",\n' in text
    assert '    events=CompositionEvents("document_manifest"),\n' in text
    assert '    identifier=IdentifierRule(elements=("masterIdentifier", "identifier")),\n' in text
    assert "attachments" not in text


def test_a_part_that_is_required_needs_no_word() -> None:
    plan = planned("Immunization")

    assert '    parts=(patient(referred_by="patient"),),\n' in rules(plan)


def test_a_new_resource_is_not_entered_in_error_and_an_update_may_be() -> None:
    created, updated = rules(planned("DocumentManifest")).split("update_statuses=")

    statuses = created.split("create_statuses=")[1]
    assert statuses.startswith(
        'frozenset(\n        {\n            "current",\n'
        '            "superseded",\n        }\n    )'
    )
    assert "entered-in-error" not in statuses
    assert '            "entered-in-error",\n' in updated


def test_the_usual_identifier_needs_no_rule() -> None:
    assert "IdentifierRule" not in rules(planned("Observation"))


@pytest.mark.parametrize(
    ("type_name", "expected"),
    [
        ("Observation", '[{"system": system, "value": value}]'),
        ("Composition", '{"system": system, "value": value}'),
    ],
    ids=["list", "one"],
)
def test_the_test_of_a_plugin_writes_identifiers_as_the_type_has_them(
    type_name: str, expected: str
) -> None:
    plan = planned(type_name)
    text = files_of(plan, tables())[f"tests/test_{plan.plugin}.py"]

    assert expected in text
    assert ("[{" in text) is plan.has_list


def test_the_plugin_is_found_by_the_group_of_this_version() -> None:
    setup = files_of(planned("DocumentManifest"), tables())["setup.py"]

    assert f'"{group_of(API_VERSION)}": [\n' in setup
    assert '"documentmanifest = fhirpub_documentmanifest",\n' in setup
    assert 'name="fhirpub-documentmanifest"' in setup
    assert f'"fhirpub>={__version__}"' in setup


def test_hooks_that_were_asked_for_come_with_their_tests_and_needs() -> None:
    found = files_of(planned("DocumentManifest"), tables(), ["event-sinks"])

    package = "fhirpub_documentmanifest"
    assert {f"{package}/sinks.py", "tests/test_sinks.py"} <= set(found)
    assert "fhirpub_event_sinks" in found[f"{package}/__init__.py"]
    assert "pytest-asyncio" in found["setup.py"]
    assert 'asyncio_mode = "auto"' in found["pyproject.toml"]


def test_without_hooks_nothing_of_them_is_written() -> None:
    found = files_of(planned("DocumentManifest"), tables())

    assert "pytest-asyncio" not in found["setup.py"]
    assert "asyncio_mode" not in found["pyproject.toml"]
    assert "__all__" not in found["fhirpub_documentmanifest/__init__.py"]


def test_a_plugin_without_a_type_has_no_declaration() -> None:
    found = files_of_bare_plugin("stream", ["commands"])

    assert sorted(found) == [
        *("README.md", "fhirpub_stream/__init__.py", "fhirpub_stream/commands.py"),
        *("fhirpub_stream/py.typed", "pyproject.toml", "setup.py", "tests/test_commands.py"),
    ]
    assert (
        "from fhirpub_stream.commands import fhirpub_commands"
        in found["fhirpub_stream/__init__.py"]
    )


def test_an_import_that_is_too_long_for_one_line_has_a_line_for_each_name() -> None:
    assert _imports(["a" * 28, "b" * 27]) == f"{'a' * 28}, {'b' * 27}"
    assert _imports(["a" * 29, "b" * 27]) == f"(\n    {'a' * 29},\n    {'b' * 27},\n)"


def test_documents_are_declared() -> None:
    assert '    attachments=("content",),\n' in rules(planned("Media"))
