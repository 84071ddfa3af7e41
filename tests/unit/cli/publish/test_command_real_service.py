"""``fhirpub publish`` with a real service, behind a real TLS listener where that matters."""

from __future__ import annotations

import datetime as dt
import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fhirpub.config.settings import Config, FhirConfig
from fhirpub.runtime.clock import now_ms
from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import register_body
from tests.erasing import Operator
from tests.panels import panel, result, specimen

FILES = {
    "first.json": register_body("shell-1"),
    "other.json": register_body("shell-1", conclusion="Malignant"),
    "bad.json": register_body("shell-2", category=None),
}


KEY_USAGE = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


@pytest.fixture
def files(tmp_path: Path) -> None:
    for name, body in FILES.items():
        (tmp_path / name).write_text(json.dumps(body))


def options(lab: Integrator, base: str = "") -> dict[str, Any]:
    """The words and variables that every run has."""
    audience = lab.service.config.auth.audience
    return {
        "words": ("--url", base or lab.service.base_url, "--audience", audience),
        "variables": {
            "FHIRPUB_CLIENT_ID": lab.client_id,
            "FHIRPUB_CLIENT_SECRET": lab.client_secret,
        },
    }


def publish(run: Any, lab: Integrator, *words: str, base: str = "") -> Any:
    known = options(lab, base)
    return run("publish", *words, *known["words"], **known["variables"])


def test_a_table_says_what_became_of_each_file(run: Any, lab: Integrator, files: None) -> None:
    done = publish(run, lab, "first.json", "first.json", "other.json", "bad.json")

    rows = [re.split(r"  +", line) for line in done.stdout.splitlines()[-4:]]
    identifier = rows[0][2]
    address = f"{lab.service.base_url}/fhir/r4/DiagnosticReport/{identifier}"
    assert done.returncode == 3
    assert rows == [
        ["first.json", "created", identifier, "1", address],
        ["first.json", "replayed", identifier, "1", address],
        ["other.json", "other content", identifier, "1", address],
        ["bad.json", "refused", "-", "-", "-"],
    ]
    assert lab.get(address.removeprefix(lab.service.base_url)).status == 200


def test_a_refusal_has_severity_place_text_and_code(
    run: Any, lab: Integrator, files: None
) -> None:
    done = publish(run, lab, "bad.json")

    place = "Parameters.parameter[2].resource.category"
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Error: bad.json: refused: 400 Bad Request",
        f"  error        {place}: is required  (element-required)",
    ]


def test_nothing_but_the_result_is_printed(run: Any, lab: Integrator, files: None) -> None:
    done = publish(run, lab, "first.json")

    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 5


def test_results_are_published_with_their_report_and_counted(
    run: Any, lab: Integrator, tmp_path: Path
) -> None:
    body = panel("R-9", result("hb"), result("wbc"), specimen())
    body["parameter"].reverse()
    (tmp_path / "panel.json").write_text(json.dumps(body))

    done = publish(run, lab, "panel.json")
    again = json.loads(publish(run, lab, "panel.json", "--json").stdout)

    assert done.stdout.partition("\n")[0].endswith(" version 1, with 1 Specimen, 2 Observations")
    assert [entry["name"] for entry in again["entries"]] == ["specimen", *["observation"] * 2]
    assert lab.get(f"/fhir/r4/{again['entries'][1]['reference']}").status == 200


def test_other_content_that_the_service_refuses_has_the_same_status(
    run: Any, tmp_path: Path, files: None
) -> None:
    config = Config(fhir=FhirConfig(other_content="conflict"))
    with RunningService(tmp_path / "conflict", config=config) as service:
        lab = service.integrator()
        publish(run, lab, "first.json")

        done = publish(run, lab, "other.json")

    assert done.returncode == 3
    assert "has this identifier with OTHER content: what you sent was not stored" in done.stderr


ERASED = "which had this identifier, was erased: it cannot be registered again"


def test_what_was_erased_is_refused_without_advice_to_correct_it(
    run: Any, service: RunningService, lab: Integrator, files: None
) -> None:
    erase_the_first(run, service, lab)

    done = publish(run, lab, "first.json")

    assert done.returncode == 1
    heading, issue = done.stderr.splitlines()
    assert heading == "Error: first.json: refused: 409 Conflict"
    assert issue.endswith(f"{ERASED}  (identifier-erased)")


def test_a_load_counts_what_was_erased_as_refused(
    run: Any, service: RunningService, lab: Integrator, files: None
) -> None:
    erase_the_first(run, service, lab)

    done = publish(run, lab, ".")

    assert done.returncode == 1
    assert done.stdout.partition("\n")[0].endswith("/s): 3 refused")


def erase_the_first(run: Any, service: RunningService, lab: Integrator) -> None:
    """Publish the first file, and erase what it published."""
    published = json.loads(publish(run, lab, "first.json", "--json").stdout)
    Operator(service, lab).erase(f"DiagnosticReport/{published['id']}")


def test_a_wrong_secret_is_reported_as_such(run: Any, lab: Integrator, files: None) -> None:
    done = run(
        *("publish", "first.json", "--url", lab.service.base_url),
        FHIRPUB_CLIENT_ID=lab.client_id,
        FHIRPUB_CLIENT_SECRET="wrong",
    )

    assert done.returncode == 1
    assert "no token: 401 invalid_client" in done.stderr
    assert "Are FHIRPUB_CLIENT_ID and FHIRPUB_CLIENT_SECRET" in done.stderr


# Behind TLS.


@dataclass(frozen=True)
class Listener:
    port: int
    certificate: Path


def write_certificate(folder: Path, *, days: int) -> ssl.SSLContext:
    """Write a self-signed certificate of localhost, and return a context that presents it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.fromtimestamp(now_ms() / 1000, dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=9))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(KEY_USAGE, critical=True)  # newer Pythons require these of an authority
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(form))
    private = key.private_bytes(
        form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


def pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        target.close()


def forward(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    """Accept connections with TLS, and forward what they carry to a port without it."""
    while True:
        try:
            accepted, _ = listener.accept()
        except OSError:
            return
        try:
            outside = context.wrap_socket(accepted, server_side=True)
        except OSError:
            accepted.close()
            continue
        inside = socket.create_connection(("127.0.0.1", port))
        for source, target in ((outside, inside), (inside, outside)):
            threading.Thread(target=pump, args=(source, target), daemon=True).start()


@pytest.fixture(params=[9])
def listener(
    request: pytest.FixtureRequest, service: RunningService, tmp_path: Path
) -> Iterator[Listener]:
    """A TLS listener in front of the service; the parameter is its certificate's days to live."""
    context = write_certificate(tmp_path, days=request.param)
    port = int(service.base_url.rpartition(":")[2])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=forward, args=(listening, context, port), daemon=True)
        thread.start()
        yield Listener(listening.getsockname()[1], tmp_path / "certificate.pem")
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_a_certificate_that_is_not_trusted_is_reported_once(
    run: Any, lab: Integrator, listener: Listener, files: None
) -> None:
    base = f"https://localhost:{listener.port}"

    done = publish(run, lab, "first.json", base=base)

    first, second = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert first == f"Error: the certificate of {base} is not trusted: self-signed certificate"
    assert "--cacert FILE.pem" in second


def test_a_certificate_that_is_named_is_trusted(
    run: Any, lab: Integrator, listener: Listener, files: None
) -> None:
    base, certificate = f"https://localhost:{listener.port}", str(listener.certificate)

    done = publish(run, lab, "first.json", "--cacert", certificate, base=base)

    assert done.returncode == 0, done.stderr


def test_a_certificate_of_another_name_is_refused(
    run: Any, lab: Integrator, listener: Listener, files: None
) -> None:
    base, certificate = f"https://127.0.0.1:{listener.port}", str(listener.certificate)

    done = publish(run, lab, "first.json", "--cacert", certificate, base=base)

    assert done.returncode == 1
    assert "Put the name into --url that the certificate is for." in done.stderr


@pytest.mark.parametrize("listener", [-1], indirect=True)
def test_a_certificate_that_has_expired_is_refused(
    run: Any, lab: Integrator, listener: Listener, files: None
) -> None:
    base, certificate = f"https://localhost:{listener.port}", str(listener.certificate)

    done = publish(run, lab, "first.json", "--cacert", certificate, base=base)

    assert done.returncode == 1
    assert "certificate has expired\nThe operator of the service has to renew it." in done.stderr


def test_a_host_that_does_not_exist_is_reported_at_once(
    run: Any, lab: Integrator, files: None
) -> None:
    done = publish(run, lab, "first.json", base="https://fhirpub.invalid")

    assert done.returncode == 1
    assert "there is no host fhirpub.invalid" in done.stderr
