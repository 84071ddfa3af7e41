"""``$summary`` of a DiagnosticReport: everything is in it, and every text is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import pytest

from fhirpub.config.settings import AuthConfig, Config, PluginsConfig
from fhirpub.fhir.strict_json import SentDecimal
from fhirpub.testing.plugin_contracts import OperationContract
from fhirpub.testing.service import Integrator, RunningService
from fhirpub_summary.operation import SUMMARY
from tests import bodies
from tests.compositions import observation

SCRIPT = "<script>alert('x')</script>\"&"


@pytest.fixture(scope="module")
def service(
    store_url: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    config = Config(
        plugins=PluginsConfig(enabled=["diagnosticreport", "summary"]),
        auth=AuthConfig(enforce_scopes=True),
    )
    folder = tmp_path_factory.mktemp("summary")
    with RunningService(folder, config=config, store_url=store_url("summary")) as running:
        yield running


def result(name: str, **changes: Any) -> dict[str, Any]:
    """Return a result of the report, as a part that repeats."""
    resource = observation(name, performer=None, identifier=None, **changes)
    return {"name": "observation", "resource": {**resource, "id": name}}


def body(*results: dict[str, Any], **changes: Any) -> dict[str, Any]:
    references = [{"reference": f"Observation/{one['resource']['id']}"} for one in results]
    made = bodies.register_body("R-1", **changes)
    made["parameter"][-1]["resource"]["result"] = references
    made["parameter"] = [*results, *made["parameter"]]
    return made


class Tags(HTMLParser):
    """The names of all elements, and of all attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(name for name, _ in attrs)}


def summary_of(lab: Integrator, content: dict[str, Any]) -> str:
    answer = lab.register(content)
    assert answer.status == 201, answer.body
    address = answer.headers["location"].partition("/_history")[0]
    found = lab.get(f"{address}/$summary")
    assert found.status == 200, found.body
    return found.body.decode()


class TestSummary(OperationContract):
    operation = SUMMARY

    def body(self) -> dict[str, Any]:
        return body(result("pressure"))

    def test_the_report_its_results_and_its_document_are_in_it(self, lab: Integrator) -> None:
        judged = {
            "interpretation": [{"coding": [{"code": "HH"}]}],
            "referenceRange": [
                {"low": {"value": 3.5, "unit": "mmol/L"}, "high": {"value": 5.1, "unit": "mmol/L"}}
            ],
            "valueQuantity": {"value": 6.40, "unit": "mmol/L"},
            "component": None,
            "code": {"text": "Potassium"},
        }

        text = summary_of(lab, body(result("k", **judged), result("pressure")))

        assert "<td>Potassium</td><td>6.4 mmol/L</td><td>critically high (HH)</td>" in text
        assert "<td>3.5 mmol/L to 5.1 mmol/L</td><td>final</td>" in text
        assert "Blood pressure panel: Systolic blood pressure</td><td>128 mmHg</td>" in text
        assert "Ana Inés López" in text
        assert "1980-02-29" in text
        assert "/fhir/r4/Binary/" in text

    @pytest.mark.parametrize("sent", ["0.0000001", "1e-7", "1.00E-7", "1E2", "6.40"])
    def test_a_number_is_in_it_however_it_was_sent(self, lab: Integrator, sent: str) -> None:
        value = {"valueQuantity": {"value": SentDecimal(sent), "unit": "mol/L"}, "component": None}

        text = summary_of(lab, body(result("trace", **value)))

        assert f"<td>{Decimal(sent):f} mol/L</td>" in text

    def test_no_text_of_the_report_becomes_markup(self, lab: Integrator) -> None:
        hostile = result(
            "x",
            code={"text": SCRIPT},
            component=None,
            valueString=SCRIPT,
            note=[{"text": SCRIPT}],
            referenceRange=[{"text": SCRIPT}],
            interpretation=[{"text": SCRIPT}],
        )
        content = body(hostile, conclusion=SCRIPT, code={"text": SCRIPT})
        content["parameter"][1]["resource"]["name"] = [{"family": SCRIPT, "given": [SCRIPT]}]
        content["parameter"][-1]["resource"]["presentedForm"][0]["title"] = SCRIPT

        text = summary_of(lab, content)

        assert "<script" not in text
        assert text.count("&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&quot;&amp;") >= 9
        allowed = (
            "html head meta title style body h1 p strong table caption thead tbody tr th td a"
        )
        attributes = "lang charset name content scope href rel target"
        assert Tags(text).names <= {*allowed.split(), *attributes.split()}

    def test_a_result_that_the_service_does_not_hold_has_a_row(self, lab: Integrator) -> None:
        content = bodies.register_body("R-1")
        lost = {"reference": "https://other.example/Observation/1", "display": "Sodium"}
        content["parameter"][-1]["resource"]["result"] = [lost]

        text = summary_of(lab, content)

        assert "<td>Sodium</td><td>not available here</td>" in text

    @pytest.mark.parametrize("form", ["{base}/fhir/r4/{reference}", "{reference}/_history/1"])
    def test_a_result_is_there_however_it_is_referred_to(self, lab: Integrator, form: str) -> None:
        first = lab.register(body(result("pressure")))
        reference = lab.get(first.headers["location"]).json["result"][0]["reference"]
        again = bodies.register_body("R-2")
        literal = form.format(base=lab.service.base_url, reference=reference)
        again["parameter"][-1]["resource"]["result"] = [{"reference": literal}]

        text = summary_of(lab, again)

        assert "Blood pressure panel" in text
        assert "not available here" not in text
