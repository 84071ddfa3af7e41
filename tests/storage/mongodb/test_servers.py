"""Servers as operators run them: with users, with TLS, and with settings that may lose reports.

The program's messages are compared with docs/operators.md, where operators look them up.
"""

from __future__ import annotations

import ipaddress
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pymongo import MongoClient

from fhirpub.errors import ConfigurationError
from fhirpub.storage.mongodb import store as mongodb
from fhirpub.storage.mongodb.store import from_url
from fhirpub.storage.upgrades import versions as upgrades
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.store_contract import new_id
from tests.bodies import register_body
from tests.mongod.server import HOST, SET_NAME, Mongod, eventually
from tests.rounds import ONLY_FULL

GUIDE = (Path(__file__).parents[3] / "docs" / "operators.md").read_text(encoding="utf-8")
ROLES = re.findall(r'\{ role: "(\w+)", db: "(\w+)" \}', GUIDE)
WORD = "secret-word"
_TABLE = GUIDE.partition("### What is refused at the start")[2].partition("\n### ")[0]
REFUSED = [item.split("…") for item in re.findall(r"^\| `(.+?)` \|", _TABLE, re.MULTILINE)]
"""The sentences of the guide's table, split at the parts that vary."""


def is_in_the_guide(message: str) -> bool:
    return any(all(piece.strip() in message for piece in pieces) for pieces in REFUSED)


def initiate(member: Mongod, *others: Mongod, **more: Any) -> None:
    """Initiate a set in which the others are arbiters."""
    members = [{"_id": 0, "host": member.address}]
    settings = {"electionTimeoutMillis": 1000, "heartbeatIntervalMillis": 200}
    members += [
        {"_id": number, "host": other.address, "arbiterOnly": True}
        for number, other in enumerate(others, 1)
    ]
    member.command(
        "replSetInitiate", {"_id": SET_NAME, "members": members, "settings": settings, **more}
    )
    eventually(lambda: member.hello()["isWritablePrimary"] or None)


@contextmanager
def running(*members: Mongod) -> Iterator[None]:
    """Start members, and kill them in the end."""
    with ExitStack() as stack:
        for member in members:
            member.start()
            stack.callback(member.kill)
        yield


class Authority:
    """Signs certificates."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / f"authority-{new_id()}.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name.from_rfc4514_string("CN=Authority of a test")
        made = self._certificate(self._name, self._key.public_key())
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.file.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))

    def server(self, file: Path) -> Path:
        """Write a certificate for this machine, with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name.from_rfc4514_string("CN=Server of a test")
        address = x509.IPAddress(ipaddress.ip_address(HOST))
        made = self._certificate(name, key.public_key()).add_extension(
            x509.SubjectAlternativeName([address]), critical=False
        )
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        file.write_bytes(private + _pem(made.sign(self._key, hashes.SHA256())))
        return file

    def _certificate(
        self, name: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
            .not_valid_after(datetime(2049, 1, 1, tzinfo=UTC))
        )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def guarded(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[MongoClient[dict[str, Any]]]:
    """A set of one that requires passwords and supports TLS: its root user."""
    folder = tmp_path_factory.mktemp("guarded")
    key = folder / "key"
    key.write_text("a key of no secrecy")
    key.chmod(0o600)
    certificate = str(authority.server(folder / "server.pem"))
    member = Mongod(
        folder, "--keyFile", str(key), "--tlsMode", "preferTLS",
        "--tlsCertificateKeyFile", certificate, "--tlsCAFile", str(authority.file),
        "--tlsAllowConnectionsWithoutCertificates",
    )  # fmt: skip
    with running(member):
        initiate(member)
        member.command("createUser", "root", pwd=WORD, roles=["root"])
        with MongoClient[dict[str, Any]](
            member.address, replicaSet=SET_NAME, username="root", password=WORD
        ) as root:
            yield root


def url_for(root: MongoClient[dict[str, Any]], roles: list[tuple[str, str]]) -> str:
    """Create a database and a user, with the roles that the guide gives for `fhirpub`."""
    name = f"t{new_id()}"
    given = [{"role": role, "db": name if db == "fhirpub" else db} for role, db in roles]
    root.admin.command("createUser", name, pwd=WORD, roles=given)
    ((host, port),) = root.nodes
    return f"mongodb://{name}:{WORD}@{host}:{port}/{name}?replicaSet=rs0&authSource=admin"


def check(url: str) -> tuple[int, Any, str]:
    """Return the exit status, the findings and the standard error of ``fhirpub check``."""
    settings = {"FHIRPUB_STORAGE__URL": url, "FHIRPUB_STORAGE__DEADLINE_SECONDS": "2"}
    done = subprocess.run(
        [sys.executable, "-m", "fhirpub", "check", "--json"],
        env={**settings, "PYTHONPATH": ":".join(name for name in sys.path if name)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert WORD not in done.stdout + done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def store_problem(findings: Any) -> str:
    (text,) = [finding["text"] for finding in findings if finding["level"] == "error"]
    assert isinstance(text, str)
    return text


# Users


def test_the_guides_user_is_enough_for_all_that_the_service_does(
    guarded: MongoClient[dict[str, Any]], tmp_path: Path
) -> None:
    url = url_for(guarded, ROLES)

    with ServiceProcess(tmp_path, settings={"storage": {"url": url}}) as service:
        lab = service.integrator()
        registered = lab.register(register_body("A-1"))
        found = lab.get("/fhir/r4/DiagnosticReport")
        ready = service.request("GET", "/health/ready")
        saved = service.command("transfer", "--to", f"sqlite:///{tmp_path}/saved.db")

    assert (registered.status, found.json["total"], ready.status) == (201, 1, 200)
    assert saved["copied"] == 1
    assert "warning" not in service.errors.read_text()


def test_without_the_role_to_look_at_the_set_the_service_runs_and_warns(
    guarded: MongoClient[dict[str, Any]],
) -> None:
    status, _, errors = check(url_for(guarded, ROLES[:1]))

    assert status == 0
    assert "the replica set's configuration cannot be checked: the role is missing" in errors


@pytest.mark.parametrize(
    "roles",
    [
        pytest.param([], marks=ONLY_FULL),
        [("read", "fhirpub")],
        pytest.param(ROLES[1:], marks=ONLY_FULL),
    ],
)
def test_a_user_with_too_little_is_refused_in_the_guides_words(
    guarded: MongoClient[dict[str, Any]], roles: list[tuple[str, str]]
) -> None:
    status, findings, _ = check(url_for(guarded, roles))

    assert status == 1
    assert store_problem(findings).startswith("[storage] url: the server refuses this user, or")
    assert "`the server refuses this user, or allows it too little`" in GUIDE


def test_a_wrong_password_is_refused(guarded: MongoClient[dict[str, Any]]) -> None:
    status, findings, _ = check(url_for(guarded, ROLES).replace(f":{WORD}@", ":wrong@"))

    assert status == 1
    assert "the server refuses this user" in store_problem(findings)


# TLS


def test_a_server_of_a_known_authority_is_spoken_to_over_tls(
    guarded: MongoClient[dict[str, Any]], authority: Authority
) -> None:
    url = f"{url_for(guarded, ROLES)}&tls=true&tlsCAFile={authority.file}"

    status, _, errors = check(url)

    assert (status, errors) == (0, "")


@pytest.mark.parametrize("which", [pytest.param("another", marks=ONLY_FULL), "the machine's"])
def test_a_server_of_an_unknown_authority_is_refused_in_the_guides_words(
    guarded: MongoClient[dict[str, Any]], tmp_path: Path, which: str
) -> None:
    known = f"&tlsCAFile={Authority(tmp_path).file}" if which == "another" else ""
    # The driver tries again until then; without it, for the ten seconds of a start.
    once = "&serverSelectionTimeoutMS=2000"

    status, findings, _ = check(f"{url_for(guarded, ROLES)}&tls=true{known}{once}")

    assert status == 1
    assert "no server could be spoken to over TLS; its certificate" in store_problem(findings)
    assert "`no server could be spoken to over TLS`" in GUIDE


# Settings that may lose reports


async def test_a_set_with_an_arbiter_is_refused_until_it_has_a_default_write_concern(
    tmp_path: Path,
) -> None:
    members = [Mongod(tmp_path / name) for name in ("member", "arbiter")]
    url = f"mongodb://{members[0].address}/x?replicaSet={SET_NAME}"
    with running(*members):
        initiate(*members)

        with pytest.raises(ConfigurationError, match="an arbiter and no default") as refused:
            await from_url(url, deadline_seconds=60, production=True).start()
        members[0].command("setDefaultRWConcern", defaultWriteConcern={"w": "majority"})
        store = from_url(url, deadline_seconds=60, production=True)
        await store.start()
        await store.check()
        await store.stop()

    assert is_in_the_guide(str(refused.value))


async def test_a_set_whose_majority_acknowledges_without_journals_is_refused(
    tmp_path: Path,
) -> None:
    member = Mongod(tmp_path)
    url = f"mongodb://{member.address}/x?replicaSet={SET_NAME}"
    with running(member):
        initiate(member, writeConcernMajorityJournalDefault=False)

        with pytest.raises(ConfigurationError, match="JournalDefault = false") as refused:
            await from_url(url, deadline_seconds=60, production=True).start()

    assert is_in_the_guide(str(refused.value))


@pytest.mark.parametrize("sentence", REFUSED, ids="…".join)
def test_what_the_guide_says_is_refused_is_in_the_sources(sentence: list[str]) -> None:
    sources = Path(mongodb.__file__).parent, Path(upgrades.__file__).parent
    text = " ".join(path.read_text() for folder in sources for path in sorted(folder.glob("*.py")))
    joined = re.sub(r'"\s+f?"', "", text)

    assert all(piece.strip() in joined for piece in sentence)
