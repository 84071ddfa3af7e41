"""A command seals what waits before it reads the audit trail."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fhirpub.administration.audit import chains
from fhirpub.administration.audit.chains import chain_meant, chain_name, seal_trail
from fhirpub.app.stores import open_store
from fhirpub.audit.sealer import LEASE
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.errors import StoreUnavailable
from fhirpub.runtime.clock import Clock, now_ms
from fhirpub.storage.audit_contract import UnsealedAudit
from fhirpub.storage.leases import Leases
from fhirpub.storage.store import Store
from fhirpub.testing.samples import LAB, a_version
from tests.unit.administration.office import Office
from tests.waiting import until

_MORE_THAN_A_ROUND_PASSES = 10_100


async def test_what_waits_behind_many_writes_without_a_record_is_sealed(tmp_path: Path) -> None:
    config = Config(storage=StorageConfig(url=f"sqlite:///{tmp_path}/trail.db"))
    async with open_store(config) as store:
        for _ in range(_MORE_THAN_A_ROUND_PASSES // 100):
            await asyncio.gather(*(store.add(LAB, a_version()) for _ in range(100)))
        await store.add(LAB, a_version(audit=b'{"action":"register","status":201}'))

        await seal_trail(config, store)

        (block,) = await store.audit_chain(LAB)
        assert block.records.count(b"\n") == 1


async def test_the_chain_of_the_service_is_meant_by_its_name_alone(
    office: Office, lab: str
) -> None:
    administration = office.administration

    assert await chain_meant(administration, "service") == ""
    assert await chain_meant(administration, "Lab") == lab
    assert [chain_name(one) for one in ("", lab)] == ["service", lab]


async def test_what_a_command_seals_is_signed(tmp_path: Path) -> None:
    config = Config(storage=StorageConfig(url=f"sqlite:///{tmp_path}/trail.db"))
    async with open_store(config) as store:
        await store.add(LAB, a_version(audit=b'{"action":"register","status":201}'))

        await seal_trail(config, store)

        assert len(await store.audit_checkpoints(LAB)) == 1


async def waiting_record(store: Store) -> None:
    await store.add(LAB, a_version(audit=b'{"action":"register","status":201}'))


def other_process(store: Store, seconds: float = 60.0, clock: Clock = now_ms) -> Leases:
    return Leases(store, owner="other", seconds=seconds, clock=clock)


async def test_a_command_gives_the_lease_back(office: Office) -> None:
    store = office.store
    await waiting_record(store)

    await seal_trail(office.administration.config, store)

    assert await other_process(store).take([LEASE]) == {LEASE}


async def test_a_command_waits_until_a_service_has_sealed_what_waits(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, service = office.store, other_process(office.store)
    await waiting_record(store)
    await service.take([LEASE])
    looks, look = list[UnsealedAudit](), store.unsealed_audit

    async def noted(**given: Any) -> UnsealedAudit:
        looks.append(await look(**given))
        return looks[-1]

    monkeypatch.setattr(store, "unsealed_audit", noted)
    monkeypatch.setattr(chains, "_PAUSE_SECONDS", 0.001)
    sealing = asyncio.create_task(seal_trail(office.administration.config, store))
    await until(lambda: len(looks) > 3)
    assert not sealing.done()

    await service.release([LEASE])
    await asyncio.wait_for(sealing, 30)
    assert len(await store.audit_chain(LAB)) == 1


async def test_a_service_that_does_not_seal_is_reported(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    await waiting_record(office.store)
    await other_process(office.store, seconds=1.0, clock=office.clock).take([LEASE])
    monkeypatch.setattr(chains, "now_ms", office.clock)
    monkeypatch.setattr(chains, "_LEASE_SECONDS", 0.2)

    with pytest.raises(StoreUnavailable) as refusal:
        await seal_trail(office.administration.config, office.store)

    assert refusal.value.reason == "another process is to seal the audit trail, and does not"
