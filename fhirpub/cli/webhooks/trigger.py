"""The command ``fhirpub webhooks trigger``: samples of events for the developer of a receiver."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import Any

import click

from fhirpub.cli.http_client import http_client, send
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import print_record
from fhirpub.cli.publish.publisher import Publisher
from fhirpub.cli.publish.service import ServiceOptions, note, service_of
from fhirpub.cli.publish.service_options import with_service
from fhirpub.cli.webhooks.forwarding import forwarding
from fhirpub.cli.webhooks.service_calls import WebhookCalls
from fhirpub.config.settings import Config
from fhirpub.plugin_host.loader import load
from fhirpub.runtime.clock import now_ms
from fhirpub.webhooks.management.event_types import EventTypes
from fhirpub.webhooks.management.samples import Samples
from fhirpub.webhooks.management.serializers import why_failed
from fhirpub.webhooks.transport.envelope import WebhookEvent

_LOCAL = "local"
"""The endpoint in samples of events about endpoints."""


@click.command(
    short_help="Send a sample of an event to a receiver.",
    epilog="""\b
A sample is valid by the schema of its event, has the sequence 0, as tests have, and is about
nothing that exists.

\b
Examples:
  fhirpub webhooks trigger diagnostic_report.created --forward-to http://localhost:9000/webhook
  fhirpub webhooks trigger diagnostic_report.updated --endpoint 0198…

\b
With --forward-to the event is signed with FHIRPUB_SIGNING_SECRET, or with a secret that is
made and printed; the service is not called. With --endpoint the service sends it, and
credentials come from FHIRPUB_CLIENT_ID and FHIRPUB_CLIENT_SECRET, or from a prompt.
""",
)
@click.argument("event_type", metavar="EVENT")
@click.option("--forward-to", metavar="URL", help="Receiver to send it to from this machine.")
@click.option(
    "--endpoint", "endpoint_id", metavar="ID", help="Endpoint to which the service sends it."
)
@with_service
@with_config
@with_json
def trigger(
    event_type: str,
    forward_to: str | None,
    endpoint_id: str | None,
    config: Config,
    service_options: ServiceOptions,
    *,
    as_json: bool,
) -> None:
    """Send a sample of EVENT, such as diagnostic_report.created, and print the result.

    Exit status 1 if the receiver does not accept it.
    """
    if forward_to is not None and endpoint_id is None:
        sent = asyncio.run(_forward(event_type, forward_to, config))
    elif endpoint_id is not None and forward_to is None:
        sent = asyncio.run(_request(event_type, endpoint_id, config, service_options))
    else:
        raise click.UsageError("name the receiver by --forward-to URL or --endpoint ID")
    heading = "The receiver accepted it." if sent["passed"] else "The receiver did not accept it."
    print_record(heading, sent, as_json=as_json)
    sys.exit(not sent["passed"])


async def _forward(event_type: str, url: str, config: Config) -> dict[str, Any]:
    """Send a sample from here, and return the result."""
    event = _sample_of(event_type, config)
    async with forwarding(url, config.webhooks) as forwarder:
        outcome = await forwarder.send(event.id, event.type, event.body(sequence=0), sequence=0)
    reason = outcome.reason or ""
    return {
        "passed": outcome.delivered,
        "event_id": event.id,
        "event_type": event.type,
        "status": outcome.status or None,
        "reason": reason,
        "why": why_failed(status=outcome.status, reason=reason),
        "milliseconds": outcome.duration,
    }


def _sample_of(event_type: str, config: Config) -> WebhookEvent:
    known = EventTypes.of(load(config.plugins.enabled).values())
    if problem := known.problem_of_name(event_type):
        more = "Events of other types need their plugin among [plugins] enabled."
        raise click.BadParameter(f"{event_type} {problem}. {more}", param_hint="EVENT")
    samples = Samples(known, base_url=config.base_url, clock=now_ms)
    return samples.of(event_type, endpoint_id=_LOCAL)


async def _request(
    event_type: str, endpoint_id: str, config: Config, options: ServiceOptions
) -> dict[str, Any]:
    """Let the service send a sample, and return the result."""
    service = service_of(config, options)
    async with http_client(service.cacert) as client:
        publisher = Publisher(partial(send, client), service.base, service.grant, note)
        calls, fields = WebhookCalls(publisher), {"event_type": event_type}
        return await calls.send("POST", f"/endpoints/{endpoint_id}/test", fields)
