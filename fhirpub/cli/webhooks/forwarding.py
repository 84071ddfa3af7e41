"""Sends events from this machine to a receiver that is being developed, as the service does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import click

from fhirpub.cli.webhooks.secret_options import TOKEN_VARIABLE
from fhirpub.cli.webhooks.verification import SECRET_VARIABLE
from fhirpub.config.loader import variable
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import InvalidContent
from fhirpub.runtime.clock import now_ms
from fhirpub.webhooks.management.endpoint_secrets import new_token
from fhirpub.webhooks.policy.outcome import Outcome
from fhirpub.webhooks.transport.message import Message
from fhirpub.webhooks.transport.sender import Sender
from fhirpub.webhooks.transport.signing import BadSecret, key_of, new_secret

_ANYWHERE = ["0.0.0.0/0", "::/0", "127.0.0.0/8", "::1/128"]
"""Networks that are open: the command may send to all that this machine reaches."""
_LINE = "local"
"""What messages are of that share a connection."""


@dataclass(frozen=True, slots=True)
class LocalSecret:
    """The secret that signs what is forwarded, and whether it was made for this run."""

    text: str = field(repr=False)
    is_new: bool

    @classmethod
    def find(cls) -> LocalSecret:
        """Return the secret of the environment, or a new one. Raises ClickException."""
        given = variable(SECRET_VARIABLE)
        try:
            key_of(given or new_secret())
        except BadSecret as problem:
            raise click.ClickException(f"{SECRET_VARIABLE}: {problem}") from None
        return cls(given or new_secret(), not given)

    def announce(self, url: str) -> None:
        """Print on standard error what the receiver verifies with."""
        if self.is_new:
            note = f"made for this run; {SECRET_VARIABLE} sets one that stays"
            click.echo(f"Signing for {url} with {self.text} ({note})", err=True)
        else:
            click.echo(f"Signing for {url} with the secret of {SECRET_VARIABLE}", err=True)


@dataclass(slots=True)
class Forwarder:
    """Sends to one receiver."""

    sender: Sender
    url: str
    secret: LocalSecret
    token: str = field(default_factory=lambda: variable(TOKEN_VARIABLE) or new_token(), repr=False)

    async def send(
        self, event_id: str, event_type: str, body: bytes, *, sequence: int, number: int = 1
    ) -> Outcome:
        """Send an event once, and return what came of it."""
        message = Message(
            tenant="",
            url=self.url,
            token=self.token,
            secrets=(self.secret.text,),
            event_id=event_id,
            event_type=event_type,
            body=body,
            number=number,
            sequence=sequence,
            endpoint=_LINE,
        )
        return await self.sender.attempt(message)


@asynccontextmanager
async def forwarding(url: str, settings: WebhooksConfig) -> AsyncIterator[Forwarder]:
    """Open what sends to a receiver on this machine or near it. Raises ClickException."""
    secret = LocalSecret.find()
    async with Sender(replace(settings, allow_networks=_ANYWHERE), clock=now_ms) as sender:
        try:
            target = await sender.target(url, tenant="")
        except InvalidContent as problem:
            reasons = "; ".join(issue.diagnostics for issue in problem.issues)
            raise click.BadParameter(f"{url} {reasons}", param_hint="--forward-to") from None
        secret.announce(target.url)
        yield Forwarder(sender, target.url, secret)
