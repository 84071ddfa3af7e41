"""What a service checks before it is built, and the clock of its parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.app.services import build_services
from fhirpub.app.stores import open_with
from fhirpub.config.retention import RetentionConfig
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import ConfigurationError
from fhirpub.tenant import Tenant
from fhirpub.testing.clock import HandClock


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(storage=StorageConfig(url=f"sqlite:///{tmp_path}/store.db"))


async def test_all_parts_that_need_the_time_have_the_clock_of_the_service(config: Config) -> None:
    clock = HandClock()

    async with build_services(config, clock=clock) as built:
        parts: dict[str, Any] = {
            name: getattr(built, name)
            for name in (
                *("rate_limit", "quotas", "quota_exchange", "deliveries"),
                *("endpoints", "tokens", "audit"),
            )
        }
        assert {name for name, part in parts.items() if part._clock is not clock} == set()
        assert built.clock is built.context.clock is clock


async def test_a_service_is_not_built_on_secrets_that_it_cannot_read(
    config: Config, tmp_path: Path
) -> None:
    async with open_with(config, SecretCipher([bytes(32)])) as store:
        await store.put_tenant(Tenant.new("Lab", created=1))

    with pytest.raises(ConfigurationError, match="the salt of 1 tenant"):
        async with build_services(config):
            pass


async def test_a_policy_of_retention_that_names_no_type_keeps_a_service_from_being_built(
    config: Config,
) -> None:
    retention = RetentionConfig(policies=["Guess after 1 days"])

    with pytest.raises(ConfigurationError, match="Guess is no enabled type"):
        async with build_services(replace(config, retention=retention)):
            pass
