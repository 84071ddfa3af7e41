"""The command ``fhirpub webhooks listen``."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import click

from fhirpub.cli.http_client import http_client, send
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.publish.bulk.load import interruptible
from fhirpub.cli.publish.publisher import Publisher
from fhirpub.cli.publish.retries import PAUSES
from fhirpub.cli.publish.service import Service, ServiceOptions, note, service_of
from fhirpub.cli.publish.service_options import with_service
from fhirpub.cli.time_types import UtcTimeType
from fhirpub.cli.webhooks.forwarding import Forwarder, forwarding
from fhirpub.cli.webhooks.listen.listener import Listener, Start
from fhirpub.cli.webhooks.listen.position import Position, usual_file
from fhirpub.cli.webhooks.listen.queue import EventQueue
from fhirpub.cli.webhooks.service_calls import WebhookCalls
from fhirpub.config.settings import Config
from fhirpub.webhooks.transport.pull_url import MAX_NAME_LENGTH

_LONGEST_PAUSE = 30.0
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class _Place(click.ParamType[Start]):
    """A sequence number, or a time."""

    name = "place"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Start:
        """Return the sequence or the time."""
        if isinstance(value, tuple):
            return value
        if value.isdecimal() and len(value) <= 15:
            return int(value), None
        return None, UtcTimeType().convert(value, param, ctx)


def _check_name(_context: click.Context, _option: click.Parameter, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise click.BadParameter("must be of lower-case letters, digits and hyphens")
    return name


def _host_name() -> str:
    """Return the name of this machine in letters that the URL of a queue may have."""
    short = socket.gethostname().partition(".")[0].lower()
    return re.sub("[^a-z0-9]+", "-", short).strip("-")[:MAX_NAME_LENGTH] or "listen"


@click.command(
    short_help="Follow events on this machine, or forward them to a receiver.",
    epilog="""\b
Credentials come from FHIRPUB_CLIENT_ID and FHIRPUB_CLIENT_SECRET, or from a prompt. Events are
signed with FHIRPUB_SIGNING_SECRET, or with a secret that is made and printed at the start.

\b
Examples:
  fhirpub webhooks listen --url https://fhir.example.org
  fhirpub webhooks listen --forward-to http://localhost:9000/webhook
  fhirpub webhooks listen --events "diagnostic_report.*" --json
  fhirpub webhooks listen --forward-to http://localhost:9000/webhook --replay-from 24h
""",
)
@click.option(
    "--forward-to", metavar="URL", help="Receiver to send each event to, such as on this machine."
)
@click.option(
    "--events",
    default="*",
    metavar="A,B",
    help="Events to follow, such as diagnostic_report.created; default: all.",
)
@click.option(
    "--replay-from",
    "start",
    type=_Place(),
    default=(None, None),
    metavar="PLACE",
    help="Begin with a sequence number, or a time such as 2026-11-21T10:00:00Z or 24h; "
    "default: where the last run stopped.",
)
@click.option(
    "--skip-refused",
    is_flag=True,
    help="Go on with the next event after a status other than 2xx, instead of sending it again.",
)
@click.option(
    "--name",
    default=_host_name,
    callback=_check_name,
    metavar="NAME",
    help="Name of the queue at the service; default: that of this machine.",
)
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File that remembers where a run stopped; default: one in ~/.local/state/fhirpub.",
)
@with_service
@with_config
@with_json
def listen(config: Config, service_options: ServiceOptions, **given: Any) -> None:
    """Print events of the tenant as they are committed, or forward them with --forward-to.

    The service keeps them in a queue with a name, which this command reads: nothing on this
    machine has to be reachable. The next run continues where this one stopped. A receiver that
    cannot be reached, or responds with another status than 2xx, gets the event again before the
    next one.
    """
    found = service_of(config, service_options)
    words = _Words(config=config, **given)
    file = words.state or usual_file(words.name, found.base, found.grant["client_id"])
    with Position.locked(file) as position:
        asyncio.run(_listen(found, words, position))
        click.echo(f"Stopped after event {position.sequence}.", err=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """The words of the command line."""

    config: Config
    forward_to: str | None
    events: str
    start: Start
    skip_refused: bool
    name: str
    state: Path | None
    as_json: bool

    @property
    def patterns(self) -> list[str]:
        return [*dict.fromkeys(filter(None, map(str.strip, self.events.split(","))))]


async def _listen(service: Service, words: _Words, position: Position) -> None:
    """Listen until a signal."""
    async with AsyncExitStack() as stack:
        patience = _Patience()
        calls = await _calls(service, patience, stack)
        listener = Listener(
            queue=EventQueue(calls, words.name, words.patterns),
            position=position,
            forwarder=await _forwarder(words, stack),
            skips_refused=words.skip_refused,
            as_json=words.as_json,
        )
        work = asyncio.create_task(listener.run(words.start, patience.extend))
        async with interruptible(partial(listener.stop, work)):
            with suppress(asyncio.CancelledError):
                await work


async def _calls(service: Service, patience: _Patience, stack: AsyncExitStack) -> WebhookCalls:
    client = await stack.enter_async_context(http_client(service.cacert))
    publisher = Publisher(
        partial(send, client), service.base, service.grant, note, patience.pauses
    )
    return WebhookCalls(publisher)


async def _forwarder(words: _Words, stack: AsyncExitStack) -> Forwarder | None:
    if words.forward_to is None:
        return None
    opened = forwarding(words.forward_to, words.config.webhooks)
    return await stack.enter_async_context(opened)


class _Patience:
    """How long requests are sent again: at the start not for long, afterwards for ever."""

    _has_begun = False

    def extend(self) -> None:
        """Be patient from now on: the address and the credentials are right."""
        self._has_begun = True

    def pauses(self) -> Iterable[float]:
        """Return the pauses before a request is sent again."""
        return chain(PAUSES, repeat(_LONGEST_PAUSE)) if self._has_begun else PAUSES
