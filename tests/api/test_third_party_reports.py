"""Third-party reports, sent as they are and completed, are accepted or rightly refused.

With FHIRPUB_TEST_FULL set, all examples are sent, also those of sources that have many.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote

import pytest

from fhirpub.config.loader import variable
from fhirpub.testing.service import Answer, Integrator, RunningService

CORPUS = Path(__file__).parents[1] / "corpus"


def module(name: str) -> ModuleType:
    """Return a module of the corpus folder, which is data and not a package."""
    spec = importlib.util.spec_from_file_location(f"corpus_{name}", CORPUS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


bodies = module("bodies")
validator = module("validator")

JsonObject = dict[str, Any]

# --- the one place that knows the fixture -------------------------------------------------


@pytest.fixture(scope="module")
def service(service: RunningService) -> Integrator:
    """A client that publishes third-party reports."""
    return service.integrator()


def reading_path(created: Answer) -> str:
    """Return the path of the registered report."""
    return "/fhir" + created.headers["location"].split("/fhir", 1)[1].split("/_history")[0]


def searching_path(report: JsonObject) -> str:
    """Return the search that finds the registered report by its identifier."""
    escaped = (
        re.sub(r"([\\|,$])", r"\\\1", report["identifier"][0][k]) for k in ("system", "value")
    )
    return f"/fhir/r4/DiagnosticReport?identifier={quote('|'.join(escaped), safe='')}"


# --- the corpus ---------------------------------------------------------------------------


def entries() -> list[JsonObject]:
    with gzip.open(CORPUS / "reports.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


ENTRIES = entries()
VARIANTS = ("as_is", "completed")
_MOST = len(ENTRIES) if variable("FHIRPUB_TEST_FULL") else 1
"""So many examples of one source, one hundred and more of which are much alike."""


@pytest.fixture(scope="module")
def validators() -> Iterator[list[Any]]:
    """Every independent validator, started once."""
    running = [validator.Validator(name) for name in validator.PINS]
    yield running
    for item in running:
        item.close()


def sent(variant: str) -> Iterator[tuple[str, JsonObject]]:
    """Return every body of a variant, none a resubmission of another.

    Examples share identifiers; the value gets a suffix, or the first response would be replayed.
    """
    seen: Counter[str] = Counter()
    for number, entry in enumerate(ENTRIES):
        source = entry["source"].partition("@")[0]
        seen[source] += 1
        if seen[source] > _MOST:
            continue
        body = bodies.register_body(entry, variant)
        report_of(body)["identifier"][0]["value"] += f"-{variant}-{number}"
        yield entry["source"], body


# --- comparisons ---------------------------------------------------------------------------


def blamed(expression: str, body: JsonObject) -> str:
    """Return the element that an expression names, in the terms of the prediction."""
    inside = re.match(r"Parameters\.parameter\[(\d+)\]\.resource\.?", expression)
    if inside is None:
        return "parameter" if expression.startswith("Parameters") else plain(expression)
    entry = body["parameter"][int(inside[1])]["name"]
    element = plain(expression[inside.end() :])
    return element if entry == "diagnosticReport" else f"{entry}.{element}".rstrip(".")


def plain(path: str) -> str:
    return re.sub(r"\[\d+\]|^DiagnosticReport\.", "", path)


def is_about(element: str, other: str) -> bool:
    """Return whether one element is the other or is inside it."""
    return (
        element == other
        or f"{element}.".startswith(f"{other}.")
        or f"{other}.".startswith(f"{element}.")
    )


def complaints(answer: Answer, body: JsonObject) -> list[str]:
    """Return the elements that a refusal names."""
    errors = [item for item in answer.json["issue"] if item["severity"] in {"error", "fatal"}]
    return [blamed(item, body) for issue in errors for item in issue.get("expression", [])]


def disagreement(answer: Answer, body: JsonObject) -> str | None:
    """Return how the response contradicts the prediction."""
    if answer.status not in {201, 400, 413, 422}:
        return f"status {answer.status}"
    expected, arguable = bodies.expected(body), bodies.arguable(body)
    if answer.status == 201:
        wrong = expected != "accepted" and not set(expected) <= arguable
        return f"accepted in spite of {sorted(expected)}" if wrong else None
    issues = answer.json["issue"]
    if not all(issue.get("expression") for issue in issues):
        return f"an issue without expression: {issues}"
    allowed = (set() if expected == "accepted" else set(expected)) | arguable
    unexpected = [x for x in complaints(answer, body) if not any(is_about(x, y) for y in allowed)]
    if unexpected:
        return f"blames {unexpected}, not {sorted(allowed)}: {issues}"
    if not arguable and answer.status not in bodies.expected_statuses(body):
        return f"status {answer.status}, not {bodies.expected_statuses(body)}"
    return None


def is_excused(answer: Answer, body: JsonObject, validators: list[Any]) -> bool:
    """Return whether a validator supports a refusal that was not predicted."""
    if answer.status not in {400, 422} or not all(
        x.get("expression") for x in answer.json["issue"]
    ):
        return False
    return bool(validator.faults(body, validators))


def is_one_opinion(found: list[Any], body: JsonObject, validators: list[Any]) -> bool:
    """Return whether only one validator complains, and already did about the report that was sent.

    Each has quirks of its own (fhir.resources wants a scheme in every url, fhircraft no white
    space in Base64). The service must not have accepted a report that two of them refuse.
    """
    blaming = {item.validator for item in found}
    sent_faults = {fault.validator for fault in validator.faults(body, validators)}
    return len(blaming) == 1 and blaming == sent_faults


TIMED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")
TIMES = {"effectiveDateTime", "issued", "creation", "start", "end"}


def content(node: Any, key: str = "") -> Any:
    """Return a report without what the service may change: id, meta, references, time zones."""
    if isinstance(node, dict):
        if "reference" in node or key in {"subject", "performer"}:
            # The service renames the entry and adds identifier and display (D-94).
            return "reference"
        return {k: content(v, k) for k, v in node.items() if k not in {"id", "meta"}}
    if isinstance(node, list):
        return [content(item, key) for item in node]
    if key in TIMES and isinstance(node, str) and TIMED.fullmatch(node):
        return instant(node)
    return node


def instant(text: str) -> str:
    """Return a time in UTC, with its fraction separate."""
    whole = re.sub(r"\.\d+", "", text)
    read = datetime.fromisoformat(whole)
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def report_of(body: JsonObject) -> JsonObject:
    return next(x["resource"] for x in body["parameter"] if x["name"] == "diagnosticReport")


# --- the tests ----------------------------------------------------------------------------


def test_the_corpus_is_large_and_varied() -> None:
    makers = {entry["source"].split("@")[0] for entry in ENTRIES}

    assert len(ENTRIES) >= 300
    assert len(makers) >= 10


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_report_is_accepted_or_refused_with_a_right_reason(
    service: Integrator, validators: list[Any], variant: str
) -> None:
    wrong = {}
    for source, body in sent(variant):
        answer = service.register(body)

        contradiction = disagreement(answer, body)
        if contradiction and not is_excused(answer, body, validators):
            wrong[source] = contradiction

    assert wrong == {}


def test_most_completed_reports_are_accepted(service: Integrator) -> None:
    statuses = [service.register(body).status for _, body in sent("completed")]

    assert statuses.count(201) > len(statuses) / 2


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_answer_passes_the_independent_validators(
    service: Integrator, validators: list[Any], variant: str
) -> None:
    wrong = {}
    for source, body in sent(variant):
        answers = [service.register(body)]
        if answers[0].status == 201:
            answers.append(service.get(reading_path(answers[0])))
            answers.append(service.get(searching_path(report_of(body))))

        found = [x for answer in answers for x in validator.faults(answer.json, validators)]
        if found and not is_one_opinion(found, body, validators):
            wrong[source] = found

    assert wrong == {}


def test_what_was_accepted_reads_back_with_equal_content(service: Integrator) -> None:
    changed = {}
    for source, body in sent("completed"):
        created = service.register(body)
        if created.status != 201:
            continue
        read = service.get(reading_path(created))

        if read.status != 200 or content(read.json) != content(report_of(body)):
            changed[source] = (content(report_of(body)), content(read.json))

    assert changed == {}
