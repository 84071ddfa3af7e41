"""``fhirpub endpoint``: commands that act on an endpoint, its secrets and its state."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from fhirpub.app.admin import AdminContext, open_admin
from fhirpub.app.changes import recorded
from fhirpub.auth.tenants import require_enabled_tenant
from fhirpub.cli.options import with_config, with_json
from fhirpub.cli.printing import Record, print_json, print_record
from fhirpub.cli.time_types import Span
from fhirpub.cli.webhooks.endpoint_lookup import (
    prompt_for_token,
    record_of,
    record_with_secrets,
    run_on_endpoint,
    with_secret_import,
    with_token_import,
)
from fhirpub.cli.webhooks.verification import read_secret
from fhirpub.config.settings import Config
from fhirpub.storage.webhook_contract import Endpoint
from fhirpub.webhooks.management import serializers as presenting
from fhirpub.webhooks.management.endpoints import USUAL_GRACE_SECONDS, EndpointWithSecrets
from fhirpub.webhooks.management.trials import TestDelivery
from fhirpub.webhooks.management.validation import MAX_GRACE_SECONDS


@click.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def ping(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Send a test event and print the result; exit status 1 if it was not accepted.

    An endpoint that has not passed its challenge gets the challenge instead, as by
    `fhirpub endpoint verify-endpoint`.
    """

    async def tried(open_: AdminContext, each: Endpoint) -> TestDelivery:
        return await open_.endpoints.test(each.tenant, each.id, operator=True)

    _print_trial(
        run_on_endpoint(config, endpoint_id, tried, action="endpoint.test"), as_json=as_json
    )


@click.command(name="verify-endpoint")
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def verify_endpoint(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Send a challenge that the endpoint must repeat; exit status 1 if it does not."""

    async def tried(open_: AdminContext, each: Endpoint) -> TestDelivery:
        return await open_.endpoints.verify(each.tenant, each.id, operator=True)

    _print_trial(
        run_on_endpoint(config, endpoint_id, tried, action="endpoint.verify"), as_json=as_json
    )


@click.command(
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
@with_secret_import
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

    disclosed = run_on_endpoint(config, endpoint_id, rotated, action="endpoint.secret.rotate")
    end = f"signs for another {grace} seconds" if grace else "no longer signs"
    then = f"The secret is shown only once. The old secret {end}."
    print_record("Secret rotated.", record_with_secrets(disclosed), as_json=as_json, then=then)


@click.command(name="rotate-token")
@click.argument("endpoint_id", metavar="ID")
@with_token_import
@with_config
@with_json
def rotate_token(endpoint_id: str, config: Config, *, import_token: bool, as_json: bool) -> None:
    """Replace the token; the old one is no longer sent."""
    fields = {"bearer_token": prompt_for_token()} if import_token else {}

    async def rotated(open_: AdminContext, each: Endpoint) -> EndpointWithSecrets:
        return await open_.endpoints.rotate_token(each.tenant, each.id, fields)

    disclosed = run_on_endpoint(config, endpoint_id, rotated, action="endpoint.token.rotate")
    then = "The token is shown only once."
    print_record("Token rotated.", record_with_secrets(disclosed), as_json=as_json, then=then)


@click.command()
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

    record = record_of(run_on_endpoint(config, endpoint_id, enabled, action="endpoint.enable"))
    is_active = record["state"] == "active"
    heading = "Endpoint enabled." if is_active else "No longer disabled, but not yet verified."
    print_record(heading, record, as_json=as_json)


@click.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def pause(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Pause an endpoint: its deliveries are held until it is enabled."""

    async def paused(open_: AdminContext, each: Endpoint) -> Endpoint:
        return await open_.endpoints.pause(each.tenant, each.id)

    print_record(
        "Endpoint paused.",
        record_of(run_on_endpoint(config, endpoint_id, paused, action="endpoint.pause")),
        as_json=as_json,
    )


@click.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def disable(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Disable an endpoint: its deliveries are held, and its tenant cannot enable it."""

    async def disabled(open_: AdminContext, each: Endpoint) -> Endpoint:
        return await open_.endpoints.disable(each.tenant, each.id)

    record = record_of(run_on_endpoint(config, endpoint_id, disabled, action="endpoint.disable"))
    print_record("Endpoint disabled.", record, as_json=as_json)


@click.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def rm(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Remove an endpoint and its secrets; its open deliveries are cancelled."""

    async def removed(open_: AdminContext, each: Endpoint) -> Record:
        await open_.endpoints.delete(each.tenant, each.id)
        return {"id": each.id, "url": each.url, "state": "deleted"}

    print_record(
        "Endpoint removed.",
        run_on_endpoint(config, endpoint_id, removed, action="endpoint.delete"),
        as_json=as_json,
    )


@click.command()
@click.argument("endpoint_id", metavar="ID")
@with_config
@with_json
def stats(endpoint_id: str, config: Config, *, as_json: bool) -> None:
    """Show delivery statistics for an endpoint: attempts of the last day, backlog, failures."""

    async def told(open_: AdminContext, each: Endpoint) -> Record:
        return presenting.stats_record(await open_.deliveries.stats(each), each)

    record = dict(run_on_endpoint(config, endpoint_id, told))
    if not as_json:
        counts = record["deliveries"].items()
        record["deliveries"] = ", ".join(f"{number} {state}" for state, number in counts)
    print_record("Delivery statistics.", record, as_json=as_json)


@click.command()
@with_config
@with_json
def reseal(config: Config, *, as_json: bool) -> None:
    """Re-encrypt all secrets with the first key, so that the other keys can be removed."""

    async def resealed() -> int:
        async with open_admin(config) as open_:
            tenants = await open_.store.tenants()
            async with recorded(config, open_.store, "endpoint.reseal"):
                return sum([await open_.endpoints.reseal(tenant.id) for tenant in tenants])

    print_record("Done.", {"resealed": asyncio.run(resealed())}, as_json=as_json)


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


OPERATIONS = (
    ping,
    verify_endpoint,
    rotate,
    rotate_token,
    enable,
    pause,
    disable,
    rm,
    stats,
    reseal,
)
