"""``fhirpub demo``: a demonstration of the service on a temporary store."""

from __future__ import annotations

import asyncio
import dataclasses
import shlex
import shutil
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from fhirpub.app.server import run_server
from fhirpub.app.services import build_services
from fhirpub.auth import clients, tenants
from fhirpub.cli.demo.compositions import PLUGINS
from fhirpub.cli.demo.printer import Transcript
from fhirpub.cli.demo.receiver import DemoReceiver
from fhirpub.cli.demo.steps import Tour, write_files
from fhirpub.cli.http_client import http_client
from fhirpub.cli.options import with_config
from fhirpub.config.administration import AdminConfig
from fhirpub.config.console import ConsoleConfig
from fhirpub.config.monitoring import LogsConfig
from fhirpub.config.settings import Config, PluginsConfig, ServerConfig, StorageConfig
from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import ConfigurationError
from fhirpub.http.sockets import bind
from fhirpub.runtime.clock import now_ms
from fhirpub.runtime.stop_signals import stop_event
from fhirpub.web.services import Services

_HOST = "127.0.0.1"
_USUAL_PORT = ServerConfig().port
_CREDENTIALS = "credentials.sh"


@click.command(
    short_help="Demonstrate the service on a temporary store.",
    epilog="""\b
Examples:
  fhirpub demo                   shows everything, then serves until Ctrl-C
  fhirpub demo --exit            shows everything and ends
""",
)
@click.option("--exit", "leave", is_flag=True, help="End when everything has been shown.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="P",
    help=f"Port to listen on; default: {_USUAL_PORT}, or a free one if it is in use.",
)
@with_config
def demo(port: int | None, config: Config, *, leave: bool) -> None:
    """Publish a report with its results, correct and find it, receive webhooks, publish each type.

    Each step is shown as a curl command.

    Everything happens in a temporary folder, which is deleted at the end. No setup is needed, and
    an existing service is not touched.
    """
    with tempfile.TemporaryDirectory(prefix="fhirpub-demo-") as name:
        folder = Path(name)
        asyncio.run(_demo_config(_private(config, folder), folder, port, leave=leave))


async def _demo_config(config: Config, folder: Path, port: int | None, *, leave: bool) -> None:
    config, sockets = _bind_port(config, port)
    base = config.base_url
    mailbox = DemoReceiver()
    async with (
        mailbox.receiving(),
        build_services(config) as services,
        run_server(services, sockets),
        http_client() as client,
    ):
        credentials = await _credentials(services)
        write_files(folder)
        _write_credentials(folder, base, credentials)
        _introduce(base, folder)
        transcript = Transcript()
        await Tour(
            client=client,
            base=base,
            folder=folder,
            credentials=credentials,
            transcript=transcript,
            mailbox=mailbox,
        ).walk()
        click.echo()
        if not leave:
            with stop_event() as stop:
                _invite(base, folder, credentials)
                await stop.wait()
            click.echo()
    click.echo(f"Done; {folder} is deleted.")


async def _credentials(services: Services) -> dict[str, str]:
    """Create a tenant and a client of it."""
    tenant = await tenants.add_tenant(services.store, "North Quay Laboratory", clock=now_ms)
    client, secret = await clients.add_client(
        services.store,
        clients.NewClient(
            tenant=tenant.id,
            name="demo",
            environment=services.config.auth.environment,
            scopes=("system/*.cruds", "webhooks.read", "webhooks.write"),
        ),
        clock=now_ms,
    )
    audience = services.config.auth.audience
    return {"client_id": client.id, "client_secret": secret, "audience": audience}


def _introduce(base: str, folder: Path) -> None:
    click.secho(f"fhirpub runs at {base}, on an empty store in {folder}.", bold=True)
    click.echo("To follow in a second terminal, paste this first, then any command below:")
    click.echo()
    click.secho(f"    {_enter(folder)}", fg="cyan")


def _invite(base: str, folder: Path, credentials: dict[str, str]) -> None:
    click.secho("The service keeps running. Try it yourself:", bold=True)
    click.echo(f"  address        {base}")
    for name, value in credentials.items():
        click.echo(f"  {name.replace('_', ' '):<13}  {value}")
    click.echo(f"  files          {folder}")
    click.echo()
    click.echo("From a second terminal:")
    click.secho(f"    {_enter(folder)}", fg="cyan")
    click.secho(f'    {_program()} publish register.json --url "$BASE"', fg="cyan")
    click.echo("Press Ctrl-C to stop it.")


def _enter(folder: Path) -> str:
    return f"cd {shlex.quote(str(folder))} && . ./{_CREDENTIALS}"


def _program() -> str:
    """Return the command that starts this program from any folder."""
    return "fhirpub" if shutil.which("fhirpub") else f"{shlex.quote(sys.executable)} -m fhirpub"


def _write_credentials(folder: Path, base: str, credentials: dict[str, str]) -> None:
    """Write the variables of the commands; only the owner of the folder can read them."""
    variables = {"BASE": base} | {name.upper(): value for name, value in credentials.items()}
    for name in ("CLIENT_ID", "CLIENT_SECRET"):
        variables[f"FHIRPUB_{name}"] = variables[name]
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
    (folder / _CREDENTIALS).write_text("".join(lines), encoding="utf-8")


def _private(config: Config, folder: Path) -> Config:
    """Return the settings with a separate store and a separate address.

    Nothing of the demo reaches what a service with the same settings has: neither its ports, nor
    where it attests its audit trail.
    """
    return dataclasses.replace(
        config,
        server=dataclasses.replace(config.server, host=_HOST, base_url=""),
        auth=dataclasses.replace(config.auth, enforce_scopes=True),
        storage=StorageConfig(url=f"sqlite:///{folder / 'fhirpub.db'}"),
        plugins=PluginsConfig(enabled=_enable_plugins(config.plugins.enabled)),
        webhooks=WebhooksConfig(allow_networks=[_HOST]),
        logs=LogsConfig(level="error"),
        audit=dataclasses.replace(config.audit, checkpoints_file="", checkpoints_syslog=""),
        admin=AdminConfig(),
        console=ConsoleConfig(),
    )


def _enable_plugins(configured: Sequence[str]) -> list[str]:
    """Return the plugins of the demo and those of the configuration."""
    return list(dict.fromkeys([*PluginsConfig().enabled, *PLUGINS, *configured]))


def _bind_port(config: Config, port: int | None) -> tuple[Config, list[socket.socket]]:
    """Listen on the given port, or on the usual or a free one; return the settings with it."""
    server = dataclasses.replace(config.server, port=_USUAL_PORT if port is None else port)
    try:
        return bind(dataclasses.replace(config, server=server))
    except ConfigurationError:
        if port is not None:
            raise
        return _bind_port(config, 0)
