"""``fhirpub transfer``: copy one store into another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import click

from fhirpub.administration.audit.chains import seal_trail
from fhirpub.app.stores import key_source, open_with
from fhirpub.audit.transfer import transfer_trail
from fhirpub.cli.error_hints import explain
from fhirpub.cli.options import plugin_groups, with_config, with_json
from fhirpub.cli.printing import counted, print_json
from fhirpub.cli.progress_line import ProgressLine
from fhirpub.config.loader import load
from fhirpub.config.settings import Config
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import ConfigurationError, StoreUnavailable
from fhirpub.storage import transfer as copying
from fhirpub.storage.transfer import Progress


@click.command(
    short_help="Copy everything into another store.",
    epilog="""\b
Example, from SQLite to MongoDB:
  fhirpub transfer --to "mongodb://db1,db2,db3/fhirpub?replicaSet=rs0"    while the service runs
  (stop the service)
  fhirpub transfer --to "mongodb://db1,db2,db3/fhirpub?replicaSet=rs0"    copies the rest
  (set [storage] url to the new address, start the service)

Keep a URL with a password in a file: --to production.toml
""",
)
@click.option(
    "--to",
    "target",
    required=True,
    metavar="URL|FILE",
    help="The target store: its [storage] url, or a file of settings that contains it.",
)
@with_config
@with_json
def transfer(target: str, config: Config, *, as_json: bool) -> None:
    """Copy tenants, clients, keys, every version with its documents, webhooks, the audit trail.

    It can be interrupted and repeated: data that the target already has is compared, not written
    again. The source is the store of the configuration; it is only read, except that its waiting
    audit records are sealed. A SQLite file that does not exist is created, with its folder.

    A store of an older release is upgraded before it is read, and that release can use neither it
    nor the copy: make the backup before an upgrade with the older release. `fhirpub migrate` is
    the older name of this command.
    """
    other = _other(config, target)
    line = ProgressLine(at_once=True)
    began = time.monotonic()
    try:
        progress = asyncio.run(_copy(config, other, line))
    except KeyboardInterrupt:
        raise click.ClickException(
            "interrupted; the copied data is safe, repeat the command to continue"
        ) from None
    summary = {
        "versions": progress.seen,
        "copied": progress.copied,
        "there_already": progress.there,
        "deliveries_written": progress.deliveries,
        "kept_by_target": progress.kept,
        "seconds": round(time.monotonic() - began, 1),
    }
    if as_json:
        print_json(summary)
        return
    click.echo(
        f"{_all_versions(progress.seen)} in the other store: {progress.copied:,} copied, "
        f"{progress.there:,} already there and equal."
    )
    if progress.deliveries:
        click.echo(f"Webhook deliveries that were new or changed: {progress.deliveries:,}.")
    if key_source(config).read() and not key_source(other).read():
        click.echo(
            "The secrets in the other store are encrypted under the key of this one: name its "
            "file in [storage] keys_file there."
        )
    for item in progress.kept:
        click.echo(f"Differs in the other store and was not changed: {item}")


async def _copy(config: Config, other: Config, line: ProgressLine) -> Progress:
    rate = _Rate()
    cipher = await asyncio.to_thread(_cipher, config, other)
    async with AsyncExitStack() as stack:
        with _naming("the store to copy from"):
            source = await stack.enter_async_context(open_with(config, cipher))
            await seal_trail(config, source)
        with _naming("the store to copy to"):
            target = await stack.enter_async_context(open_with(other, cipher))
        try:
            progress = await copying.transfer(
                source,
                target,
                on_progress=lambda progress: line.show(lambda: rate.describe(progress)),
            )
            await transfer_trail(source, target)
        except StoreUnavailable as problem:
            words = explain(problem.reason)
            raise StoreUnavailable(
                f"{words}; the copied data is safe, repeat the command to continue"
            ) from None
        else:
            return progress
        finally:
            line.end()


def _cipher(config: Config, other: Config) -> SecretCipher:
    """Return a cipher with the keys of both stores, of which the target's own comes first.

    A target without one gets everything under the key of the source. What no key decrypts is
    copied as it is stored.
    """
    ours, theirs = key_source(config).read(), key_source(other).read()
    return SecretCipher(tuple(dict.fromkeys([*theirs, *ours])))


@contextmanager
def _naming(name: str) -> Generator[None]:
    """Let the error of a store that cannot be used name which of the two it is."""
    try:
        yield
    except StoreUnavailable as problem:
        words = explain(problem.reason)
        raise ConfigurationError(f"{name} cannot be used: {words}") from None
    except ConfigurationError as problem:
        raise ConfigurationError(f"{name} cannot be used: {problem}") from None


def _other(config: Config, target: str) -> Config:
    """Return the settings with the other store; the environment applies only to the first one."""
    if "://" in target:
        return replace(config, storage=replace(config.storage, url=target))
    if not Path(target).is_file():  # not shown: it may be a mistyped URL with a password
        raise ConfigurationError("--to: is neither the URL of a store nor a file of settings")
    named = load(Path(target), environment={}, plugin_groups=plugin_groups)
    webhooks = replace(config.webhooks, keys_file=named.webhooks.keys_file)
    return replace(config, storage=named.storage, webhooks=webhooks)


class _Rate:
    """Describes the progress with the rate and the remaining time."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def describe(self, progress: Progress) -> str:
        """Return the progress in words."""
        rate = progress.seen / max(time.monotonic() - self._began, 0.001)
        left = max(progress.total - progress.seen, 0) / max(rate, 0.001)
        versions = counted(progress.total, "version")
        return f"{progress.seen:,} of {versions}, {rate:,.0f}/s, {left:,.0f} s left"


def _all_versions(count: int) -> str:
    return "The only version is" if count == 1 else f"All {count:,} versions are"
