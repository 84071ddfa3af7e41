"""``fhirpub deliveries``: the deliveries to endpoints, their attempts, and replay."""

from __future__ import annotations

import sys
from typing import Any

import click

from fhirpub.administration import deliveries as operations
from fhirpub.cli.administration.target import Caller, Target, with_target
from fhirpub.cli.options import with_json
from fhirpub.cli.printing import Record, is_terminal, print_json, print_record, print_table
from fhirpub.cli.time_types import UtcTimeType
from fhirpub.fhir.times import instant
from fhirpub.webhooks.management.delivery_log import SHOWN_STATES

_of_endpoint = click.option(
    "--endpoint", "endpoint_id", metavar="ENDPOINT", help="Only deliveries to this endpoint."
)
_of_tenant = click.option(
    "--tenant", "tenant_id", metavar="TENANT", help="Only deliveries of this tenant."
)


@click.group()
def deliveries() -> None:
    """List, show and replay webhook deliveries."""


@deliveries.command(name="list")
@click.option("--state", type=click.Choice(SHOWN_STATES), help="Only deliveries in this state.")
@_of_endpoint
@_of_tenant
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=20,
    help="Maximum number for each endpoint; default: 20.",
)
@with_target
@with_json
def list_(
    endpoint_id: str | None,
    tenant_id: str | None,
    target: Target,
    *,
    as_json: bool,
    **given: Any,
) -> None:
    """List the deliveries of each endpoint, newest first."""
    records = target.call(operations.LIST, endpoint=endpoint_id, tenant=tenant_id, **given)
    shown = records if as_json else [_row(record) for record in records]
    print_table(shown, as_json=as_json, empty="No deliveries.")


@deliveries.command()
@click.argument("event_id", metavar="ID")
@_of_endpoint
@with_target
@with_json
def show(event_id: str, endpoint_id: str | None, target: Target, *, as_json: bool) -> None:
    """Show the deliveries of an event: time, response and failure reason of each attempt."""
    records = target.call(operations.SHOW, event=event_id, endpoint=endpoint_id)
    if as_json:
        print_json(records)
        return
    for record in records:
        attempts = record.pop("attempts")
        print_record("Delivery.", record, as_json=False)
        print_table(
            [_attempt_row(attempt) for attempt in attempts],
            as_json=False,
            empty="No attempts yet.",
        )


@deliveries.command(
    epilog="""\b
Examples:
  fhirpub deliveries replay evt_0b8f…_1_1
  fhirpub deliveries replay --since 24h --endpoint 5f0c… --dead
  fhirpub deliveries replay --since 2026-11-21T10:00:00Z --until 2026-11-21T12:00:00Z
"""
)
@click.argument("event_ids", metavar="[ID]…", nargs=-1)
@click.option(
    "--since",
    type=UtcTimeType(),
    metavar="T",
    help="Only deliveries created since T, such as 24h.",
)
@click.option("--until", type=UtcTimeType(), metavar="T", help="Only deliveries created before T.")
@click.option("--dead", is_flag=True, help="Only dead letters.")
@_of_endpoint
@_of_tenant
@with_target
@with_json
def replay(
    event_ids: tuple[str, ...],
    endpoint_id: str | None,
    tenant_id: str | None,
    target: Target,
    *,
    as_json: bool,
    **given: Any,
) -> None:
    """Replay deliveries: by event id, of a period, or dead letters.

    They keep their sequence numbers, and their attempts start again from 1. Receivers recognize
    them by their event ids.
    """
    period = {name: given[name] for name in ("since", "until") if given[name] is not None}
    if not (event_ids or period or given["dead"]):
        raise click.UsageError("name events, or --since, --until or --dead")
    wanted = {
        "events": list(event_ids) or None,
        "dead": given["dead"] or None,
        "endpoint": endpoint_id,
        "tenant": tenant_id,
        **{name: instant(moment) for name, moment in period.items()},
    }
    number, held = target.run(lambda call: _replay(call, wanted))
    print_record(
        "Queued for replay." if number else "Nothing to replay: no delivery matches.",
        {"reopened": number},
        as_json=as_json,
        then="\n".join(
            f"Held until the endpoint is active: {id_}, {state}" for id_, state in held.items()
        ),
    )


async def _replay(call: Caller, wanted: Record) -> tuple[int, dict[str, str]]:
    """Replay until nothing is left; return how many, and the states of endpoints that wait."""
    number = 0
    held: dict[str, str] = {}
    following: str | None = None
    while True:
        page = await call(operations.REPLAY, **wanted, **{"from": following})
        number, following = number + page["reopened"], page["following"]
        held |= {one["endpoint"]: one["state"] for one in page["held"]}
        if is_terminal(sys.stderr):
            click.echo(f"\r{number:,} deliveries", err=True, nl=following is None)
        if following is None:
            return number, held


def _row(record: Record) -> Record:
    attempts = record["attempts"]
    return {
        "event_id": record["event_id"],
        "event_type": record["event_type"],
        "endpoint": record["endpoint"],
        "sequence": record["sequence"],
        "status": record["status"],
        "created": record["created"],
        "next_attempt": record["next_attempt"],
        "attempts": attempts[-1]["number"] if attempts else 0,
        "why": attempts[-1]["why"] if attempts else "",
    }


def _attempt_row(attempt: dict[str, Any]) -> Record:
    return {
        "attempt": attempt["number"],
        "begun": attempt["begun"],
        "milliseconds": attempt.get("milliseconds"),
        "status": attempt.get("status"),
        "why": attempt["why"],
        "answer": " ".join(attempt["answer"].split())[:60],
    }
