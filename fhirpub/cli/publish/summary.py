"""Prints what became of submissions: for people in lines and a table, for programs as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from fhirpub.cli.printing import as_text, counted, print_json, print_table
from fhirpub.cli.publish.outcome import EXIT_STATUS, Outcome

_ADVICE = "Use another identifier for another report; send a correction by PATCH or $revise."


def print_outcome(outcome: Outcome, *, as_json: bool, is_only: bool) -> None:
    """Print what became of a file; why it is not published on standard error in either form."""
    if as_json:
        _print_json(outcome, is_only=is_only)
    failed = EXIT_STATUS[outcome.result] != 0
    if failed or not as_json:
        start = "Error: " if failed else ""
        click.echo(as_text(f"{start}{outcome.file}: {_heading(outcome)}"), err=failed)
        for line in _details(outcome):
            click.echo(f"  {as_text(line)}", err=failed)


def _heading(outcome: Outcome) -> str:
    resource = f"{outcome.type_name} {outcome.id}" if outcome.id else f"a {outcome.type_name}"
    if outcome.result == "created":
        return f"published as {resource} version {outcome.version}{_company(outcome)}"
    if outcome.result == "replayed":
        return f"already published as {resource} version {outcome.version}, nothing new was stored"
    if outcome.result == "other content":
        return f"{resource} has this identifier with OTHER content: what you sent was not stored"
    return f"{outcome.result}: {outcome.reason}"


def _company(outcome: Outcome) -> str:
    """Return how many resources of each type came with the report."""
    counts = Counter(entry["reference"].partition("/")[0] for entry in outcome.entries)
    listed = ", ".join(counted(count, type_name) for type_name, count in counts.items())
    return f", with {listed}" if listed else ""


def _details(outcome: Outcome) -> list[str]:
    """Return the lines about a file below its heading."""
    lines = [line_of(issue) for issue in outcome.issues]
    if outcome.result == "replayed":  # the first issue of the first response: it was created
        return lines[1:]
    if outcome.result == "other content":  # with an id, the issues are about the first content
        return [*([] if outcome.id else lines), _ADVICE]
    return lines


def print_summary(outcomes: Sequence[Outcome]) -> None:
    """Print one line for each file."""
    click.echo()
    records = [
        {
            "file": outcome.file,
            "result": outcome.result,
            "id": outcome.id,
            "version": outcome.version,
            "address": outcome.address,
        }
        for outcome in outcomes
    ]
    print_table(records, as_json=False, empty="")


def _print_json(outcome: Outcome, *, is_only: bool) -> None:
    """Print one JSON object on a line; with its file and result if there are others."""
    if is_only and not outcome.id:  # refused
        return
    record: dict[str, Any] = {
        "type": outcome.type_name,
        "id": outcome.id,
        "version": outcome.version,
        "location": outcome.location,
        "replayed": bool(outcome.id) and outcome.result != "created",
        "different_content": outcome.result == "other content",
        "entries": outcome.entries,
        "issues": outcome.issues,
    }
    if not is_only:
        record = {"file": outcome.file, "result": outcome.result, **record}
    print_json(record)


def line_of(issue: dict[str, Any]) -> str:
    """Return an issue on one line: severity, place, text and code."""
    place = ", ".join(issue.get("expression", []))
    text = issue.get("diagnostics", "")
    words = f"{place}: {text}" if place else text
    return f"{issue.get('severity', ''):<11}  {words}  ({code_of(issue)})"


def code_of(issue: dict[str, Any]) -> str:
    """Return the service's own code, which its documentation explains, else that of FHIR."""
    codings = issue.get("details", {}).get("coding", [])
    return next((str(coding["code"]) for coding in codings if "code" in coding), "") or str(
        issue.get("code", "")
    )
