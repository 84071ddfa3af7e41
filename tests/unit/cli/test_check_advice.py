"""The warnings of ``fhirpub check``: what works, but is unsafe or likely a mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fhirpub.cli.check_advice import Finding, advise, advise_on_files
from fhirpub.config.settings import (
    AuthConfig,
    Config,
    FhirConfig,
    LimitsConfig,
    ServerConfig,
    StorageConfig,
)

ACCESS = "mongodb://fhirpub:secret@"


def production(
    url: str = "sqlite:///f.db", *, audience: str = "https://fhir.lab/fhir", **server: str
) -> Config:
    """Return settings for production without any other reason for a warning."""
    return Config(
        server=ServerConfig(**{"base_url": "https://fhir.lab"} | server),  # type: ignore[arg-type]
        auth=AuthConfig(environment="production", audience=audience, enforce_scopes=True),
        storage=StorageConfig(url=url),
        fhir=FhirConfig(hash_check="strict"),
        limits=LimitsConfig(connections=64),
    )


def warnings_of(config: Config) -> list[str]:
    return [finding.text for finding in advise(config) if finding.level == "warning"]


def of_store(config: Config) -> list[Finding]:
    return [finding for finding in advise(config) if finding.subject == "store"]


def test_a_production_service_with_its_own_names_has_no_warning() -> None:
    assert warnings_of(production()) == []


def test_scopes_that_are_not_enforced_in_production_are_a_warning() -> None:
    config = production()
    config = replace(config, auth=replace(config.auth, enforce_scopes=False))

    (warning,) = warnings_of(config)

    assert warning.startswith("[auth] enforce_scopes is not set: every client may do everything")


@pytest.mark.parametrize("limit", [1024, 4351])
def test_fewer_files_than_connections_need_are_a_warning_with_the_number_to_set(
    tmp_path: Path, environment: dict[str, str], limit: int
) -> None:
    findings = checked_under(limit, tmp_path, environment)

    (warning,) = [finding["text"] for finding in findings if finding["level"] == "warning"]
    assert f"the limit of open files ({limit}) allows {limit - 256}:" in warning
    assert "LimitNOFILE=4352" in warning


def test_as_many_files_as_connections_need_are_no_warning(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    findings = checked_under(4352, tmp_path, environment)

    assert {finding["level"] for finding in findings} == {"ok"}


def checked_under(limit: int, folder: Path, environment: dict[str, str]) -> list[Any]:
    """Return the findings of a check that may open so many files; warnings leave status 0."""
    script = f'ulimit -n {limit}; exec "$0" -m fhirpub check --json'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=True,
    )
    findings: list[Any] = json.loads(done.stdout)
    return findings


@pytest.mark.parametrize("name", ["fhirpub.db", "fhirpub.db-wal", "fhirpub.db-shm", ""])
@pytest.mark.parametrize("mode", [0o740, 0o720, 0o704, 0o702])
def test_a_file_or_folder_of_the_store_that_others_can_read_or_write_is_a_warning(
    tmp_path: Path, name: str, mode: int
) -> None:
    config = stored_in(tmp_path)
    path = tmp_path / "data" / name
    path.chmod(mode)

    (warning,) = advise_on_files(config)

    assert (warning.subject, warning.level) == ("store", "warning")
    assert warning.text.startswith(f"{path} can be read or changed by other users (mode {mode:o})")
    assert warning.text.endswith(f": chmod go-rwx {path}")


def test_files_that_only_the_user_of_the_service_can_read_are_no_warning(tmp_path: Path) -> None:
    config = stored_in(tmp_path)
    (tmp_path / "data").chmod(0o711)

    assert list(advise_on_files(config)) == []


def test_a_store_file_with_a_lax_mode_is_a_warning_of_the_command(
    run: Any, tmp_path: Path
) -> None:
    run("check")
    (tmp_path / "fhirpub-data" / "fhirpub.db").chmod(0o644)

    done = run("check")

    path = "fhirpub-data/fhirpub.db"
    assert done.returncode == 0
    assert f"warning  store          {path} can be read or changed by other" in done.stdout


def stored_in(folder: Path) -> Config:
    """Return the settings of a store whose three files only their user can read."""
    (folder / "data").mkdir(mode=0o700)
    for name in ("fhirpub.db", "fhirpub.db-wal", "fhirpub.db-shm"):
        (folder / "data" / name).touch(mode=0o600)
    return production(f"sqlite:///{folder}/data/fhirpub.db")


@pytest.mark.parametrize(
    "audience",
    [AuthConfig().audience, "https://fhir.example.org/fhir", "https://example.com/"],
)
def test_an_audience_that_was_left_as_it_came_is_a_warning_in_production(audience: str) -> None:
    (warning,) = warnings_of(production(audience=audience))

    assert warning.startswith(f"[auth] audience is still the default or an example: {audience}: ")


def test_a_default_audience_is_no_warning_in_a_sandbox() -> None:
    assert warnings_of(Config(limits=LimitsConfig(connections=64))) == []


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://fhirpub:secret@a.lab,b.lab/fhirpub?replicaSet=rs0",
        "mongodb://fhirpub:secret@localhost,b.lab/fhirpub",
        "mongodb://fhirpub:secret@localhost.lab/fhirpub",
        "mongodb://fhirpub:secret@10.1.2.3:27017/fhirpub?tls=false",
        "mongodb+srv://fhirpub:secret@set.lab/fhirpub?TLS=False",
        "mongodb://fhirpub:secret@[fd00::1]:27017/fhirpub?ssl=false",
    ],
)
def test_a_mongodb_url_without_tls_is_a_warning_in_production(url: str) -> None:
    (finding,) = of_store(production(url))

    assert finding.level == "warning"
    assert finding.text.startswith("[storage] url: no TLS: ")
    assert finding.text.endswith("add tls=true")


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://fhirpub:secret@a.lab,b.lab/fhirpub?replicaSet=rs0&tls=true",
        "mongodb://fhirpub:secret@a.lab/fhirpub?SSL=True",
        "mongodb+srv://fhirpub:secret@set.lab/fhirpub",
        "mongodb://CN=fhirpub@a.lab/fhirpub?tls=true&authMechanism=MONGODB-X509",
        "mongodb://a.lab/fhirpub?tls=true&authMechanism=MONGODB-X509",
    ],
)
def test_a_mongodb_url_with_tls_and_credentials_is_no_warning(url: str) -> None:
    assert of_store(production(url)) == []


@pytest.mark.parametrize(
    "hosts", ["localhost", "127.0.0.1:27017,127.0.0.2", "[::1]:27017", "%2Frun%2Fmongodb.sock"]
)
def test_a_mongodb_url_without_tls_to_this_machine_is_no_warning_but_is_mentioned(
    hosts: str,
) -> None:
    (finding,) = of_store(production(f"{ACCESS}{hosts}/fhirpub"))

    assert finding.level == "ok"
    assert "no TLS, which only loopback addresses may do without" in finding.text


@pytest.mark.parametrize("user", ["", "fhirpub@"])
def test_a_mongodb_url_without_a_password_is_a_warning_even_on_this_machine(user: str) -> None:
    findings = of_store(production(f"mongodb://{user}localhost/fhirpub"))

    (warning,) = [finding.text for finding in findings if finding.level == "warning"]
    assert warning.startswith("[storage] url: no password: ")
    assert "create a user for the service" in warning


@pytest.mark.parametrize(
    "option", ["tlsInsecure", "tlsAllowInvalidCertificates", "tlsAllowInvalidHostnames"]
)
def test_tls_that_accepts_any_server_is_a_warning(option: str) -> None:
    (finding,) = of_store(production(f"{ACCESS}a.lab/fhirpub?tls=true&{option}=true"))

    assert finding.level == "warning"
    assert option.lower() in finding.text


def test_a_mongodb_url_without_tls_and_password_is_no_warning_in_a_sandbox() -> None:
    config = Config(
        storage=StorageConfig(url="mongodb://a.lab/fhirpub"), limits=LimitsConfig(connections=64)
    )

    assert list(advise(config)) == []


def test_no_warning_shows_anything_of_the_url() -> None:
    found = of_store(production("mongodb://fhirpub:secret@a.lab/fhirpub?tlsInsecure=true"))

    assert found
    assert not {"secret", "a.lab"} & set(" ".join(finding.text for finding in found).split())
