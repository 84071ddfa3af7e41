"""The document that ``$summary`` makes, as a browser reads it."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from fhirpub.plugin_api import OperationRequest, OperationResult
from fhirpub_summary.operation import summarize
from fhirpub_summary.page import link, paragraph, table
from fhirpub_summary.values import range_of, value_of

BASE = "https://fhir.example.org/fhir/r4"
_VOID = {"meta"}


class Document(HTMLParser):
    """The texts of a document by the path of their element, and its links; tags must match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.links: list[dict[str, str | None]] = []
        self.charset = ""
        self.feed(text)
        self.close()
        assert self.opened == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.opened.append(tag)
        if tag == "a":
            self.links.append(dict(attrs))
        self.charset += dict(attrs).get("charset") or ""

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(("/".join(self.opened), data))

    def of(self, path: str) -> list[str]:
        """Return the texts at the end of a path of elements."""
        return [text for place, text in self.texts if place.endswith(path)]

    @property
    def facts(self) -> dict[str, str]:
        """The paragraphs with a name."""
        return dict(zip(self.of("p/strong"), self.of("body/p"), strict=True))


def summary(
    report: dict[str, Any], included: dict[str, dict[str, Any]] | None = None
) -> OperationResult:
    return summarize(OperationRequest(resource=report, included=included or {}, fhir_url=BASE))


def shown(report: dict[str, Any], included: dict[str, dict[str, Any]] | None = None) -> Document:
    return Document(summary(report, included).body.decode())


RESULT = {
    "status": "final",
    "code": {"text": "Potassium"},
    "valueQuantity": {"value": 6, "unit": "mmol/L"},
    "interpretation": [{"coding": [{"code": "H"}]}],
    "referenceRange": [{"low": {"value": 3}, "high": {"value": 5}}],
    "note": [{"text": "Not haemolysed."}],
    "component": [{"code": {"text": "Part"}, "valueString": "x"}],
}


def test_the_title_of_the_document_is_its_heading_too() -> None:
    document = shown({"code": {"text": "Blood count"}})

    assert document.of("head/title") == document.of("body/h1") == ["Blood count"]


def test_a_report_without_a_code_has_a_heading() -> None:
    assert shown({}).of("h1") == ["Diagnostic report"]


def test_a_report_without_anything_has_no_facts_and_no_table() -> None:
    assert [path for path, _text in shown({}).texts if "/body/" in path] == ["html/body/h1"]


def test_the_style_that_the_document_has_is_the_one_that_is_allowed() -> None:
    result = summary({})

    assert Document(result.body.decode()).of("style") == [*result.styles]


def test_the_document_is_in_utf_8_and_declares_it() -> None:
    result = summary({"code": {"text": "Hämoglobin"}})

    assert Document(result.body.decode("utf-8")).charset == "utf-8"
    assert result.body.startswith(b"<!doctype html>")


def test_the_facts_come_in_the_order_in_which_a_reader_needs_them() -> None:
    patient: dict[str, Any] = {"name": [{"family": "Ashdown"}], "birthDate": "1987-06-05"}
    report = {
        "subject": {"reference": "Patient/p1"},
        "performer": [{"display": "North Quay"}],
        "identifier": [{"value": "R-1"}],
        "status": "amended",
        "effectiveDateTime": "2026-03-02T08:15:00Z",
        "issued": "2026-03-02T09:00:00Z",
    }

    assert [*shown(report, {"Patient/p1": patient}).facts.items()] == [
        ("Patient:", " Ashdown"),
        ("Birth date:", " 1987-06-05"),
        ("Laboratory:", " North Quay"),
        ("Report:", " R-1"),
        ("Status:", " amended"),
        ("Time of the specimen:", " 2026-03-02T08:15:00Z"),
        ("Issued:", " 2026-03-02T09:00:00Z"),
    ]


def test_a_withdrawn_report_begins_with_the_warning() -> None:
    facts = shown({"status": "entered-in-error"}).facts

    assert [*facts.items()] == [
        ("Withdrawn:", " This report was entered in error: do not use it."),
        ("Status:", " entered-in-error"),
    ]


def test_a_patient_that_cannot_be_read_is_called_as_the_report_calls_them() -> None:
    subject = {"reference": "Patient/p1", "display": "J. Ashdown"}

    assert shown({"subject": subject}).facts == {"Patient:": " J. Ashdown"}


@pytest.mark.parametrize("form", ["{}", f"{BASE}/{{}}", f"{BASE}/{{}}/_history/2"])
def test_the_patient_and_the_laboratory_are_found_by_each_form_of_a_reference(form: str) -> None:
    report = {
        "subject": {"reference": form.format("Patient/p1")},
        "performer": [{"reference": form.format("Organization/o1")}],
    }
    included: dict[str, Any] = {
        "Patient/p1": {"name": [{"family": "A"}]},
        "Organization/o1": {"name": "Q"},
    }

    assert shown(report, included).facts == {"Patient:": " A", "Laboratory:": " Q"}


def test_a_laboratory_of_elsewhere_is_called_as_the_report_calls_it() -> None:
    performer = {"reference": "https://other.example/fhir/r4/Organization/o1", "display": "Other"}

    facts = shown({"performer": [performer]}, {"Organization/o1": {"name": "North Quay"}}).facts

    assert facts == {"Laboratory:": " Other"}


def test_a_result_without_a_reference_is_called_as_the_report_calls_it() -> None:
    assert shown({"result": [{"display": "Sodium"}, {}]}).of("tr/td") == [
        *("Sodium", "not available here"),
        *("Result", "not available here"),
    ]


def test_the_table_of_results_has_a_head_and_a_caption() -> None:
    document = shown({"result": [{"reference": "Observation/o1"}]}, {"Observation/o1": RESULT})

    assert document.of("table/caption") == ["Results"]
    assert document.of("thead/tr/th") == ["Test", "Value", "Flag", "Reference range", "Status"]


def test_a_result_its_parts_and_its_notes_are_rows_in_this_order() -> None:
    document = shown({"result": [{"reference": "Observation/o1"}]}, {"Observation/o1": RESULT})

    assert document.of("tbody/tr/td") == [
        *("Potassium", "6 mmol/L", "high (H)", "3 to 5", "final"),
        *("Potassium: Part", "x", "final"),
        *("Note on Potassium", "Not haemolysed."),
    ]


@pytest.mark.parametrize(
    "report",
    [
        {"result": [{"display": "Sodium"}]},
        {"result": [{"reference": "#a"}], "contained": [{**RESULT, "id": "a"}]},
    ],
)
def test_each_row_has_a_cell_for_each_column(report: dict[str, Any]) -> None:
    text = summary(report).body.decode()

    rows = text.partition("<tbody>")[2].split("</tr>")[:-1]
    assert [row.count("<td>") for row in rows] == [5] * len(rows)
    assert rows
    assert "<td></td>" in text


def test_all_parts_and_notes_of_a_result_are_rows() -> None:
    several = {
        "code": {"text": "Culture"},
        "component": [{"code": {"text": one}, "valueString": "x"} for one in ("A", "B")],
        "note": [{"text": "First."}, {"text": "Second."}],
    }

    cells = shown({"result": [{"reference": "Observation/o1"}]}, {"Observation/o1": several})

    assert cells.of("td") == [
        "Culture",
        *("Culture: A", "x", "Culture: B", "x"),
        *("Note on Culture", "First.", "Note on Culture", "Second."),
    ]


def test_a_result_without_a_code_has_a_name() -> None:
    included = {"Observation/o1": {"valueString": "x", "note": [{"text": "y"}]}}

    cells = shown({"result": [{"reference": "Observation/o1"}]}, included).of("td")

    assert cells == ["Result", "x", "Note on Result", "y"]


def test_a_document_without_a_title_can_be_opened() -> None:
    form = {"url": f"{BASE}/Binary/b1", "contentType": "text/plain"}

    document = shown({"presentedForm": [form]})

    assert document.of("p/a") == ["Document (text/plain)"]
    assert document.links == [
        {"href": f"{BASE}/Binary/b1", "rel": "noreferrer", "target": "_blank"}
    ]


def test_the_parts_of_a_page_are_well_formed() -> None:
    for part in (paragraph("a", "b"), link("c", "d"), table("e", ["f", "g"], [["h", "i"]])):
        Document(part)
    assert Document(table("e", ["f", "g"], [["h", "i"], ["j", "k"]])).texts == [
        ("table/caption", "e"),
        ("table/thead/tr/th", "f"),
        ("table/thead/tr/th", "g"),
        *(("table/tbody/tr/td", cell) for cell in "hijk"),
    ]


# Elements of which a part is missing


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"valueRatio": {"numerator": {"value": 1}}}, "1 : "),
        ({"valueRatio": {"denominator": {"value": 2}}}, " : 2"),
        ({"valueRange": {"low": {"value": 2}}}, "2 to "),
        ({"valuePeriod": {"start": "2026-01-01"}}, "2026-01-01 to "),
        ({"valuePeriod": {"end": "2026-01-02"}}, " to 2026-01-02"),
        ({"valueQuantity": {"value": 0, "unit": "mg"}}, "0 mg"),
    ],
)
def test_a_value_with_one_end_shows_this_one(value: dict[str, Any], text: str) -> None:
    assert value_of(value) == text


def test_a_limit_of_zero_is_a_limit() -> None:
    limits = {"low": {"value": 0}, "high": {"value": 5}}

    assert range_of({"referenceRange": [limits]}) == "0 to 5"
