"""A service with encrypted salts and signing keys: keys that change, are lost, or are damaged."""

from __future__ import annotations

import base64
import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.config.settings import AuthConfig, Config
from fhirpub.encryption.cipher import SecretCipher
from fhirpub.errors import ConfigurationError
from fhirpub.sealed import MARK
from fhirpub.storage.reencryption import reencrypt
from fhirpub.storage.sqlite.store import SqliteStore
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import register_body
from tests.quick_service import QUICK
from tests.waiting import wait_until

NEW = b"n" * 32


def rows(folder: Path, question: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(folder / "fhirpub.db")) as connection:
        return connection.execute(question).fetchall()


def change(folder: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(folder / "fhirpub.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def same_client(service: RunningService | ServiceProcess, lab: Integrator) -> Integrator:
    again = replace(lab, service=service)
    again.log_in()
    return again


def report_id(lab: Integrator, number: str) -> str:
    answer = lab.register(register_body(number))
    return answer.headers["location"].partition("/_history")[0].rpartition("/")[2]


def test_a_new_store_has_no_salt_and_no_signing_key_in_clear(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        lab = service.integrator()
        report_id(lab, "R-1")

    stored = rows(tmp_path, "SELECT salt FROM tenant UNION SELECT private_pem FROM signing_key")
    assert len(stored) == 2
    assert all(value.startswith(MARK) for (value,) in stored)
    content = b"".join(path.read_bytes() for path in tmp_path.glob("fhirpub.db*"))
    assert lab.tenant.salt not in content
    assert b"PRIVATE KEY" not in content


def test_reports_and_tokens_are_the_same_after_their_store_was_encrypted(tmp_path: Path) -> None:
    config = Config(auth=AuthConfig(issuer="https://fhir.lab"))
    with RunningService(tmp_path, config=config, open_store=in_clear) as service:
        lab = service.integrator()
        first = report_id(lab, "R-1")
    assert not rows(tmp_path, "SELECT 1 FROM tenant WHERE length(salt) <> 32")

    with RunningService(tmp_path, config=config) as service:
        token = replace(lab, service=service)
        service.call(reencrypt(service.services.store))

        assert token.get(f"/fhir/r4/DiagnosticReport/{first}").status == 200
        assert report_id(token, "R-1") == first
        assert report_id(same_client(service, lab), "R-1") == first
    assert not rows(tmp_path, "SELECT 1 FROM tenant WHERE length(salt) = 32")


@contextlib.asynccontextmanager
async def in_clear(config: Config) -> Any:
    """Open a store as releases did that encrypted only secrets of endpoints."""
    path = Path(config.storage.url.removeprefix("sqlite:///"))
    store = SqliteStore(path, deadline_seconds=10)
    await store.start()
    yield store
    await store.stop()


@pytest.mark.parametrize("keys", ["", base64.b64encode(NEW).decode()])
def test_without_the_key_the_service_does_not_start_and_says_what_to_do(
    keys: str, tmp_path: Path
) -> None:
    with RunningService(tmp_path) as service:
        service.integrator()
    kept = tmp_path / "fhirpub.webhook-keys"
    kept.rename(tmp_path / "elsewhere")
    if keys:
        kept.write_text(keys)

    with pytest.raises(ConfigurationError) as refusal, RunningService(tmp_path):
        pass

    words = "the salt of 1 tenant and 1 signing key in the store cannot be decrypted: the key"
    assert str(refusal.value).startswith(words)
    assert "put the file that has it back" in str(refusal.value)
    assert kept.exists() == bool(keys)


def test_a_damaged_salt_stops_its_tenant_and_no_other(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        lab, other = service.integrator("Lab"), service.integrator("Other")
    change(
        tmp_path,
        "UPDATE tenant SET salt = (SELECT salt FROM tenant WHERE name = 'Other') "
        "WHERE name = 'Lab'",
    )

    with RunningService(tmp_path) as service:
        lab, other = (same_client(service, one) for one in (lab, other))
        refused = lab.register(register_body("R-1"))

        assert other.register(register_body("R-1")).status == 201
        assert refused.status == 503
        assert "retry-after" not in refused.headers
        assert refused.json["issue"][0]["details"]["coding"][0]["code"] == "tenant-unavailable"
        assert "the operator has to restore its key" in refused.json["issue"][0]["diagnostics"]


def test_a_damaged_signing_key_is_replaced_by_a_rotation(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        lab = service.integrator()
    change(tmp_path, "UPDATE signing_key SET private_pem = substr(private_pem, 1, 60)")

    process = ServiceProcess(tmp_path)
    process.command("keys", "rotate")
    with RunningService(tmp_path) as service:
        assert same_client(service, lab).register(register_body("R-1")).status == 201


def test_a_key_that_is_put_into_the_file_is_used_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fhirpub.app.secret_checks._RELOAD_SECONDS", 0.05)
    with RunningService(tmp_path) as service:
        lab = service.integrator()
        kept = tmp_path / "fhirpub.webhook-keys"
        old = kept.read_text()
        cipher = service.services.store.cipher

        kept.write_text("half a li")
        kept.write_text(f"{base64.b64encode(NEW).decode()}\n{old}")
        assert wait_until(lambda: cipher.keys[0] == NEW)
        assert lab.register(register_body("R-1")).status == 201
        assert service.integrator("Later").register(register_body("R-1")).status == 201
    under_new = SecretCipher([NEW])
    states = [
        under_new.state(salt, owner=tenant, purpose="salt")
        for tenant, salt in rows(tmp_path, "SELECT id, salt FROM tenant ORDER BY created")
    ]
    assert states == ["missing", "first"]


def test_a_key_from_the_environment_of_an_earlier_release_still_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FHIRPUB_WEBHOOK_KEYS", base64.b64encode(NEW).decode())

    with RunningService(tmp_path) as service:
        service.integrator()
        assert service.services.store.cipher.keys == (NEW,)
    assert not (tmp_path / "fhirpub.webhook-keys").exists()


def test_a_database_without_a_key_keeps_them_in_clear(tmp_path: Path, mongodb_url: str) -> None:
    with RunningService(tmp_path, store_url=mongodb_url) as service:
        lab = service.integrator()
        (secret,) = [
            one
            for one in service.call(service.services.store.stored_secrets())
            if one.purpose == "salt"
        ]
        assert secret.value == lab.tenant.salt


def test_the_key_is_replaced_while_two_workers_serve(tmp_path: Path) -> None:
    kept = tmp_path / "fhirpub.webhook-keys"
    with ServiceProcess(tmp_path, workers=2, module=QUICK) as process:
        lab = process.integrator()
        old = kept.read_text()
        new = process.command("secrets", "new-key")["line"]
        with publishing(lab) as answers:
            kept.write_text(f"{new}\n{old}")
            assert wait_until(lambda: read_again(process) == 2, 60)
            resealed = process.command("secrets", "reseal")
            kept.write_text(new)
            assert wait_until(lambda: read_again(process) == 4, 60)
            again = replace(lab)
            again.log_in()
        repeated = again.register(register_body("R-0"))
        log = process.errors.read_text()

    assert (resealed["salts"], resealed["signing_keys"]) == (1, 1)
    assert {answer.status for answer in answers} == {201}
    assert repeated.headers["location"] == answers[0].headers["location"]
    assert not [key for key in (old.strip(), new) if key in log]
    with ServiceProcess(tmp_path) as process:
        same_client(process, lab)


@contextlib.contextmanager
def publishing(lab: Integrator) -> Iterator[list[Answer]]:
    """Register reports until the block ends; yield the responses."""
    answers: list[Answer] = []
    stop = threading.Event()

    def publish() -> None:
        while not stop.wait(0.02):
            answers.append(lab.register(register_body(f"R-{len(answers)}")))

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield answers
    finally:
        stop.set()
        thread.join()


def read_again(process: ServiceProcess) -> int:
    return process.errors.read_text().count("keys of the store's secrets read again")
