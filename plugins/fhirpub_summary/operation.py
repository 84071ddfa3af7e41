"""The operation, and the document that it makes of a report and its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fhirpub.plugin_api import Operation, OperationRequest, OperationResult
from fhirpub_summary.page import link, page, paragraph, table, text_of
from fhirpub_summary.values import flag_of, label_of, name_of, range_of, value_of

_HEAD = ("Test", "Value", "Flag", "Reference range", "Status")
_MISSING = "not available here"

Resource = Mapping[str, Any]


def summarize(request: OperationRequest) -> OperationResult:
    """Return the report as HTML; every text of it is escaped."""
    report = _with_relative_references(request.resource, request.fhir_url)
    title = label_of(report.get("code")) or "Diagnostic report"
    body = [
        *_facts(report, request.included),
        *_conclusion(report),
        *_results(report, request.included),
        *_documents(report, request.fhir_url),
    ]
    return page(title, body)


def _with_relative_references(report: Resource, fhir_url: str) -> Resource:
    """Return the report with each reference to a resource of the service as ``Type/id``."""
    address = fhir_url.partition("://")[2]

    def relative(element: Any) -> Any:
        literal = _reference(element)
        plain = literal.removeprefix("https://").removeprefix("http://")
        is_ours = literal and (plain == literal or plain.startswith(f"{address}/"))
        short = plain.removeprefix(f"{address}/").partition("/_history/")[0]
        return {**element, "reference": short} if is_ours else element

    lists = {name: [*map(relative, report.get(name, ()))] for name in ("result", "performer")}
    return {**report, **lists, "subject": relative(report.get("subject", {}))}


def _facts(report: Resource, included: Mapping[str, Resource]) -> Iterator[str]:
    """Yield the patient and the subject of the report; first, if it was withdrawn, that it was."""
    if report.get("status") == "entered-in-error":
        yield paragraph("Withdrawn", "This report was entered in error: do not use it.")
    patient = included.get(_reference(report.get("subject")), {})
    period = report.get("effectivePeriod", {})
    facts = {
        "Patient": name_of(patient) or text_of(report.get("subject", {}).get("display")),
        "Birth date": text_of(patient.get("birthDate")),
        "Laboratory": ", ".join(
            name_of(included.get(_reference(one), {})) or text_of(one.get("display"))
            for one in report.get("performer", ())
        ),
        "Report": ", ".join(text_of(one.get("value")) for one in report.get("identifier", ())),
        "Status": text_of(report.get("status")),
        "Time of the specimen": text_of(report.get("effectiveDateTime") or period.get("start")),
        "Issued": text_of(report.get("issued")),
    }
    yield from (paragraph(name, value) for name, value in facts.items() if value)


def _conclusion(report: Resource) -> Iterator[str]:
    if "conclusion" in report:
        yield paragraph("Conclusion", text_of(report["conclusion"]))
    codes = ", ".join(filter(None, map(label_of, report.get("conclusionCode", ()))))
    if codes:
        yield paragraph("Coded conclusion", codes)


def _results(report: Resource, included: Mapping[str, Resource]) -> Iterator[str]:
    """Yield the table of results. One that cannot be read has a row, too."""
    contained = {f"#{one.get('id')}": one for one in report.get("contained", ())}
    found = {**included, **contained}
    rows: list[tuple[str, ...]] = []
    for reference in report.get("result", ()):
        result = found.get(_reference(reference))
        if result is None:
            rows.append((text_of(reference.get("display")) or "Result", _MISSING, "", "", ""))
        else:
            rows += _rows(result)
    if rows:
        yield table("Results", _HEAD, rows)


def _rows(result: Resource) -> Iterator[tuple[str, ...]]:
    """Yield the row of a result, and one for each of its components."""
    status = text_of(result.get("status"))
    name = label_of(result.get("code")) or "Result"
    yield (name, value_of(result), flag_of(result), range_of(result), status)
    for part in result.get("component", ()):
        named = f"{name}: {label_of(part.get('code'))}"
        yield (named, value_of(part), flag_of(part), range_of(part), status)
    for note in result.get("note", ()):
        yield (f"Note on {name}", text_of(note.get("text")), "", "", "")


def _documents(report: Resource, fhir_url: str) -> Iterator[str]:
    """Yield links to the documents that the service holds."""
    for form in report.get("presentedForm", ()):
        address = text_of(form.get("url"))
        if address.startswith(f"{fhir_url}/Binary/"):
            title = text_of(form.get("title")) or "Document"
            yield link(address, f"{title} ({text_of(form.get('contentType'))})")


def _reference(element: Any) -> str:
    return text_of(element.get("reference")) if isinstance(element, Mapping) else ""


SUMMARY = Operation(
    type="DiagnosticReport",
    code="summary",
    title="Read a report as one HTML document",
    description=(
        "Returns the report for reading: its patient and laboratory, its conclusion, its results "
        "as a table with flags and reference ranges, and links to its documents. A result that "
        "cannot be read has a row that says so. The document has no script and loads nothing."
    ),
    media_type="text/html; charset=utf-8",
    run=summarize,
    includes=("DiagnosticReport:result", "DiagnosticReport:subject", "DiagnosticReport:performer"),
)
