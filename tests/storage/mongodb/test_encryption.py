"""A database whose secrets are in clear is encrypted, also if the command is killed."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from fhirpub.app.stores import open_with
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.sealed import is_sealed
from fhirpub.tenant import Tenant
from fhirpub.testing.store_contract import a_key
from tests.storage.mongodb.helpers import Admin, failing
from tests.waiting import wait_until

KEY = b"k" * 32
TENANTS = [Tenant.new(str(number), created=number) for number in range(1_500)]


async def fill(config: Config) -> None:
    async with open_with(config, SecretCipher()) as store:
        for start in range(0, len(TENANTS), 100):
            await asyncio.gather(*map(store.put_tenant, TENANTS[start : start + 100]))
        await store.put_signing_key(a_key("a"))


async def read(config: Config) -> list[object]:
    async with open_with(config, SecretCipher([KEY])) as store:
        return [*await store.tenants(), *await store.signing_keys("sandbox")]


def has_left(admin: Admin) -> bool:
    """Return whether the command has no connection: the server completes what it has sent."""
    everything = {"$currentOp": {"allUsers": True, "idleConnections": True}}
    return not [*admin.admin.aggregate([everything, {"$match": {"appName": "tried"}}])]


def test_a_database_is_encrypted_although_the_command_was_killed(
    url: str, admin: Admin, tmp_path: Path
) -> None:
    url = f"{url}&appName=tried"
    config = Config(storage=StorageConfig(url=url))
    asyncio.run(fill(config))
    (tmp_path / "keys").write_text(base64.b64encode(KEY).decode())
    file = tmp_path / "f.toml"
    file.write_text(f'[storage]\nurl = "{url}"\nkeys_file = "{tmp_path}/keys"\n')
    words = [sys.executable, "-m", "fhirpub", "secrets", "reseal", "--json", "--config", str(file)]
    database = admin[url.rpartition("/")[2].partition("?")[0]]

    def sealed() -> int:
        return sum(is_sealed(one["salt"]) for one in database["tenant"].find())

    # The kill comes in between, whichever process rests.
    slow = failing(admin, "update", blockConnection=True, blockTimeMS=100)
    with slow, subprocess.Popen(words, stdout=subprocess.DEVNULL) as killed:
        while not (done := sealed()) and killed.poll() is None:
            pass
        killed.kill()

    assert 0 < done < len(TENANTS)
    assert wait_until(lambda: has_left(admin))
    rest = len(TENANTS) - sealed()
    assert asyncio.run(read(config)) == [*TENANTS, a_key("a")]
    finished = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    record: dict[str, Any] = json.loads(finished.stdout)
    assert (record["salts"], record["signing_keys"]) == (rest, 1)
    assert sealed() == len(TENANTS)
    assert asyncio.run(read(config)) == [*TENANTS, a_key("a")]
