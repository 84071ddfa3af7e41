"""Records what operators do in the audit trail: before a change, and its outcome."""

from __future__ import annotations

import getpass
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus

from fhirpub.audit.record import BEGUN, Access, Agent, encode, name_of
from fhirpub.audit.trail import SERVICE
from fhirpub.config.settings import Config
from fhirpub.errors import FhirpubError, StoreUnavailable
from fhirpub.runtime.clock import now_ms
from fhirpub.storage.store import Store


@dataclass(slots=True)
class OperatorAccess:
    """What an operator does, completed while it is done."""

    tenant: str
    access: Access

    def name(self, kind: str, id_: str) -> None:
        """Name a record that is concerned, such as a client that was added."""
        self.access = replace(self.access, what=(*self.access.what, _name(kind, id_)))


@asynccontextmanager
async def recorded(
    config: Config,
    store: Store,
    action: str,
    *what: tuple[str, str],
    tenant: str = SERVICE,
    agent: Agent,
) -> AsyncGenerator[OperatorAccess]:
    """Record what the block does: that it begins, durably, and then how it ended.

    A change without a record cannot happen; one that was begun and has no outcome may have.

    Args:
        config: The settings.
        store: The store that is changed, and keeps the records.
        action: What is done, such as ``client.add``.
        *what: The kind and id of each record that is concerned.
        tenant: The tenant concerned; by default the service itself.
        agent: The person or client that does it.

    Yields:
        What is recorded at the end, to be completed.

    Raises:
        StoreUnavailable: The record of the beginning cannot be stored.
    """
    names = tuple(_name(kind, id_) for kind, id_ in what)
    doing = OperatorAccess(tenant, Access(action=action, status=BEGUN, what=names))
    await _write(config, store, doing, agent)
    try:
        yield doing
    except BaseException as problem:
        with suppress(StoreUnavailable):
            await _write(config, store, doing, agent, status=_status_of(problem))
        raise
    await _write(config, store, doing, agent, status=HTTPStatus.OK)


async def record_read(
    config: Config,
    store: Store,
    action: str,
    *what: tuple[str, str],
    tenant: str,
    agent: Agent,
) -> None:
    """Record what an operator is shown. Raises StoreUnavailable."""
    if config.audit.reads != "off":
        names = tuple(_name(kind, id_) for kind, id_ in what)
        patients = tuple(name for name in names if name.startswith("Patient/"))
        access = Access(action=action, what=names, patients=patients)
        doing = OperatorAccess(tenant, access)
        await _write(config, store, doing, agent, status=HTTPStatus.OK)


def local_agent(config: Config) -> Agent:
    """Return the agent of a command: the user of the operating system."""
    return Agent(environment=config.auth.environment, user=_user(), host=socket.gethostname())


async def tenant_of_client(store: Store, client_id: str) -> str:
    """Return the tenant in whose chain changes of a client are recorded."""
    client = await store.client(client_id)
    return client.tenant if client else SERVICE


def _name(kind: str, id_: str) -> str:
    """Return a name; a word of the command line may be no text."""
    return name_of(kind, id_.encode(errors="replace").decode())


def _status_of(problem: BaseException) -> int:
    if isinstance(problem, FhirpubError) and not isinstance(problem, StoreUnavailable):
        return HTTPStatus.BAD_REQUEST
    return HTTPStatus.INTERNAL_SERVER_ERROR


async def _write(
    config: Config, store: Store, doing: OperatorAccess, agent: Agent, *, status: int = BEGUN
) -> None:
    if not config.audit.enabled:
        return
    record = encode(replace(doing.access, status=int(status)), agent, at=now_ms())
    await store.add_audit_records({doing.tenant: record + b"\n"})


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number without a name
        return "unknown"
