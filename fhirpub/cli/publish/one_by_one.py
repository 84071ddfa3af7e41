"""Registers the files that were named, one after another, and prints what became of each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from fhirpub.cli.http_client import http_client, send
from fhirpub.cli.publish.files import UnusableFile
from fhirpub.cli.publish.outcome import Outcome, outcome_of
from fhirpub.cli.publish.publisher import NoToken, Publisher, Registration
from fhirpub.cli.publish.retries import Unreachable
from fhirpub.cli.publish.service import Service, note
from fhirpub.cli.publish.submission import Submission
from fhirpub.cli.publish.summary import print_outcome


async def publish_each(
    service: Service, files: Sequence[str], documents: Sequence[Path], *, as_json: bool
) -> list[Outcome]:
    """Register one file after another, and print what became of each."""
    outcomes: list[Outcome] = []
    async with http_client(service.cacert) as client:
        publisher = Publisher(partial(send, client), service.base, service.grant, note)
        try:
            for file in files:
                outcome = await _publish_file(publisher, file, documents, service)
                print_outcome(outcome, as_json=as_json, is_only=len(files) == 1)
                outcomes.append(outcome)
        except (NoToken, Unreachable) as problem:  # the others would fail in the same way
            problem.show()
            rest = files[len(outcomes) :]
            outcomes += [Outcome(file=file, result="not sent") for file in rest]
    return outcomes


async def _publish_file(
    publisher: Publisher, file: str, documents: Sequence[Path], service: Service
) -> Outcome:
    folder = Path(file).parent
    try:
        with click.open_file(file, "rb") as stream:
            raw = stream.read()
        parse = Submission.from_xml if file.lower().endswith(".xml") else Submission.from_json
        submission = parse(raw, service.types)
        submission.read_documents(service.documents(folder, folder))
        submission.attach(documents)
    except UnusableFile as problem:
        return Outcome(file=file, result="not sent", reason=str(problem))
    registration = Registration(submission.type_name, submission.to_json())
    return outcome_of(await publisher.register(registration), file, submission.type_name)
