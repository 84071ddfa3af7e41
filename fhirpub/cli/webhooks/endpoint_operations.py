"""``fhirpub endpoint``: commands that act on an endpoint, its secrets and its state."""

from __future__ import annotations

import sys
from typing import Any

import click

from fhirpub.administration import endpoint_acts, endpoints
from fhirpub.cli.administration.target import Target, confirm_final, with_target, with_yes
from fhirpub.cli.options import with_json
from fhirpub.cli.printing import Record, print_json, print_record, print_table
from fhirpub.cli.time_types import Span
from fhirpub.cli.webhooks.secret_options import (
    prompt_for_token,
    with_secret_import,
    with_token_import,
)
from fhirpub.cli.webhooks.verification import read_secret
from fhirpub.webhooks.management.endpoints import USUAL_GRACE_SECONDS
from fhirpub.webhooks.management.validation import MAX_GRACE_SECONDS

_of_endpoint = click.argument("endpoint_id", metavar="ENDPOINT")


@click.command()
@_of_endpoint
@with_target
@with_json
def ping(endpoint_id: str, target: Target, *, as_json: bool) -> None:
    """Send a test event and print the result; exit status 1 if it was not accepted.

    An endpoint that has not passed its challenge gets the challenge instead, as by
    `fhirpub endpoint verify-endpoint`.
    """
    _print_trial(target.call(endpoint_acts.PING, endpoint=endpoint_id), as_json=as_json)


@click.command(name="verify-endpoint")
@_of_endpoint
@with_target
@with_json
def verify_endpoint(endpoint_id: str, target: Target, *, as_json: bool) -> None:
    """Send a challenge that the endpoint must repeat; exit status 1 if it does not."""
    _print_trial(target.call(endpoint_acts.VERIFY, endpoint=endpoint_id), as_json=as_json)


@click.command(
    epilog="""\b
Examples:
  fhirpub endpoint rotate 5f0c…                 both secrets sign for a day
  fhirpub endpoint rotate 5f0c… --grace 0s      the old secret leaked: it ends now
"""
)
@_of_endpoint
@click.option(
    "--grace",
    type=Span(),
    default=USUAL_GRACE_SECONDS,
    metavar="DURATION",
    help=f"How long the old secret also signs, such as 24h, at most "
    f"{MAX_GRACE_SECONDS // 86_400}d; default: 24h.",
)
@with_secret_import
@with_target
@with_json
def rotate(
    endpoint_id: str, grace: int, target: Target, *, import_secret: bool, as_json: bool
) -> None:
    """Create a new secret; the old one also signs for a while, so that no event is refused.

    A secret that an earlier rotation replaced signs until its own end; --grace 0s ends all.
    """
    if grace > MAX_GRACE_SECONDS:
        raise click.UsageError(f"--grace must be at most {MAX_GRACE_SECONDS // 86_400}d")
    fields: dict[str, Any] = {"grace_seconds": grace}
    if import_secret:
        fields["signing_secret"] = read_secret()
    rotated = target.call(endpoint_acts.ROTATE, endpoint=endpoint_id, **fields)
    end = f"signs for another {grace} seconds" if grace else "no longer signs"
    then = f"The secret is shown only once. The old secret {end}."
    print_record("Secret rotated.", rotated, as_json=as_json, then=then)


@click.command(name="rotate-token")
@_of_endpoint
@with_token_import
@with_target
@with_json
def rotate_token(endpoint_id: str, target: Target, *, import_token: bool, as_json: bool) -> None:
    """Replace the token; the old one is no longer sent."""
    fields = {"bearer_token": prompt_for_token()} if import_token else {}
    rotated = target.call(endpoint_acts.ROTATE_TOKEN, endpoint=endpoint_id, **fields)
    then = "The token is shown only once."
    print_record("Token rotated.", rotated, as_json=as_json, then=then)


@click.command()
@_of_endpoint
@with_target
@with_json
def enable(endpoint_id: str, target: Target, *, as_json: bool) -> None:
    """Enable an endpoint; a disabled one must first accept a test event.

    An endpoint whose current URL was never verified becomes unverified, and must be verified.
    """
    enabled = target.call(endpoint_acts.ENABLE, endpoint=endpoint_id)
    is_active = enabled["state"] == "active"
    heading = "Endpoint enabled." if is_active else "No longer disabled, but not yet verified."
    print_record(heading, enabled, as_json=as_json)


@click.command()
@_of_endpoint
@with_target
@with_json
def pause(endpoint_id: str, target: Target, *, as_json: bool) -> None:
    """Pause an endpoint: its deliveries are held until it is enabled."""
    paused = target.call(endpoint_acts.PAUSE, endpoint=endpoint_id)
    print_record("Endpoint paused.", paused, as_json=as_json)


@click.command()
@_of_endpoint
@with_target
@with_json
def disable(endpoint_id: str, target: Target, *, as_json: bool) -> None:
    """Disable an endpoint: its deliveries are held, and its tenant cannot enable it."""
    disabled = target.call(endpoint_acts.DISABLE, endpoint=endpoint_id)
    print_record("Endpoint disabled.", disabled, as_json=as_json)


@click.command(short_help="Remove an endpoint for good.")
@_of_endpoint
@with_yes
@with_target
@with_json
def rm(endpoint_id: str, target: Target, *, yes: bool, as_json: bool) -> None:
    """Remove an endpoint and its secrets for good; its open deliveries are cancelled.

    This cannot be undone; `fhirpub endpoint pause` only holds deliveries.
    """
    confirm_final(f"Remove the endpoint {endpoint_id} for good?", yes=yes)
    removed = target.call(endpoints.REMOVE, endpoint=endpoint_id)
    print_record("Endpoint removed.", removed, as_json=as_json)


@click.command()
@_of_endpoint
@with_target
@with_json
def stats(endpoint_id: str, target: Target, *, as_json: bool) -> None:
    """Show delivery statistics for an endpoint: attempts of the last day, backlog, failures."""
    record = dict(target.call(endpoint_acts.STATS, endpoint=endpoint_id))
    if as_json:
        print_json(record)
        return
    counts = record["deliveries"].items()
    record["deliveries"] = ", ".join(f"{number} {state}" for state, number in counts)
    tables = {"hour": record.pop("by_hour"), "day": record.pop("by_day")}
    print_record("Delivery statistics.", record, as_json=False)
    for unit, every in tables.items():
        click.secho(f"\nAttempts by {unit}; {unit}s without any are left out.", bold=True)
        used = [one for one in every if one["succeeded"] or one["failed"]]
        print_table(used, as_json=False, empty="None.")


@click.command()
@with_target
@with_json
def reseal(target: Target, *, as_json: bool) -> None:
    """Re-encrypt all secrets with the first key, so that the other keys can be removed."""
    print_record("Done.", target.call(endpoint_acts.RESEAL), as_json=as_json)


def _print_trial(trial: Record, *, as_json: bool) -> None:
    passed = trial["passed"]
    if as_json:
        print_json(trial)
    else:
        heading = "The endpoint accepted it." if passed else "The endpoint did not accept it."
        print_record(heading, trial, as_json=False)
    sys.exit(not passed)


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
