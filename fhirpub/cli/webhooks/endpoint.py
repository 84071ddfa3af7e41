"""``fhirpub endpoint``: the webhook endpoints of tenants."""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from fhirpub.app.admin import AdminContext, open_admin
from fhirpub.app.changes import recorded
from fhirpub.auth.tenants import require_enabled_tenant
from fhirpub.cli.encryption.new_key import noticing_new_key
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import print_record, print_table
from fhirpub.cli.webhooks.endpoint_lookup import (
    prompt_for_token,
    record_of,
    record_with_secrets,
    run_on_endpoint,
    tenants_meant,
    with_secret_import,
    with_token_import,
)
from fhirpub.cli.webhooks.endpoint_operations import OPERATIONS
from fhirpub.cli.webhooks.verification import read_secret, verify
from fhirpub.config.settings import Config
from fhirpub.storage.webhook_contract import Endpoint, Ordering, Payload
from fhirpub.webhooks.management.endpoints import EndpointWithSecrets

Command = TypeVar("Command", bound=Callable[..., Any])

_SHOWN_ONCE = "The secret and the token are shown only once: store them in a safe place."


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
"""
)
@click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Tenant of the endpoint.")
@click.option("--url", required=True, metavar="URL", help="URL that receives webhooks.")
@_with_settings
@with_secret_import
@with_token_import
@with_config
@with_json
def add(
    tenant_id: str,
    url: str,
    config: Config,
    *,
    import_secret: bool,
    import_token: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Add an endpoint; its secret and token are shown only once. It gets events from now on."""
    fields = {"url": url, **_fields(settings)}
    if import_secret:
        fields["signing_secret"] = read_secret()
    if import_token:
        fields["bearer_token"] = prompt_for_token()

    async def added() -> EndpointWithSecrets:
        async with open_admin(config) as open_:
            await require_enabled_tenant(open_.store, tenant_id)
            async with recorded(config, open_.store, "endpoint.create", tenant=tenant_id) as doing:
                disclosed = await open_.endpoints.add(tenant_id, fields, trusted=True)
                doing.name("Endpoint", disclosed.endpoint.id)
                return disclosed

    with noticing_new_key(config) as notes:
        disclosed = asyncio.run(added())
    for note in notes:
        click.echo(note, err=True)
    print_record(
        "Endpoint added.",
        record_with_secrets(disclosed),
        as_json=as_json,
        then=f"{_SHOWN_ONCE}\nNext, send a test event: "
        f"fhirpub endpoint ping {disclosed.endpoint.id}",
    )


@endpoint.command(name="list")
@click.option("--tenant", "tenant_id", metavar="ID", help="Only endpoints of this tenant.")
@with_config
@with_json
def list_(tenant_id: str | None, config: Config, *, as_json: bool) -> None:
    """List endpoints, oldest first, without their secrets."""

    async def found() -> Sequence[Endpoint]:
        async with open_admin(config) as open_:
            tenants = await tenants_meant(open_, tenant_id)
            return [one for tenant in tenants for one in await open_.endpoints.endpoints(tenant)]

    records = [record_of(item) for item in asyncio.run(found())]
    if not as_json:
        shown = ("id", "tenant", "url", "event_types", "state", "why")
        records = [{name: record[name] for name in shown} for record in records]
    empty = "No endpoints yet: fhirpub endpoint add --tenant ID --url URL"
    print_table(records, as_json=as_json, empty=empty)


@endpoint.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def show(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Show an endpoint, without its secrets."""

    async def found(_open: AdminContext, each: Endpoint) -> Endpoint:
        return each

    print_record(
        "Endpoint.", record_of(run_on_endpoint(config, endpoint_id, found)), as_json=as_json
    )


@endpoint.command(name="set")
@click.argument("endpoint_id", metavar="ID")
@click.option("--url", metavar="URL", help="URL that receives webhooks.")
@_with_settings
@with_config
@with_json
def set_(endpoint_id: str, config: Config, *, as_json: bool, **settings: Any) -> None:
    """Change the named settings; --event replaces all previous event types."""
    fields = _fields(settings)
    if not fields:
        raise click.UsageError("name what to change, such as --event or --ordering")

    async def changed(open_: AdminContext, each: Endpoint) -> Endpoint:
        return await open_.endpoints.change(each.tenant, each.id, fields, trusted=True)

    record = record_of(run_on_endpoint(config, endpoint_id, changed, action="endpoint.update"))
    print_record("Endpoint changed.", record, as_json=as_json)


def _fields(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the given options under the names of an endpoint's fields."""
    events = list(settings.pop("events"))
    fields = {name: value for name, value in settings.items() if value is not None}
    return fields | ({"event_types": events} if events else {})


for operation in (*OPERATIONS, verify):
    endpoint.add_command(operation)
