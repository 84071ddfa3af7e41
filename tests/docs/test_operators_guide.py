"""The operators' guide, its commands followed word by word on stores of both engines."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from fhirpub.app.stores import open_store
from fhirpub.config.settings import Config, StorageConfig
from fhirpub.storage.mongodb import store as mongodb
from fhirpub.storage.sqlite import store as sqlite
from fhirpub.storage.store import Store
from fhirpub.tenant import Tenant
from fhirpub.testing.service import RunningService
from fhirpub.testing.store_contract import LAB, a_blob, a_key, a_version, successor, whole_blobs
from tests.bodies import organization, parameters, patient, register_body, report

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
ERASE, ERASE_AGAIN, ADDRESS, MOVE, BACKUP, RESTORE = BLOCKS


def opened(url: str) -> AbstractAsyncContextManager[Store]:
    return open_store(Config(storage=StorageConfig(url=url)))


async def everything(url: str, key: Path | None = None) -> tuple[object, ...]:
    settings = StorageConfig(url=url, keys_file=str(key or ""))
    async with open_store(Config(storage=settings)) as store:
        versions = await store.scan(limit=100)
        blobs = [
            await whole_blobs(store, tenant, version.documents) for tenant, version in versions
        ]
        return versions, blobs, await store.tenants(), await store.signing_keys("sandbox")


async def fill(url: str) -> None:
    async with opened(url) as store:
        await store.put_tenant(Tenant(LAB, "Lab", b"s" * 32, 1))
        await store.put_signing_key(a_key("k1"))
        version, blob = a_version(), a_blob()
        await store.add(LAB, version, [blob])
        await store.add(LAB, successor(version, documents=(blob.sha256,)))


def follow(block: str, folder: Path, files: Mapping[str, str]) -> None:
    """Run a block in the folder of the settings files, with `/backup` in that folder too."""
    for name, url in files.items():
        (folder / name).write_text(f'[storage]\nurl = "{url}"\n', encoding="utf-8")
    (folder / "backup").mkdir(exist_ok=True)
    ours = f'fhirpub() {{ {sys.executable} -m fhirpub "$@"; }}\n'
    subprocess.run(
        ["bash", "-ec", ours + block.replace("/backup/", f"{folder}/backup/")],
        cwd=folder,
        env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(item for item in sys.path if item)},
        check=True,
        timeout=60,
    )


async def test_a_store_is_moved_as_the_guide_says(tmp_path: Path, mongodb_url: str) -> None:
    old = f"sqlite:///{tmp_path}/old.db"
    await fill(old)

    follow(MOVE, tmp_path, {"old.toml": old, "new.toml": mongodb_url})

    assert await everything(mongodb_url, tmp_path / "old.webhook-keys") == await everything(old)


async def test_a_backup_is_made_and_restored_as_the_guide_says(
    tmp_path: Path, mongodb_url: str
) -> None:
    await fill(mongodb_url)
    before = await everything(mongodb_url)

    follow(BACKUP, tmp_path, {"production.toml": mongodb_url})
    with MongoClient[dict[str, Any]](mongodb_url) as client:
        client.drop_database(client.get_default_database())
    follow(RESTORE, tmp_path, {"restored.toml": mongodb_url})

    assert await everything(mongodb_url) == before


def test_data_are_erased_as_the_guide_says_and_again_in_a_backup(tmp_path: Path) -> None:
    store, backup = tmp_path / "fhirpub.db", tmp_path / "backup.db"
    person = patient(identifier=[{"system": "https://registry.example/persons", "value": "4711"}])
    bodies = [
        parameters(patient=person, organization=organization(), diagnosticReport=report("P"))
    ]
    bodies += [register_body(value) for value in ("R-1", "A", "B", "kept")]
    with RunningService(tmp_path) as service:
        lab = service.integrator()
        paths = [
            lab.register(body).headers["location"].partition("/_history")[0] for body in bodies
        ]
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    names = {"REPORT REPORT": " ".join(path.rpartition("/")[2] for path in paths[2:4])}
    names |= {"--tenant ID": f"--tenant {lab.tenant.id}", "FILE": "f.toml"}

    export, repeat = ERASE_AGAIN.splitlines(keepends=True)
    for block in (ERASE, export, repeat):
        if block == repeat:
            backup.rename(store)
        for name, given in names.items():
            block = block.replace(name, given)  # noqa: PLW2901
        follow(block, tmp_path, {"f.toml": f"sqlite:///{store}"})
        with RunningService(tmp_path) as service:
            there = replace(lab, service=service)
            there.log_in()
            found = [there.get(path[path.index("/fhir/") :]).status for path in paths]
        assert found == [410, 410, 410, 410, 200]


def test_the_addresses_in_the_guide_are_understood_and_overrule_nothing() -> None:
    (given,) = re.findall("FHIRPUB_STORAGE__URL='(.+)'", ADDRESS)
    table = re.findall(r"^\|.*\| `(\w+://[^`]+)` \|", GUIDE, re.MULTILINE)

    assert len(table) == 3
    for url in [given, *table]:
        if url.startswith("sqlite"):
            sqlite.from_url(url, deadline_seconds=1)
        else:
            mongodb.from_url(url, deadline_seconds=1, production=True)
            assert not mongodb._overruled_options(url)


@pytest.mark.parametrize(
    "sentence",
    [
        re.sub("^the store cannot be used: ", "", item)
        for item in re.findall(
            r"^\| `([a-z ][^`]+)`", GUIDE.partition("## When something is wrong")[2], re.MULTILINE
        )
    ],
)
def test_what_the_guide_says_can_be_seen_is_in_the_sources(sentence: str) -> None:
    sources = sorted((ROOT / "fhirpub").rglob("*.py"))
    text = " ".join(source.read_text(encoding="utf-8") for source in sources)

    assert sentence in re.sub(r'"\s+f?"', "", text)


async def test_a_leaked_key_is_deleted_as_the_guide_on_security_says(mongodb_url: str) -> None:
    guide = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    async with opened(mongodb_url) as store:
        for kid in ("leaked", "good"):
            await store.put_signing_key(a_key(kid))
        with MongoClient[dict[str, Any]](mongodb_url) as client:
            change = {"$pull": {"keys": {"kid": "leaked"}}}
            client.get_default_database()["store"].update_one({"_id": "signing_keys"}, change)

        keys = await store.signing_keys("sandbox")

    assert '`db.store.updateOne({_id: "signing_keys"}, {$pull: {keys: {kid: "…"}}})`' in guide
    assert [key.kid for key in keys] == ["good"]
