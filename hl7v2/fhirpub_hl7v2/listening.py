"""The command ``fhirpub-hl7v2 listen``: a server for MLLP."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from pathlib import Path
from typing import Any

import click

from fhirpub.cli.options import EXISTING_FILE
from fhirpub.cli.publish.bulk.load import interruptible
from fhirpub.cli.publish.service import Service
from fhirpub.config.settings import Config
from fhirpub.runtime.clock import now_ms
from fhirpub.runtime.logging import configure
from fhirpub_hl7v2.frames import Memory
from fhirpub_hl7v2.listener import Limits, Listener, Network
from fhirpub_hl7v2.receiver import Receiver, endless_pauses
from fhirpub_hl7v2.service import named_service, open_publisher, with_service
from fhirpub_hl7v2.settings import Settings, read_settings

_MESSAGES_IN_MEMORY = 8


class _NetworkType(click.ParamType[Network]):
    """An address or a network, such as 10.1.0.0/16."""

    name = "network"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Network:
        """Return the network."""
        try:
            return ipaddress.ip_network(value, strict=False)
        except ValueError:
            self.fail(f"{value} is neither an address nor a network", param, ctx)


@click.command(
    short_help="Receive messages over MLLP.",
    epilog="""\b
Credentials come from FHIRPUB_CLIENT_ID and FHIRPUB_CLIENT_SECRET, or from a prompt.

\b
Examples:
  fhirpub-hl7v2 listen --mapping mapping.toml --url https://fhir.example.org
  fhirpub-hl7v2 listen --host 0.0.0.0 --allow 10.1.0.0/16 --tls-cert lab.pem --tls-key lab.key
""",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=2575, show_default=True, help="Its port."
)
@click.option(
    "--allow",
    "allowed",
    type=_NetworkType(),
    multiple=True,
    metavar="NETWORK",
    help="Address or network to accept connections from; may be repeated. Default: every one.",
)
@click.option(
    "--tls-cert", type=EXISTING_FILE, metavar="FILE.pem", help="Certificate; turns TLS on."
)
@click.option(
    "--tls-key", type=EXISTING_FILE, metavar="FILE.pem", help="Its key, if in another file."
)
@click.option(
    "--tls-client-ca",
    type=EXISTING_FILE,
    metavar="FILE.pem",
    help="Authority of client certificates, which become required.",
)
@click.option(
    "--message-bytes",
    type=click.IntRange(1_024, 64 * 1024 * 1024),
    default=16 * 1024 * 1024,
    show_default=True,
    help="Largest message.",
)
@click.option(
    "--connections",
    type=click.IntRange(1, 1_000),
    default=64,
    show_default=True,
    help="Connections at a time.",
)
@click.option(
    "--idle-seconds",
    type=click.FloatRange(0.1),
    default=600.0,
    show_default=True,
    help="A connection without a message for so long is closed.",
)
@click.option(
    "--arrival-seconds",
    type=click.FloatRange(0.1),
    default=30.0,
    show_default=True,
    help="A message that has begun must arrive within this time.",
)
@click.option(
    "--deadline-seconds",
    type=click.FloatRange(0.1),
    default=20.0,
    show_default=True,
    help="Time to publish a message, before AE asks the sender to repeat it.",
)
@with_service
def listen(mapping: Path | None, config: Config, **options: Any) -> None:
    """Receive ORU^R01 messages over MLLP until SIGTERM; publish each, then acknowledge it.

    AA: all reports of the message are stored. AE: the message was not stored, and why; AR: its
    type, version or processing id is not supported.
    """
    settings = read_settings(mapping)
    tls = _tls(options)
    service = named_service(config, options["url"], options["audience"], options["cacert"])
    configure(level=config.logs.level, form=config.logs.format)
    asyncio.run(_listen(service, settings, tls, options))


def _tls(options: dict[str, Any]) -> ssl.SSLContext | None:
    certificate, key, authority = (options[f"tls_{name}"] for name in ("cert", "key", "client_ca"))
    if certificate is None:
        if key or authority:
            raise click.UsageError("--tls-key and --tls-client-ca need --tls-cert")
        return None
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority)
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as problem:
        raise click.UsageError(f"--tls-cert, --tls-key, --tls-client-ca: {problem}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if authority:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def _listen(
    service: Service, settings: Settings, tls: ssl.SSLContext | None, options: dict[str, Any]
) -> None:
    limits = Limits(
        message_bytes=options["message_bytes"],
        connections=options["connections"],
        idle=options["idle_seconds"],
        arrival=options["arrival_seconds"],
        allowed=options["allowed"],
    )
    stopped = asyncio.Event()
    async with (
        open_publisher(service, limits.connections, endless_pauses) as publisher,
        interruptible(stopped.set),
    ):
        receiver = Receiver(publisher, settings, options["deadline_seconds"])
        memory = Memory(_MESSAGES_IN_MEMORY * limits.message_bytes)
        listener = Listener(receiver, limits, now_ms, memory)
        host = options["host"]
        try:
            async with listener.listen(host, options["port"], tls) as port:
                click.echo(f"fhirpub-hl7v2 listens on {host}:{port}")
                await stopped.wait()
        except OSError as problem:
            raise click.ClickException(f"cannot listen on {host}: {problem.strerror}") from None
