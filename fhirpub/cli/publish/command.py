"""The command ``fhirpub publish``: its options, and the way that it publishes by them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from fhirpub.cli.options import EXISTING_FILE, with_config, with_json
from fhirpub.cli.publish.bulk.ending import print_ending
from fhirpub.cli.publish.bulk.run import Options, load_all
from fhirpub.cli.publish.bulk.sources import is_many, is_pattern, source_of
from fhirpub.cli.publish.one_by_one import publish_each
from fhirpub.cli.publish.outcome import EXIT_STATUS
from fhirpub.cli.publish.service import Service, ServiceOptions, service_of
from fhirpub.cli.publish.service_options import with_service
from fhirpub.cli.publish.summary import print_summary
from fhirpub.cli.publish.watch.watcher import WatchOptions, watch
from fhirpub.config.settings import Config

_A_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_JOBS = 8


class _Source(click.Path):
    """A file or folder that exists, or a pattern of names."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the argument as it is, once it is checked."""
        if is_pattern(value) and not Path(value).exists():
            return value
        return super().convert(value, param, ctx)


@click.command(
    short_help="Publish reports from a shell.",
    epilog="""\b
Credentials come from FHIRPUB_CLIENT_ID and FHIRPUB_CLIENT_SECRET, or from a prompt.

\b
Examples:
  fhirpub publish report.json
  fhirpub publish report.json --document blood-count.pdf --url https://fhir.example.org
  fhirpub publish reports/*.json --cacert authority.pem --url https://fhir.example.org
  generate-report | fhirpub publish - --json
  fhirpub publish outbox/ --report done.ndjson
  export-reports | fhirpub publish - --ndjson --report done.ndjson
  fhirpub publish --watch /srv/outbox --url https://fhir.example.org

\b
Exit status, of several files the highest:
  0  published, now or by an earlier run with the same content
  1  refused, or not sent: the service could not be reached, or gave no token
  2  wrong usage
  3  the identifier is published with OTHER content: what you sent was not stored
  130  interrupted
""",
)
@click.argument(
    "files",
    type=_Source(exists=True, allow_dash=True),
    metavar="[FILE.json...]",
    nargs=-1,
)
@click.option(
    "--document",
    "documents",
    multiple=True,
    type=EXISTING_FILE,
    metavar="FILE.pdf",
    help="Document to attach in presentedForm, with its hash and date; may be repeated.",
)
@with_service
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    metavar="N",
    help=f"Requests at a time, for many reports; default: {_JOBS}.",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OUT.ndjson",
    help="File to write the result of each report to, one a line.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue the run that wrote --report: leave out what it published.",
)
@click.option(
    "--ndjson",
    "all_lines",
    is_flag=True,
    help="Each file, or stdin, has one Parameters resource on each line.",
)
@click.option(
    "--documents-from",
    type=_A_FOLDER,
    metavar="DIR",
    help="Folder of the documents that reports name by path; default: that of the reports.",
)
@click.option(
    "--watch",
    "watched",
    type=_A_FOLDER,
    metavar="DIR",
    help="Publish what appears in a folder, until SIGTERM; move it to done/ or refused/ in it.",
)
@click.option(
    "--settle",
    type=click.FloatRange(0, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="With --watch: a file is complete when it has not changed for so long.",
)
@with_config
@with_json
def publish(**given: Any) -> None:
    """Publish reports: FILE.json is a Parameters resource, the body of $register; - is stdin.

    The command is safe to repeat: a report is published once for each identifier. Other content
    under an identifier that is in use is not stored, and reported.

    A folder, a pattern in quotes, and files named .ndjson with one Parameters resource a line are
    loaded in parallel, with a summary at the end. To a report in a folder belong the documents
    next to it that have its name. An attachment whose url is a path is read from that file.
    """
    words = _Words(**given)
    words.check()
    service = service_of(words.config, words.service)
    if words.watched:
        options = WatchOptions(
            jobs=words.jobs or _JOBS, settle=words.settle, as_json=words.as_json
        )
        watch(service, words.watched, options)
        return
    status = _load(service, words) if words.is_load else _publish_each(service, words)
    click.get_current_context().exit(status)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The words of the command line."""

    files: Sequence[str]
    documents: Sequence[Path]
    service_options: ServiceOptions
    jobs: int | None
    report: Path | None
    resume: bool
    all_lines: bool
    documents_from: Path | None
    watched: Path | None
    settle: float
    config: Config
    as_json: bool

    @property
    def is_load(self) -> bool:
        """Whether the reports are loaded in parallel, and not published one after another."""
        return bool(self.jobs or self.report or self.all_lines) or any(map(is_many, self.files))

    @property
    def service(self) -> ServiceOptions:
        """The options that name the service."""
        return replace(self.service_options, documents_from=self.documents_from)

    def check(self) -> None:
        """Raise a usage error if words do not belong together."""
        if self.watched and (self.files or self.documents or self.report or self.all_lines):
            raise click.UsageError("--watch takes no files, and no options about files")
        if not self.watched and not self.files:
            raise click.UsageError("Missing argument 'FILE.json...'.")
        if self.documents and (len(self.files) > 1 or self.is_load):
            raise click.UsageError("--document belongs to one FILE.json")
        if self.resume and not self.report:
            raise click.UsageError("--resume needs the --report of the run to continue")
        if self.is_load and "-" in self.files and not self.all_lines:
            raise click.UsageError("with many reports, - needs --ndjson: one report on each line")


def _publish_each(service: Service, words: _Words) -> int:
    each = publish_each(service, words.files, words.documents, as_json=words.as_json)
    outcomes = asyncio.run(each)
    if not words.as_json and (len(words.files) > 1 or outcomes[0].id):
        print_summary(outcomes)
    return max(EXIT_STATUS[outcome.result] for outcome in outcomes)


def _load(service: Service, words: _Words) -> int:
    sources = [source_of(argument, all_lines=words.all_lines) for argument in words.files]
    for source in sources:
        if not source.matches_any():
            raise click.UsageError(f"no file matches {source.path}")
    options = Options(jobs=words.jobs or _JOBS, report=words.report, resume=words.resume)
    return print_ending(load_all(service, sources, options), as_json=words.as_json)
