"""A command seals what waits before it reads the audit trail."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fhirpub.administration.audit.chains import chain_meant, chain_name, seal_trail
from fhirpub.app.stores import open_store
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.testing.samples import LAB, a_version
from tests.unit.administration.office import Office

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
