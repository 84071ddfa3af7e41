"""``fhirpub endpoint``: the webhook endpoints of tenants."""

from __future__ import annotations

import typing
from typing import Any

import click

from fhirpub.administration import endpoints
from fhirpub.cli.administration.target import Target, with_key, with_target
from fhirpub.cli.options import Command, with_json
from fhirpub.cli.printing import print_record, print_table
from fhirpub.cli.webhooks.endpoint_operations import OPERATIONS
from fhirpub.cli.webhooks.secret_options import (
    prompt_for_token,
    with_secret_import,
    with_token_import,
)
from fhirpub.cli.webhooks.verification import read_secret, verify
from fhirpub.storage.webhook_contract import Ordering, Payload

_SHOWN_ONCE = "The secret and the token are shown only once: store them in a safe place."
_SECRETS_STAY = "Its secret and token stay as they are."


@click.group()
def endpoint() -> None:
    """Add, change, test and remove webhook endpoints."""


def _with_settings(command: Command) -> Command:
    """Add the options of an endpoint's subscription to a command."""
    for option in (
        click.option("--description", metavar="TEXT", help="Name shown in lists."),
        click.option(
            "--ordering",
            type=click.Choice(typing.get_args(Ordering)),
            help="Deliveries that wait for an earlier one: none, those of its resource, or all.",
        ),
        click.option(
            "--payload",
            type=click.Choice(typing.get_args(Payload)),
            help="Data of an event: all that the type of the resource defines, or only ids.",
        ),
        click.option(
            "--event",
            "events",
            multiple=True,
            metavar="PATTERN",
            help="Events to send, such as diagnostic_report.created or *; may be repeated.",
        ),
    ):
        command = option(command)
    return command


@endpoint.command(
    epilog="""\b
Examples:
  fhirpub endpoint add --tenant 5f0c… --url https://receiver.example.org/hooks
  fhirpub endpoint add --tenant 5f0c… --url https://receiver.example.org/hooks \\
      --event "diagnostic_report.*" --json
  fhirpub endpoint add --tenant lab-uno --key lis --url https://receiver.example.org/hooks
"""
)
@click.option(
    "--tenant", "tenant_id", required=True, metavar="TENANT", help="Its id, key or name."
)
@with_key
@click.option("--url", required=True, metavar="URL", help="URL that receives webhooks.")
@_with_settings
@with_secret_import
@with_token_import
@with_target
@with_json
def add(
    tenant_id: str,
    key: str | None,
    target: Target,
    *,
    import_secret: bool,
    import_token: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Add an endpoint; its secret and token are shown only once. It gets events from now on.

    With --key, an endpoint that has the key is changed to what is given; its secrets stay.
    """
    fields = _fields(settings)
    if import_secret:
        fields["signing_secret"] = read_secret()
    if import_token:
        fields["bearer_token"] = prompt_for_token()
    if key is None:
        added = target.call(endpoints.ADD, tenant=tenant_id, **fields)
    else:
        added = target.call(endpoints.PUT, tenant=tenant_id, key=key, **fields)
    for note in target.notes:
        click.echo(note, err=True)
    is_new = "signing_secret" in added
    print_record(
        "Endpoint added." if is_new else "Endpoint saved.",
        added,
        as_json=as_json,
        then=f"{_SHOWN_ONCE if is_new else _SECRETS_STAY}\nNext, send a test event: "
        + target.repeated(f"fhirpub endpoint ping {added['id']}"),
    )


@endpoint.command(name="list")
@click.option("--tenant", "tenant_id", metavar="TENANT", help="Only endpoints of this tenant.")
@with_target
@with_json
def list_(tenant_id: str | None, target: Target, *, as_json: bool) -> None:
    """List endpoints, oldest first, without their secrets."""
    records = target.call(endpoints.LIST, tenant=tenant_id)
    if not as_json:
        shown = ("id", "tenant", "url", "event_types", "state", "why")
        records = [{name: record[name] for name in shown} for record in records]
    following = target.repeated("fhirpub endpoint add --tenant ID --url URL")
    print_table(records, as_json=as_json, empty=f"No endpoints yet: {following}")


@endpoint.command()
@click.argument("endpoint_id", metavar="ENDPOINT")
@with_target
@with_json
def show(endpoint_id: str, target: Target, *, as_json: bool) -> None:
    """Show an endpoint by its id or description, without its secrets."""
    shown = target.call(endpoints.SHOW, endpoint=endpoint_id)
    print_record("Endpoint.", shown, as_json=as_json)


@endpoint.command(name="set")
@click.argument("endpoint_id", metavar="ENDPOINT")
@click.option("--url", metavar="URL", help="URL that receives webhooks.")
@_with_settings
@with_target
@with_json
def set_(endpoint_id: str, target: Target, *, as_json: bool, **settings: Any) -> None:
    """Change the named settings; --event replaces all previous event types."""
    fields = _fields(settings)
    if not fields:
        raise click.UsageError("name what to change, such as --event or --ordering")
    changed = target.call(endpoints.SET, endpoint=endpoint_id, **fields)
    print_record("Endpoint changed.", changed, as_json=as_json)


def _fields(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the given options under the names of an endpoint's fields."""
    events = list(settings.pop("events"))
    fields = {name: value for name, value in settings.items() if value is not None}
    return fields | ({"event_types": events} if events else {})


for operation in (*OPERATIONS, verify):
    endpoint.add_command(operation)
