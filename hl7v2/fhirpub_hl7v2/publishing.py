"""The command ``fhirpub-hl7v2 publish``: the messages of a file, one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fhirpub.cli.options import with_json
from fhirpub.cli.printing import as_text, print_json
from fhirpub.cli.publish.publisher import NoToken
from fhirpub.cli.publish.retries import Unreachable
from fhirpub.cli.publish.service import Service
from fhirpub.cli.publish.summary import line_of
from fhirpub.config.settings import Config
from fhirpub.fhir.strict_json import pretty
from fhirpub_hl7v2.delivery import Delivery, deliver
from fhirpub_hl7v2.mapping.reports import Report, reports_of
from fhirpub_hl7v2.message import parse, split_messages
from fhirpub_hl7v2.problems import Unusable, kept_as_registered
from fhirpub_hl7v2.service import named_service, open_publisher, with_service
from fhirpub_hl7v2.settings import Settings, read_settings


@dataclass(frozen=True, slots=True)
class Mapped:
    """A message of a file, counted from 1: its reports, or what is wrong with it."""

    number: int
    reports: tuple[Report, ...] = ()
    problem: Unusable | None = None


@click.command(
    short_help="Publish the messages of a file.",
    epilog="""\b
Credentials come from FHIRPUB_CLIENT_ID and FHIRPUB_CLIENT_SECRET, or from a prompt.

\b
Examples:
  fhirpub-hl7v2 publish result.hl7 --dry-run --mapping mapping.toml
  fhirpub-hl7v2 publish batch.hl7 --mapping mapping.toml --url https://fhir.example.org

\b
Exit status, of several reports the highest:
  0  published, now or by an earlier run; with --dry-run: can be mapped
  1  refused, or not sent: the service could not be reached, or gave no token
  2  wrong usage
  3  older than the report that is published, and not stored
""",
)
@click.argument("file", type=click.File("rb"), metavar="FILE|-")
@click.option("--dry-run", is_flag=True, help="Print the Parameters of each report, send nothing.")
@with_service
@with_json
def publish(file: Any, mapping: Path | None, *, dry_run: bool, **options: Any) -> None:
    """Publish the reports of ORU^R01 messages: FILE has one, several, or a batch (FHS, BHS).

    The command is safe to repeat: the same message is published once. A later state of a report,
    such as a correction, becomes its next version.
    """
    messages = list(map_all(file.read(), read_settings(mapping)))
    status = _print_all(messages) if dry_run else _publish(messages, **options)
    click.get_current_context().exit(status)


def map_all(raw: bytes, settings: Settings) -> Iterator[Mapped]:
    """Yield each message of a file. Raises UsageError if there is none."""
    try:
        messages = split_messages(raw)
    except Unusable as problem:
        raise click.UsageError(str(problem)) from None
    for number, message in enumerate(messages, 1):
        try:
            reports = reports_of(parse(message, settings.character_set), settings)
            yield Mapped(number, tuple(reports))
        except Unusable as problem:
            yield Mapped(number, problem=problem)


def _print_all(messages: list[Mapped]) -> int:
    for message in messages:
        for report in message.reports:
            click.echo(pretty(report.body))
        _print_problem(message)
    return int(any(message.problem for message in messages))


def _print_problem(message: Mapped) -> None:
    for problem in message.problem.problems if message.problem else ():
        click.echo(f"Error: message {message.number}: {problem}", err=True)


def _publish(messages: list[Mapped], *, as_json: bool, config: Config, **named: Any) -> int:
    service = named_service(config, named["url"], named["audience"], named["cacert"])
    return asyncio.run(_publish_all(service, messages, as_json=as_json))


async def _publish_all(service: Service, messages: list[Mapped], *, as_json: bool) -> int:
    statuses = [int(message.problem is not None) for message in messages]
    async with open_publisher(service) as publisher:
        try:
            for message in messages:
                _print_problem(message)
                for at, report in enumerate(message.reports, 1):
                    delivery = await deliver(publisher, report)
                    _print(delivery, message.number, at, as_json=as_json)
                    statuses.append(_status(delivery))
        except (NoToken, Unreachable) as problem:  # the others would fail in the same way
            problem.show()
            statuses.append(1)
    return max(statuses)


def _status(delivery: Delivery) -> int:
    if delivery.is_stored:
        return 0
    return 3 if delivery.result == "superseded" else 1


def _print(delivery: Delivery, number: int, report: int, *, as_json: bool) -> None:
    """Print what became of a report: problems on standard error, in either form."""
    if as_json:
        record = {"message": number, "report": report, "result": delivery.result}
        found = {
            "id": delivery.id,
            "version": delivery.version,
            "issues": delivery.issues,
            "kept": delivery.kept,
        }
        print_json({**record, **found})
    if delivery.kept:
        click.echo(f"Warning: message {number}: {kept_as_registered(delivery.kept)}", err=True)
    if delivery.is_stored and as_json:
        return
    place = f"message {number}, report {report}"
    failed = not delivery.is_stored
    start = "Error: " if failed else ""
    click.echo(as_text(f"{start}{place}: {_heading(delivery)}"), err=failed)
    for issue in delivery.issues if delivery.result in ("created", "refused") else ():
        click.echo(f"  {as_text(line_of(issue))}", err=failed)


def _heading(delivery: Delivery) -> str:
    stored = f"DiagnosticReport {delivery.id} version {delivery.version}"
    return {
        "created": f"published as {stored}",
        "replayed": f"already published as {stored}, nothing new was stored",
        "revised": f"published as {stored}",
        "superseded": f"{stored} is of a later state: what you sent was not stored",
        "refused": f"refused: {delivery.reason}",
    }[delivery.result]
