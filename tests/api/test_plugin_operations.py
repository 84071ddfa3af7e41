"""Operations of plugins: parameters, refusals, failures, and how they are described."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from openapi_spec_validator import validate

from fhirpub.config.settings import AuthConfig, Config, PluginsConfig
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import register_body
from tests.plugin_examples import example, install

TRIALS = """
from fhirpub.plugin_api import Operation, OperationParameter, OperationResult, hookimpl

PARAMETERS = [("count", "integer", True), ("all", "boolean", False), ("since", "date", False)]

def trial(code, run, **more):
    return Operation(type="DiagnosticReport", code=code, title="T", description="D",
                     media_type="text/plain", run=run, **more)

def fail(request):
    return OperationResult(body=request.resource["conclusion"]["x"])

def echo(request):
    return OperationResult(body=repr(sorted(request.parameters.items())).encode())

@hookimpl
def fhirpub_operations():
    parameters = tuple(OperationParameter(name=name, type=kind, meaning="M", required=needed)
                       for name, kind, needed in PARAMETERS)
    return [
        trial("fail", fail),
        trial("nothing", lambda request: None),
        trial("echo", echo, on_instance=False, parameters=parameters),
    ]
"""
SECRET = "Verraeterisch"


@pytest.fixture(scope="module")
def service(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    home = tmp_path_factory.mktemp("home")
    install(home / "a", "trials", TRIALS)
    install(home / "b", "age", example("An operation that returns the age of a report"))
    config = Config(
        plugins=PluginsConfig(enabled=["diagnosticreport", "age", "trials"]),
        auth=AuthConfig(enforce_scopes=True),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(home / "a")
        patch.syspath_prepend(home / "b")
        folder = tmp_path_factory.mktemp("service")
        with RunningService(folder, config=config, store_url=store_url("operations")) as running:
            yield running


@pytest.fixture
def lab(service: RunningService) -> Integrator:
    return service.integrator(scopes=("system/*.cruds",))


def call(lab: Integrator, words: str, **changes: str) -> Answer:
    answer = lab.register(register_body("R-1", **changes))
    address = answer.headers["location"].partition("/_history")[0]
    return lab.get(f"{address}/{words}")


def test_the_example_of_the_guide_returns_the_age(lab: Integrator) -> None:
    report = {"issued": "2026-11-20T10:00:00Z"}

    assert call(lab, "$age?on=2026-11-25", **report).body == b"5 days"


def test_what_an_operation_refuses_is_answered_with_its_reason(lab: Integrator) -> None:
    answer = call(lab, "$age?on=2026-11-01", issued="2026-11-20T10:00:00Z")

    assert answer.status == 422
    assert answer.problems == ["operation-refused"]
    assert "the report is issued after that day" in answer.body.decode()


@pytest.mark.parametrize("code", ["fail", "nothing"])
def test_an_operation_that_fails_is_answered_with_its_plugin_and_no_data(
    lab: Integrator, code: str
) -> None:
    answer = call(lab, f"${code}", conclusion=SECRET)

    assert answer.status == 500
    assert f"the operation ${code} of the plugin trials failed" in answer.body.decode()
    assert SECRET not in answer.body.decode()


def test_parameters_have_the_types_that_are_declared(lab: Integrator) -> None:
    answer = lab.get("/fhir/r4/DiagnosticReport/$echo?count=-3&all=true&since=2026-01")

    assert answer.body == b"[('all', True), ('count', -3), ('since', '2026-01')]"


def test_all_wrong_parameters_are_reported_at_once(lab: Integrator) -> None:
    answer = lab.get("/fhir/r4/DiagnosticReport/$echo?all=maybe&sinc=2026&since=x&since=2026")

    assert answer.status == 400
    assert answer.issue_expressions == {"all", "sinc", "since", "count"}
    assert "did you mean since?" in answer.body.decode()


def test_another_method_is_not_allowed(lab: Integrator) -> None:
    assert lab.request("POST", "/fhir/r4/DiagnosticReport/$echo", {}).status == 405


def test_an_entry_of_a_batch_gets_a_binary(lab: Integrator) -> None:
    entry = {"request": {"method": "GET", "url": "DiagnosticReport/$echo?count=1"}}
    bundle = {"resourceType": "Bundle", "type": "batch", "entry": [entry]}

    answer = lab.request("POST", "/fhir/r4", bundle)

    (found,) = answer.json["entry"]
    assert found["resource"]["resourceType"] == "Binary"
    assert found["resource"]["contentType"] == "text/plain"


def test_openapi_with_operations_of_plugins_is_valid(service: RunningService) -> None:
    document = json.loads(service.request("GET", "/openapi.json", None, {}).body)

    validate(document)
    echo = document["paths"]["/fhir/r4/DiagnosticReport/$echo"]["get"]
    count = next(one for one in echo["parameters"] if one.get("name") == "count")
    assert (count["required"], count["schema"]) == (True, {"type": "integer"})
    assert echo["security"][0] == {"oauth2": ["system/DiagnosticReport.r"]}
