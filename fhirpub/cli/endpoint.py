"""``fhirpub endpoint``: where tenants are told of what was published for them."""

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
from fhirpub.config.settings import Config, variable
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

_SHOWN_ONCE = "The secret and the token are shown this once: keep them where secrets are kept."
_TOKEN_VARIABLE = "FHIRPUB_ENDPOINT_TOKEN"  # noqa: S105 - the name of a variable


@click.group()
def endpoint() -> None:
    """Add, change, try and remove the endpoints that webhooks are sent to."""


def _with_settings(command: Command) -> Command:
    """Give a command the options for what an endpoint is told, and how."""
    for option in (
        click.option("--description", metavar="TEXT", help="What to call it in lists."),
        click.option(
            "--ordering",
            type=click.Choice(typing.get_args(Ordering)),
            help="What waits for an earlier delivery: nothing, those of its resource, all.",
        ),
        click.option(
            "--payload",
            type=click.Choice(typing.get_args(Payload)),
            help="What it is told: all that the resource's type tells, or ids.",
        ),
        click.option(
            "--event",
            "events",
            multiple=True,
            metavar="PATTERN",
            help="What it is told of, such as diagnostic_report.created or *; may be repeated.",
        ),
    ):
        command = option(command)
    return command


def _import_secret(command: Command) -> Command:
    return click.option(
        "--import-secret",
        is_flag=True,
        help="Take a secret that exists, from FHIRPUB_SIGNING_SECRET or typed in.",
    )(command)


def _import_token(command: Command) -> Command:
    return click.option(
        "--import-token",
        is_flag=True,
        help=f"Take a token that exists, from {_TOKEN_VARIABLE} or typed in.",
    )(command)


@endpoint.command(
    epilog="""\b
Examples:
  fhirpub endpoint add --tenant 5f0c… --url https://his.example.org/hooks
  fhirpub endpoint add --tenant 5f0c… --url https://his.example.org/hooks \\
      --event "diagnostic_report.*" --json
"""
)
@click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Whose endpoint it is.")
@click.option("--url", required=True, metavar="URL", help="Where it receives.")
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
    """Add an endpoint; its secret and its token are shown once. Events go there from now on."""
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
        click.echo(f"Made {key}, the key of webhooks' secrets: keep a copy.", err=True)
    print_record(
        "Endpoint added.",
        _with_secrets(disclosed),
        as_json=as_json,
        then=f"{_SHOWN_ONCE}\nNext, see whether it answers: "
        f"fhirpub endpoint ping {disclosed.endpoint.id}",
    )


@endpoint.command(name="list")
@click.option("--tenant", "tenant_id", metavar="ID", help="Only those of this tenant.")
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
@click.option("--url", metavar="URL", help="Where it receives.")
@_with_settings
@with_config
@with_json
def set_(endpoint_id: str, config: Config, *, as_json: bool, **settings: Any) -> None:
    """Change what is named; --event replaces all that it was told of before."""
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
    """Send a test event now and tell what came of it; exit status 1 if it was not taken."""

    async def tried(open_: AdminContext, each: Endpoint) -> TestDelivery:
        return await open_.endpoints.test(each.tenant, each.id)

    _print_trial(_run(config, endpoint_id, tried), as_json=as_json)


@endpoint.command(name="verify-endpoint")
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def verify_endpoint(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Send the challenge that an endpoint has to repeat; exit status 1 if it did not."""

    async def tried(open_: AdminContext, each: Endpoint) -> TestDelivery:
        return await open_.endpoints.verify(each.tenant, each.id)

    _print_trial(_run(config, endpoint_id, tried), as_json=as_json)


@endpoint.command(
    epilog="""\b
Examples:
  fhirpub endpoint rotate 5f0c…                 both secrets sign for a day
  fhirpub endpoint rotate 5f0c… --grace 0s      the old one leaked: it ends now
"""
)
@click.argument("endpoint_id", metavar="ID")
@click.option(
    "--grace",
    type=Span(),
    default=USUAL_GRACE_SECONDS,
    metavar="SPAN",
    help=f"How long the old secret signs too, such as 24h, at most "
    f"{MAX_GRACE_SECONDS // 86_400}d; default: 24h.",
)
@_import_secret
@with_config
@with_json
def rotate(
    endpoint_id: str, grace: int, config: Config, *, import_secret: bool, as_json: bool
) -> None:
    """Let a new secret sign; the old one signs too for a while, so that nothing is missed."""
    if grace > MAX_GRACE_SECONDS:
        raise click.UsageError(f"--grace must be at most {MAX_GRACE_SECONDS // 86_400}d")
    fields: dict[str, Any] = {"grace_seconds": grace}
    if import_secret:
        fields["signing_secret"] = read_secret()

    async def rotated(open_: AdminContext, each: Endpoint) -> EndpointWithSecrets:
        return await open_.endpoints.rotate_secret(each.tenant, each.id, fields)

    disclosed = _run(config, endpoint_id, rotated)
    end = f"signs for another {grace} seconds" if grace else "does not sign any more"
    then = f"The secret is shown this once. The old one {end}."
    print_record("Secret rotated.", _with_secrets(disclosed), as_json=as_json, then=then)


@endpoint.command(name="rotate-token")
@click.argument("endpoint_id", metavar="ID")
@_import_token
@with_config
@with_json
def rotate_token(endpoint_id: str, config: Config, *, import_token: bool, as_json: bool) -> None:
    """Send another token from now on; the old one is not sent any more."""
    fields = {"bearer_token": _prompt_for_token()} if import_token else {}

    async def rotated(open_: AdminContext, each: Endpoint) -> EndpointWithSecrets:
        return await open_.endpoints.rotate_token(each.tenant, each.id, fields)

    disclosed = _run(config, endpoint_id, rotated)
    then = "The token is shown this once."
    print_record("Token rotated.", _with_secrets(disclosed), as_json=as_json, then=then)


@endpoint.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def enable(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Go on with an endpoint; a disabled one has to take a test event first.

    One that was never verified where it is now becomes unverified, and has to be verified.
    """

    async def enabled(open_: AdminContext, each: Endpoint) -> Endpoint:
        await require_enabled_tenant(open_.store, each.tenant)
        return await open_.endpoints.enable(each.tenant, each.id, operator=True)

    record = _record(_run(config, endpoint_id, enabled))
    is_active = record["state"] == "active"
    heading = "Endpoint enabled." if is_active else "Not disabled any more, but to be verified."
    print_record(heading, record, as_json=as_json)


@endpoint.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def pause(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Hold what is to be delivered, until the endpoint is enabled."""

    async def paused(open_: AdminContext, each: Endpoint) -> Endpoint:
        return await open_.endpoints.pause(each.tenant, each.id)

    print_record("Endpoint paused.", _record(_run(config, endpoint_id, paused)), as_json=as_json)


@endpoint.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def disable(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Hold what is to be delivered; the tenant itself cannot enable it again."""

    async def disabled(open_: AdminContext, each: Endpoint) -> Endpoint:
        return await open_.endpoints.disable(each.tenant, each.id)

    record = _record(_run(config, endpoint_id, disabled))
    print_record("Endpoint disabled.", record, as_json=as_json)


@endpoint.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def rm(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Remove an endpoint and its secrets; what is not delivered yet never will be."""

    async def removed(open_: AdminContext, each: Endpoint) -> Record:
        await open_.endpoints.delete(each.tenant, each.id)
        return {"id": each.id, "url": each.url, "state": "deleted"}

    print_record("Endpoint removed.", _run(config, endpoint_id, removed), as_json=as_json)


@endpoint.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def stats(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Tell how an endpoint does: attempts of the last day, what waits, what went wrong."""

    async def told(open_: AdminContext, each: Endpoint) -> Record:
        return presenting.stats_record(await open_.deliveries.stats(each), each)

    record = dict(_run(config, endpoint_id, told))
    if not as_json:
        counts = record["deliveries"].items()
        record["deliveries"] = ", ".join(f"{number} {state}" for state, number in counts)
    print_record("How it does.", record, as_json=as_json)


@endpoint.command()
@with_config
@with_json
def reseal(config: Config, *, as_json: bool) -> None:
    """Encrypt every secret under the first key, so that the others can be taken away."""

    async def resealed() -> int:
        async with open_admin(config) as open_:
            tenants = await open_.store.tenants()
            return sum([await open_.endpoints.reseal(each.id) for each in tenants])

    print_record("Done.", {"resealed": asyncio.run(resealed())}, as_json=as_json)


endpoint.add_command(verify)


async def endpoint_of_any(open_: AdminContext, endpoint_id: str) -> Endpoint:
    """Return an endpoint, whosever it is, a deleted one too. Raises NoSuchRecord."""
    for tenant in await open_.store.tenants():
        found = await open_.store.endpoint(tenant.id, endpoint_id)
        if found is not None:
            return found
    raise NoSuchRecord("endpoint", endpoint_id)


async def tenants_meant(open_: AdminContext, tenant_id: str | None) -> Sequence[str]:
    """Return the id of one tenant, or of all if none is named. Raises NoSuchRecord."""
    if tenant_id is None:
        return [each.id for each in await open_.store.tenants()]
    return [(await require_tenant(open_.store, tenant_id)).id]


def _run(config: Config, endpoint_id: str, act: Act[T]) -> T:
    """Do something with an endpoint, whosever it is."""

    async def running() -> T:
        async with open_admin(config) as open_:
            return await act(open_, await endpoint_of_any(open_, endpoint_id))

    return asyncio.run(running())


def _fields(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given under the names of an endpoint's fields."""
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
        heading = "The endpoint took it." if trial.passed else "The endpoint did not take it."
        print_record(heading, record, as_json=False)
    sys.exit(not trial.passed)
