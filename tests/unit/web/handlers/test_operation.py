"""Operations of plugins over HTTP: as documents and as FHIR, and what they need."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from uuid import uuid4

import pytest

from fhirpub.config.settings import AuthConfig, Config, PluginsConfig
from fhirpub.testing.service import Integrator, RunningService
from tests.audit_trail import read_chain
from tests.bodies import register_body
from tests.panels import panel, result
from tests.plugin_examples import install
from tests.unit.web.handlers.asking import REPORTS, path_of

STYLE = "p{color:red}"
TRIALS = f"""
from fhirpub.plugin_api import Operation, OperationParameter, OperationResult, hookimpl

def trial(code, run, **more):
    return Operation(type="DiagnosticReport", code=code, title="T", description="D",
                     media_type="text/html", run=run, **more)

def page(request):
    said = request.resource["status"] + str(sorted(request.parameters.items()))
    return OperationResult(body=said.encode(), styles=("{STYLE}",))

def all_of(request):
    return OperationResult(body=" ".join(sorted(request.included)).encode())

@hookimpl
def fhirpub_operations():
    count = OperationParameter(name="count", type="integer", meaning="M")
    return [
        trial("page", page, parameters=(count,)),
        trial("all", all_of, includes=("DiagnosticReport:result",)),
        trial("plain", lambda request: OperationResult(body=b"plain"), on_instance=False),
    ]
"""


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service with operations of a plugin, in which scopes count."""
    home = tmp_path_factory.mktemp("home")
    install(home, "unit_trials", TRIALS)
    config = Config(
        plugins=PluginsConfig(enabled=["diagnosticreport", "unit_trials"]),
        auth=AuthConfig(enforce_scopes=True),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(home)
        with RunningService(tmp_path_factory.mktemp("serving"), config=config) as service:
            yield service


@pytest.fixture
def lab(serving: RunningService) -> Integrator:
    return serving.integrator(scopes=("system/*.cruds",))


@pytest.fixture
def path(lab: Integrator) -> str:
    return path_of(lab.register(register_body(uuid4().hex)))


def test_a_result_is_a_document_of_its_type(lab: Integrator, path: str) -> None:
    answer = lab.get(f"{path}/$page?count=2", Accept="text/html")

    assert (answer.status, answer.body) == (200, b"final[('count', 2)]")
    assert answer.headers["content-type"] == "text/html"
    assert answer.headers["cache-control"] == "private, no-cache"


def test_a_document_may_do_nothing_but_show_its_own_styles(lab: Integrator, path: str) -> None:
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    rest = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-popups"

    policies = [
        lab.get(each, Accept="text/html").headers["content-security-policy"]
        for each in (f"{path}/$page", f"{REPORTS}/$plain")
    ]

    assert policies == [
        f"default-src 'none'; style-src 'sha256-{digest}'; {rest}",
        f"default-src 'none'; style-src 'none'; {rest}",
    ]


def test_a_result_is_a_binary_for_a_client_that_accepts_fhir(lab: Integrator, path: str) -> None:
    answer = lab.get(f"{path}/$page", Accept="application/fhir+json")

    assert answer.headers["content-type"] == "application/fhir+json"
    assert answer.json == {
        "resourceType": "Binary",
        "contentType": "text/html",
        "data": base64.b64encode(b"final[]").decode(),
    }


def test_a_result_is_a_binary_in_xml_for_a_client_that_names_it(
    lab: Integrator, path: str
) -> None:
    answer = lab.get(f"{path}/$page?_format=application/fhir%2Bxml")

    assert (answer.status, answer.headers["content-type"]) == (200, "application/fhir+xml")
    assert b'<data value="%b"/>' % base64.b64encode(b"final[]") in answer.body


def test_a_format_that_is_none_of_fhir_leaves_the_result_as_it_is(
    lab: Integrator, path: str
) -> None:
    answer = lab.get(f"{path}/$page?_format=text/turtle")

    assert (answer.status, answer.body) == (200, b"final[]")


def test_a_wrong_parameter_is_refused(lab: Integrator, path: str) -> None:
    assert lab.get(f"{path}/$page?count=x").status == 400


def test_an_operation_on_what_is_not_there_finds_nothing(lab: Integrator) -> None:
    assert lab.get(f"{REPORTS}/unknown/$page").status == 404


def test_an_operation_on_a_report_of_another_tenant_finds_nothing(
    serving: RunningService, path: str
) -> None:
    other = serving.integrator("Other", scopes=("system/*.cruds",))

    assert other.get(f"{path}/$page").status == 404


@pytest.mark.parametrize(("scope", "status"), [("r", 200), ("cus", 403)])
def test_an_operation_needs_the_right_to_read(
    serving: RunningService, lab: Integrator, path: str, scope: str, status: int
) -> None:
    other = serving.another_client(lab.tenant, scopes=(f"system/DiagnosticReport.{scope}",))

    assert other.get(f"{path}/$page").status == status


def test_an_operation_is_recorded_with_its_report_and_its_patient(
    lab: Integrator, path: str
) -> None:
    lab.get(f"{path}/$page")

    record = read_chain(lab, lab.tenant.id)[-1]

    assert (record["action"], record["status"]) == ("operation", 200)
    assert record["what"][0] == f"DiagnosticReport/{path.rpartition('/')[2]}/_history/1"
    assert len(record["patients"]) == 1


@pytest.mark.parametrize(("letters", "status"), [("DiagnosticReport.r", 403), ("*.r", 200)])
def test_an_operation_includes_and_records_what_the_caller_may_read(
    serving: RunningService, lab: Integrator, letters: str, status: int
) -> None:
    made = lab.register(panel(uuid4().hex, result("r1", 1.0), result("r2", 2.0)))
    reader = serving.another_client(lab.tenant, scopes=(f"system/{letters}",))

    answer = reader.get(f"{path_of(made)}/$all")

    record = read_chain(lab, lab.tenant.id)[-1]
    assert (answer.status, len(record["what"])) == (status, 3 if status == 200 else 1)
    if status == 200:
        assert sorted(record["what"][1:]) == answer.body.decode().split()
