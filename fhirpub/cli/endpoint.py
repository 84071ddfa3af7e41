"""``fhirpub endpoint``: the webhook endpoints of tenants."""

from __future__ import annotations

import asyncio
import sys
import typing
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import click

from fhirpub.app.admin import AdminContext, open_admin
from fhirpub.app.stores import key_file
from fhirpub.auth.tenants import require_enabled_tenant, require_tenant
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import Record, print_json, print_record, print_table
from fhirpub.cli.time_types import Span
from fhirpub.cli.verification import read_secret, verify
from fhirpub.config.loader import variable
from fhirpub.config.settings import Config
from fhirpub.errors import NoSuchRecord
from fhirpub.storage.webhook_contract import Endpoint, Ordering, Payload
from fhirpub.webhooks.management import serializers as presenting
from fhirpub.webhooks.management.endpoints import (
    USUAL_GRACE_SECONDS,
    EndpointWithSecrets,
    TestDelivery,
)
from fhirpub.webhooks.management.validation import MAX_GRACE_SECONDS

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])
Act = Callable[[AdminContext, Endpoint], Awaitable[T]]

_SHOWN_ONCE = "The secret and the token are shown only once: store them in a safe place."
_TOKEN_VARIABLE = "FHIRPUB_ENDPOINT_TOKEN"  # noqa: S105 - the name of a variable


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


def _import_secret(command: Command) -> Command:
    return click.option(
        "--import-secret",
        is_flag=True,
        help="Use an existing secret, from FHIRPUB_SIGNING_SECRET or a prompt.",
    )(command)


def _import_token(command: Command) -> Command:
    return click.option(
        "--import-token",
        is_flag=True,
        help=f"Use an existing token, from {_TOKEN_VARIABLE} or a prompt.",
    )(command)


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
@_import_secret
@_import_token
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
        fields["bearer_token"] = _prompt_for_token()

    async def added() -> EndpointWithSecrets:
        async with open_admin(config) as open_:
            await require_enabled_tenant(open_.store, tenant_id)
            return await open_.endpoints.add(tenant_id, fields, trusted=True)

    key = key_file(config)
    is_new = key is not None and not key.exists()
    disclosed = asyncio.run(added())
    if is_new and key is not None and key.exists():
        click.echo(f"Created {key}, the key of webhooks' secrets: keep a copy.", err=True)
    print_record(
        "Endpoint added.",
        _with_secrets(disclosed),
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
            return [one for each in tenants for one in await open_.endpoints.endpoints(each)]

    records = [_record(each) for each in asyncio.run(found())]
    if not as_json:
        shown = ("id", "tenant", "url", "event_types", "state", "why")
        records = [{name: each[name] for name in shown} for each in records]
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

    print_record("Endpoint.", _record(_run(config, endpoint_id, found)), as_json=as_json)


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

    record = _record(_run(config, endpoint_id, changed))
    print_record("Endpoint changed.", record, as_json=as_json)


@endpoint.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def ping(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Send a test event and print the result; exit status 1 if it was not accepted."""

    async def tried(open_: AdminContext, each: Endpoint) -> TestDelivery:
        return await open_.endpoints.test(each.tenant, each.id)

    _print_trial(_run(config, endpoint_id, tried), as_json=as_json)


@endpoint.command(name="verify-endpoint")
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def verify_endpoint(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Send a challenge that the endpoint must repeat; exit status 1 if it does not."""

    async def tried(open_: AdminContext, each: Endpoint) -> TestDelivery:
        return await open_.endpoints.verify(each.tenant, each.id)

    _print_trial(_run(config, endpoint_id, tried), as_json=as_json)


@endpoint.command(
    epilog="""\b
Examples:
  fhirpub endpoint rotate 5f0c…                 both secrets sign for a day
  fhirpub endpoint rotate 5f0c… --grace 0s      the old secret leaked: it ends now
"""
)
@click.argument("endpoint_id", metavar="ID")
@click.option(
    "--grace",
    type=Span(),
    default=USUAL_GRACE_SECONDS,
    metavar="DURATION",
    help=f"How long the old secret also signs, such as 24h, at most "
    f"{MAX_GRACE_SECONDS // 86_400}d; default: 24h.",
)
@_import_secret
@with_config
@with_json
def rotate(
    endpoint_id: str, grace: int, config: Config, *, import_secret: bool, as_json: bool
) -> None:
    """Create a new secret; the old one also signs for a while, so that no event is refused."""
    if grace > MAX_GRACE_SECONDS:
        raise click.UsageError(f"--grace must be at most {MAX_GRACE_SECONDS // 86_400}d")
    fields: dict[str, Any] = {"grace_seconds": grace}
    if import_secret:
        fields["signing_secret"] = read_secret()

    async def rotated(open_: AdminContext, each: Endpoint) -> EndpointWithSecrets:
        return await open_.endpoints.rotate_secret(each.tenant, each.id, fields)

    disclosed = _run(config, endpoint_id, rotated)
    end = f"signs for another {grace} seconds" if grace else "no longer signs"
    then = f"The secret is shown only once. The old secret {end}."
    print_record("Secret rotated.", _with_secrets(disclosed), as_json=as_json, then=then)


@endpoint.command(name="rotate-token")
@click.argument("endpoint_id", metavar="ID")
@_import_token
@with_config
@with_json
def rotate_token(endpoint_id: str, config: Config, *, import_token: bool, as_json: bool) -> None:
    """Replace the token; the old one is no longer sent."""
    fields = {"bearer_token": _prompt_for_token()} if import_token else {}

    async def rotated(open_: AdminContext, each: Endpoint) -> EndpointWithSecrets:
        return await open_.endpoints.rotate_token(each.tenant, each.id, fields)

    disclosed = _run(config, endpoint_id, rotated)
    then = "The token is shown only once."
    print_record("Token rotated.", _with_secrets(disclosed), as_json=as_json, then=then)


@endpoint.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def enable(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Enable an endpoint; a disabled one must first accept a test event.

    An endpoint whose current URL was never verified becomes unverified, and must be verified.
    """

    async def enabled(open_: AdminContext, each: Endpoint) -> Endpoint:
        await require_enabled_tenant(open_.store, each.tenant)
        return await open_.endpoints.enable(each.tenant, each.id, operator=True)

    record = _record(_run(config, endpoint_id, enabled))
    is_active = record["state"] == "active"
    heading = "Endpoint enabled." if is_active else "No longer disabled, but not yet verified."
    print_record(heading, record, as_json=as_json)


@endpoint.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def pause(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Pause an endpoint: its deliveries are held until it is enabled."""

    async def paused(open_: AdminContext, each: Endpoint) -> Endpoint:
        return await open_.endpoints.pause(each.tenant, each.id)

    print_record("Endpoint paused.", _record(_run(config, endpoint_id, paused)), as_json=as_json)


@endpoint.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def disable(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Disable an endpoint: its deliveries are held, and its tenant cannot enable it."""

    async def disabled(open_: AdminContext, each: Endpoint) -> Endpoint:
        return await open_.endpoints.disable(each.tenant, each.id)

    record = _record(_run(config, endpoint_id, disabled))
    print_record("Endpoint disabled.", record, as_json=as_json)


@endpoint.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def rm(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Remove an endpoint and its secrets; its open deliveries are cancelled."""

    async def removed(open_: AdminContext, each: Endpoint) -> Record:
        await open_.endpoints.delete(each.tenant, each.id)
        return {"id": each.id, "url": each.url, "state": "deleted"}

    print_record("Endpoint removed.", _run(config, endpoint_id, removed), as_json=as_json)


@endpoint.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def stats(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Show delivery statistics for an endpoint: attempts of the last day, backlog, failures."""

    async def told(open_: AdminContext, each: Endpoint) -> Record:
        return presenting.stats_record(await open_.deliveries.stats(each), each)

    record = dict(_run(config, endpoint_id, told))
    if not as_json:
        counts = record["deliveries"].items()
        record["deliveries"] = ", ".join(f"{number} {state}" for state, number in counts)
    print_record("Delivery statistics.", record, as_json=as_json)


@endpoint.command()
@with_config
@with_json
def reseal(config: Config, *, as_json: bool) -> None:
    """Re-encrypt all secrets with the first key, so that the other keys can be removed."""

    async def resealed() -> int:
        async with open_admin(config) as open_:
            tenants = await open_.store.tenants()
            return sum([await open_.endpoints.reseal(each.id) for each in tenants])

    print_record("Done.", {"resealed": asyncio.run(resealed())}, as_json=as_json)


endpoint.add_command(verify)


async def endpoint_of_any(open_: AdminContext, endpoint_id: str) -> Endpoint:
    """Return an endpoint of any tenant, or a deleted one. Raises NoSuchRecord."""
    for tenant in await open_.store.tenants():
        found = await open_.store.endpoint(tenant.id, endpoint_id)
        if found is not None:
            return found
    raise NoSuchRecord("endpoint", endpoint_id)


async def tenants_meant(open_: AdminContext, tenant_id: str | None) -> Sequence[str]:
    """Return the id of the named tenant, or the ids of all. Raises NoSuchRecord."""
    if tenant_id is None:
        return [each.id for each in await open_.store.tenants()]
    return [(await require_tenant(open_.store, tenant_id)).id]


def _run(config: Config, endpoint_id: str, act: Act[T]) -> T:
    """Run an action on an endpoint of any tenant."""

    async def running() -> T:
        async with open_admin(config) as open_:
            return await act(open_, await endpoint_of_any(open_, endpoint_id))

    return asyncio.run(running())


def _fields(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the given options under the names of an endpoint's fields."""
    events = list(settings.pop("events"))
    fields = {name: value for name, value in settings.items() if value is not None}
    return fields | ({"event_types": events} if events else {})


def _prompt_for_token() -> str:
    return variable(_TOKEN_VARIABLE) or str(click.prompt("Token", hide_input=True, err=True))


def _record(each: Endpoint) -> Record:
    record = presenting.endpoint_record(each)
    return {"id": each.id, "tenant": each.tenant, **record}


def _with_secrets(disclosed: EndpointWithSecrets) -> Record:
    made = {"signing_secret": disclosed.signing_secret, "token": disclosed.token}
    shown = {name: text for name, text in made.items() if text}
    return {"id": disclosed.endpoint.id, **shown, **_record(disclosed.endpoint)}


def _print_trial(trial: TestDelivery, *, as_json: bool) -> None:
    record = presenting.trial_record(trial)
    if as_json:
        print_json(record)
    else:
        heading = (
            "The endpoint accepted it." if trial.passed else "The endpoint did not accept it."
        )
        print_record(heading, record, as_json=False)
    sys.exit(not trial.passed)
