"""Operations of plugins in the words of OpenAPI."""

from __future__ import annotations

import pytest

from fhirpub.plugin_api import Operation, OperationParameter, OperationResult
from fhirpub.plugin_api.operations import PluginOperation
from fhirpub.web.openapi.plugin_operations import of_plugin, parameters_of_plugin


def declared(code: str = "page", *parameters: OperationParameter) -> PluginOperation:
    operation = Operation(
        type="DiagnosticReport",
        code=code,
        title="Show it",
        description="Shows the report.",
        media_type="text/html; charset=utf-8",
        run=lambda _request: OperationResult(body=b""),
        parameters=parameters,
    )
    return PluginOperation("trials", operation)


@pytest.mark.parametrize(
    ("code", "name"), [("page", "page"), ("show-as-page", "showAsPage"), ("a-b", "aB")]
)
def test_the_id_of_an_operation_has_all_words_of_its_code(code: str, name: str) -> None:
    assert of_plugin(declared(code)).name == name


def test_an_operation_is_described_in_the_words_of_its_plugin() -> None:
    made = of_plugin(declared())

    assert (made.summary, made.text) == ("Show it", "Shows the report.")
    assert made.refusals == (404, 406, 422)
    assert made.parameters == ("_format",)
    ((status, success),) = made.successes.items()
    assert (status, success.form, success.schema) == (200, "media", "text/html; charset=utf-8")


def test_each_parameter_has_its_meaning_its_schema_and_whether_it_is_needed() -> None:
    count = OperationParameter(name="count", type="integer", meaning="How many.", required=True)
    since = OperationParameter(name="since", type="date", meaning="From then on.")

    found = parameters_of_plugin(declared("page", count, since))

    assert [(one["name"], one["in"], one["description"], one["required"]) for one in found] == [
        ("count", "query", "How many.", True),
        ("since", "query", "From then on.", False),
    ]
    assert found[0]["schema"] == {"type": "integer"}
    assert found[1]["schema"]["type"] == "string"


@pytest.mark.parametrize(
    ("kind", "schema"),
    [("string", "string"), ("code", "string"), ("boolean", "boolean"), ("integer", "integer")],
)
def test_a_parameter_has_the_type_of_json_that_its_values_have(kind: str, schema: str) -> None:
    (found,) = parameters_of_plugin(
        declared("page", OperationParameter(name="p", type=kind, meaning="M"))  # type: ignore[arg-type]
    )

    assert found["schema"] == {"type": schema}


def test_what_is_no_operation_of_a_plugin_has_no_such_parameters() -> None:
    assert parameters_of_plugin(None) == []
