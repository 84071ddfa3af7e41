"""``fhirpub deliveries``: the deliveries to endpoints, their attempts, and replay."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from fhirpub.app.admin import AdminContext, open_admin
from fhirpub.app.changes import record_read, recorded
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import Record, is_terminal, print_json, print_record, print_table
from fhirpub.cli.time_types import UtcTimeType
from fhirpub.cli.webhooks.endpoint_lookup import endpoint_of_any, tenants_meant
from fhirpub.config.settings import Config
from fhirpub.errors import NoSuchRecord
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.webhook_contract import Delivery, Endpoint
from fhirpub.webhooks.management import serializers as presenting
from fhirpub.webhooks.management.delivery_log import SHOWN_STATES, ShownState, Wanted

_of_endpoint = click.option(
    "--endpoint", "endpoint_id", metavar="ID", help="Only deliveries to this endpoint."
)
_of_tenant = click.option(
    "--tenant", "tenant_id", metavar="ID", help="Only deliveries of this tenant."
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
@with_config
@with_json
def list_(
    state: ShownState | None,
    endpoint_id: str | None,
    tenant_id: str | None,
    limit: int,
    config: Config,
    *,
    as_json: bool,
) -> None:
    """List the deliveries of each endpoint, newest first."""

    async def found() -> list[Record]:
        async with open_admin(config) as open_:
            records: list[Record] = []
            for endpoint in await _endpoints(open_, endpoint_id, tenant_id):
                page = await open_.deliveries.latest(endpoint, Wanted(), state=state, limit=limit)
                now = now_ms()
                records += [
                    {"endpoint": endpoint.id, **presenting.delivery_record(one, endpoint, now=now)}
                    for one in page.deliveries
                ]
            return records

    records = asyncio.run(found())
    shown = records if as_json else [_row(record) for record in records]
    print_table(shown, as_json=as_json, empty="No deliveries.")


@deliveries.command()
@click.argument("event_id", metavar="ID")
@_of_endpoint
@with_config
@with_json
def show(event_id: str, endpoint_id: str | None, config: Config, *, as_json: bool) -> None:
    """Show the deliveries of an event: time, response and failure reason of each attempt."""

    async def found() -> list[dict[str, Any]]:
        async with open_admin(config) as open_:
            records = []
            for endpoint in await _endpoints(open_, endpoint_id, None):
                one = await open_.deliveries.one(endpoint, event_id)
                if one is not None:
                    shown = presenting.whole_delivery_record(one, endpoint, now=now_ms())
                    records.append({"endpoint": endpoint.id, **shown, "body": one.body.decode()})
                    what = ("Endpoint", endpoint.id), *_resource_of(one)
                    await record_read(
                        config, open_.store, "delivery.read", *what, tenant=endpoint.tenant
                    )
            return records

    records = asyncio.run(found())
    if not records:
        raise NoSuchRecord("delivery", event_id)
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
@with_config
@with_json
def replay(  # noqa: PLR0913 - the options of a command
    event_ids: tuple[str, ...],
    since: int | None,
    until: int | None,
    endpoint_id: str | None,
    tenant_id: str | None,
    config: Config,
    *,
    dead: bool,
    as_json: bool,
) -> None:
    """Replay deliveries: by event id, of a period, or dead letters.

    They keep their sequence numbers, and their attempts start again from 1. Receivers recognize
    them by their event ids.
    """
    if not (event_ids or since is not None or until is not None or dead):
        raise click.UsageError("name events, or --since, --until or --dead")
    wanted = Wanted(
        event_ids=frozenset(event_ids) if event_ids else None,
        since=since,
        until=until,
        states=frozenset({"dead"}) if dead else frozenset(),
    )

    async def replayed() -> list[tuple[Endpoint, int]]:
        async with open_admin(config) as open_:
            chosen = await _endpoints(open_, endpoint_id, tenant_id)
            for id_ in sorted(event_ids):
                if not [one for one in chosen if await open_.deliveries.one(one, id_)]:
                    raise NoSuchRecord("delivery", id_)
            named = [("Endpoint", item.id) for item in chosen]
            async with recorded(config, open_.store, "delivery.replay", *named):
                return [(item, await _replay(open_, item, wanted)) for item in chosen]

    numbers = asyncio.run(replayed())
    held = [item for item, number in numbers if number and item.state != "active"]
    reopened = sum(number for _, number in numbers)
    print_record(
        "Queued for replay." if reopened else "Nothing to replay: no delivery matches.",
        {"reopened": reopened},
        as_json=as_json,
        then="\n".join(
            f"Held until the endpoint is active: {item.id}, {item.state}" for item in held
        ),
    )


def _resource_of(delivery: Delivery) -> list[tuple[str, str]]:
    """Return the kind and id of the resource that a delivery is about, if there is one."""
    kind, _slash, id_ = delivery.resource.partition("/")
    return [(kind, id_)] if id_ else []


async def _replay(open_: AdminContext, endpoint: Endpoint, wanted: Wanted) -> int:
    if endpoint.state == "deleted":
        return 0
    reopened = 0
    following: int | None = wanted.from_sequence
    while True:
        page = await open_.deliveries.replay(endpoint, replace(wanted, from_sequence=following))
        reopened += page.reopened
        following = page.following
        if is_terminal(sys.stderr):
            click.echo(f"\r{endpoint.id}: {reopened}", err=True, nl=following is None)
        if following is None:
            return reopened


async def _endpoints(
    open_: AdminContext, endpoint_id: str | None, tenant_id: str | None
) -> Sequence[Endpoint]:
    """Return the selected endpoints, including deleted ones."""
    if endpoint_id is not None:
        return [await endpoint_of_any(open_, endpoint_id)]
    return [
        one
        for item in await tenants_meant(open_, tenant_id)
        for one in await open_.store.endpoints(item)
    ]


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
