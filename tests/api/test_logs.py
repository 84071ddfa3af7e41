from __future__ import annotations

import base64
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from urllib.request import urlopen

import pytest

from fhirpub.fhir.xml.writer import write_xml
from fhirpub.runtime.log_sampling import LINES_PER_MINUTE
from fhirpub.testing.process import ServiceProcess
from fhirpub.testing.receiver import Receiver, Reply
from fhirpub.testing.service import Answer, Integrator
from tests import raw
from tests.bodies import document, organization, parameters, patient, report
from tests.ports import free_port

BASE = "/fhir/r4/DiagnosticReport"
REGISTER = f"{BASE}/$register"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
HEADERS = {"Authorization", "Content-Type"}
UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"

CANARY = "Kanarienvogel"
BIRTH = "1931-07-19"
SECRET = "Verraeterisch-0123456789-abcdefghijkl"
NASTY = "a\r\nb\x1b[31mc\u2028d\u2029e\x85f\u202eg"


def canary(place: str) -> str:
    return f"{CANARY}-{place}"


def canary_body() -> dict[str, Any]:
    """Return a registration in which every free text, number and date is personal."""
    coding = {
        "system": f"https://{CANARY}.example/codes",
        "code": "K",
        "display": canary("coding"),
    }
    text = f"<div xmlns='http://www.w3.org/1999/xhtml'>{canary('narrative')}</div>"
    attachment = document(
        f"%PDF-1.4 {canary('document')}".encode(), title=canary("title"), language="es"
    )
    return parameters(
        patient=patient(
            id=canary("patient"),
            name=[
                {"text": canary("name"), "family": canary("family"), "given": [canary("given")]}
            ],
            identifier=[{"system": f"urn:{CANARY}", "value": canary("passport")}],
            telecom=[{"system": "email", "value": f"{CANARY}@example.org", "use": "home"}],
            birthDate=BIRTH,
            address=[{"line": [canary("street")], "city": canary("city")}],
            contact=[{"name": {"text": canary("mother")}}],
        ),
        organization=organization(
            id=canary("organization"),
            name=canary("laboratory"),
            identifier=[{"system": f"urn:{CANARY}", "value": canary("registry")}],
        ),
        diagnosticReport=report(
            canary("report"),
            system=f"https://{CANARY}.example/reports",
            text={"status": "generated", "div": text},
            category=[{"coding": [coding], "text": canary("category")}],
            code={"text": canary("code"), "coding": [coding]},
            subject={"reference": f"Patient/{canary('patient')}", "display": canary("subject")},
            performer=[{"reference": f"Organization/{canary('organization')}"}],
            conclusion=canary("conclusion"),
            presentedForm=[attachment],
            extension=[{"url": f"urn:{CANARY}", "valueString": canary("extension")}],
        ),
    )


def changed(**report_changes: Any) -> dict[str, Any]:
    body = canary_body()
    body["parameter"][2]["resource"] |= report_changes
    return body


@dataclass(slots=True)
class Written:
    """The requests, the responses, and all that the service logged for them."""

    answers: list[tuple[str, Answer]] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    metrics: str = ""
    output: str = ""

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]


def written_by(service: ServiceProcess) -> str:
    """Stop the service; return its standard output and error."""
    stdout = service._running.stdout
    service.terminate()
    rest = stdout.read().decode() if stdout else ""
    service.wait()
    return rest + service.errors.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    settings: dict[str, Mapping[str, Any]] = {
        "metrics": {"port": free_port()},
        "logs": {"level": "debug", "format": "json"},
        "limits": {"request_bytes": 100_000, "attachment_bytes": 10_000},
        "fhir": {"hash_check": "strict"},
    }
    everything = Written()
    with ServiceProcess(tmp_path_factory.mktemp("logs"), settings=settings) as service:
        lab = service.integrator("Lab")
        everything.secrets = [SECRET, lab.client_secret, lab.token, lab.token.rpartition(".")[2]]
        everything.secrets += [
            base64.b64encode(f"{lab.client_id}:{name}".encode()).decode().strip("=")
            for name in (SECRET, lab.client_secret)
        ]
        everything.answers = list(_conversation(service, lab))
        everything.metrics = _metrics_of(service)
        everything.ids = [lab.tenant.id, lab.client_id, _only_path(lab).rpartition("/")[2]]
        everything.output = written_by(service)
    return everything


def _metrics_of(service: ServiceProcess) -> str:
    with urlopen(f"http://127.0.0.1:{service.config.metrics.port}/metrics") as page:
        text: str = page.read().decode()
    return text


def _conversation(service: ServiceProcess, lab: Integrator) -> Iterator[tuple[str, Answer]]:
    yield "201 registered", lab.register(canary_body(), If_None_Exist=f"identifier={canary('x')}")
    yield "201 again", lab.register(canary_body(), Prefer=f"return=minimal; {canary('prefer')}")
    other = canary_body()
    other["parameter"][0]["resource"]["birthDate"] = "1931-07-20"
    yield "201 other content", lab.register(other)
    path = _only_path(lab)
    yield from _refused_registrations(service, lab)
    yield from _updates(lab, path)
    yield from _questions(lab, path)
    yield from _tokens(service, lab)


def _only_path(lab: Integrator) -> str:
    entry = lab.get(BASE).json["entry"][0]["resource"]
    return f"{BASE}/{entry['id']}"


def _refused_registrations(
    service: ServiceProcess, lab: Integrator
) -> Iterator[tuple[str, Answer]]:
    whole = json.dumps(canary_body()).encode()
    yield "401 no token", service.request("POST", REGISTER, whole)
    yield (
        "401 bad token",
        lab.request("POST", REGISTER, whole, {"Authorization": f"Bearer {SECRET}"}),
    )
    yield "406 format", lab.request("POST", REGISTER, whole, {"Accept": canary("accept")})
    yield "415 type", lab.request("POST", REGISTER, whole, {"Content-Type": canary("type")})
    yield "413 body", lab.register(changed(conclusion=CANARY * 10_000))
    large = document(canary("large").encode() * 600)
    yield "413 document", lab.register(changed(presentedForm=[large]))
    yield "400 cut", lab.register(whole[:-9])
    yield "400 twice", lab.register(whole.replace(b"{", b'{"resourceType":"Parameters",', 1))
    yield "400 encoding", lab.register(whole.replace(b"Kanarien", b"Kan\xe4rien"))
    yield "400 control", lab.register(changed(conclusion=f"{CANARY}\0"))
    yield from _refused_xml(lab)
    yield "400 unknown", lab.register(changed(**{canary("name"): canary("value")}))
    yield "400 type", lab.register(changed(conclusion=[canary("list")]))
    yield "400 status", lab.register(changed(status=canary("status")))
    yield "400 date", lab.register(changed(issued=canary("issued")))
    yield "400 birth", lab.register(_born(f"{BIRTH}T00:00:00Z"))
    yield "400 narrative", lab.register(_narrated(f"<script>{CANARY}</script>"))
    yield "400 data", lab.register(changed(presentedForm=[document() | {"data": canary("*")}]))
    yield "400 identifier", lab.register(changed(identifier=[{"system": CANARY, "value": CANARY}]))
    yield "400 entry", lab.register(parameters(patient=patient(id=canary("p"))))
    yield "422 reference", lab.register(changed(subject={"reference": f"Patient/{canary('y')}"}))
    yield "422 rules", lab.register(changed(implicitRules=f"urn:{CANARY}"))
    yield "422 hash", lab.register(changed(presentedForm=[document(hash="aa" * 32)]))


def _refused_xml(lab: Integrator) -> Iterator[tuple[str, Answer]]:
    whole = write_xml(canary_body())
    for name, body in {
        "cut": whole[:-9],
        "entity": whole.replace(CANARY.encode(), f"&{CANARY};".encode()),
        "DTD": f"<!DOCTYPE {CANARY}>".encode() + whole,
        "element": whole.replace(b"<status ", f"<{canary('element')}/><status ".encode()),
        "value": whole.replace(b'<birthDate value="', b'<birthDate value="x'),
        "order": re.sub(rb"(<identifier>.*?</identifier>)(.*?)(</Patient>)", rb"\2\1\3", whole),
    }.items():
        headers = {"Content-Type": "application/fhir+xml", "Accept": "application/fhir+xml"}
        yield f"400 {name}", lab.request("POST", REGISTER, body, headers)


def _born(date: str) -> dict[str, Any]:
    body = canary_body()
    body["parameter"][0]["resource"]["birthDate"] = date
    return body


def _narrated(content: str) -> dict[str, Any]:
    text = f"<div xmlns='http://www.w3.org/1999/xhtml'>{content}</div>"
    return changed(text={"status": "generated", "div": text})


def _updates(lab: Integrator, path: str) -> Iterator[tuple[str, Answer]]:
    change = {"resourceType": "DiagnosticReport", "conclusion": canary("later")}
    yield "204 updated", lab.patch(path, change)
    yield "404 updated", lab.patch(f"{BASE}/{UNKNOWN_ID}", change)
    yield "412 updated", lab.patch(path, change, If_Match='W/"99"')
    yield "412 tag", lab.patch(path, change, If_Match="nonsense")
    yield "422 updated", lab.patch(path, {**change, "code": {"text": canary("code")}})
    yield "400 updated", lab.patch(path, {**change, "status": canary("status")})
    yield "415 updated", lab.request("PATCH", path, change, {"Content-Type": canary("type")})


def _questions(lab: Integrator, path: str) -> Iterator[tuple[str, Answer]]:
    system = f"https://{CANARY}.example/reports"
    token = quote(f"{system}|{canary('report')}")
    yield "200 read", lab.get(path)
    yield "200 history", lab.get(f"{path}/_history")
    yield "200 found", lab.get(f"{BASE}?identifier={token}")
    yield "200 form", lab.request("POST", f"{BASE}/_search", f"identifier={token}".encode(), FORM)
    yield "200 not found", lab.get(f"{BASE}?identifier={canary('nobody')}")
    yield "200 unknown", lab.get(f"{BASE}?patient.name={canary('who')}")
    strictly = {"Prefer": "handling=strict"}
    yield "400 unknown", lab.request("GET", f"{BASE}?name={canary('who')}", headers=strictly)
    yield "400 modifier", lab.get(f"{BASE}?identifier:{CANARY}={canary('x')}")
    yield "400 value", lab.get(f"{BASE}?identifier={CANARY}%5C")
    yield "400 count", lab.get(f"{BASE}?_count={canary('count')}")
    yield "406 format", lab.get(f"{BASE}?_format={canary('format')}")
    codes = f"code={','.join([canary('code')] * 1_001)}"
    yield "422 codes", lab.request("POST", f"{BASE}/_search", codes.encode(), FORM)
    yield "200 patients", lab.get(f"/fhir/r4/Patient?name={canary('name')}&token={lab.token}")
    yield "404 route", lab.get(f"/fhir/r4/Organization?name={canary('name')}&token={lab.token}")
    yield "405 method", lab.request("PUT", path, canary_body())
    yield "405 word", lab.request(CANARY, path)


def _tokens(service: ServiceProcess, lab: Integrator) -> Iterator[tuple[str, Answer]]:
    form = {
        "grant_type": "client_credentials",
        "client_id": lab.client_id,
        "client_secret": SECRET,
        "audience": service.config.auth.audience,
    }

    def ask(query: str = "", /, **changes: str) -> Answer:
        headers = FORM | {name: changes.pop(name) for name in set(changes) & HEADERS}
        body = urlencode(form | changes).encode()
        return service.request("POST", f"/oauth/token{query}", body, headers)

    yield "401 secret", ask()
    yield "401 client", ask(client_id=SECRET)
    yield "403 audience", ask(client_secret=lab.client_secret, audience=SECRET)
    yield "400 grant", ask(grant_type=SECRET)
    yield "400 query", ask(f"?client_secret={SECRET}")
    yield "400 type", ask(**{"Content-Type": SECRET})
    yield "400 json", ask(**{"Content-Type": "application/json"})
    basic = base64.b64encode(f"{lab.client_id}:{SECRET}".encode()).decode()
    yield "400 twice", ask(Authorization=f"Basic {basic}")
    for scheme in ("Basic", "Token", "Bearer"):
        headers = {"Authorization": f"{scheme} {basic}"}
        yield f"401 {scheme}", service.request("GET", "/metadata", headers=headers)
    yield "401 address", service.request("GET", f"/metadata?access_token={lab.token}")
    yield "401 cut", lab.request("GET", "/metadata", headers={"Authorization": lab.token})


def test_the_conversation_goes_through_every_stage(written: Written) -> None:
    went = [f"{answer.status} {name.partition(' ')[2]}" for name, answer in written.answers]

    assert went == [name for name, _ in written.answers]
    assert len(went) > 50


def test_every_request_is_logged(written: Written) -> None:
    statuses = [line["status"] for line in written.lines if "status" in line]

    assert len(statuses) >= len(written.answers)
    assert set(statuses) >= {200, 201, 204, 400, 401, 403, 404, 405, 406, 412, 413, 415, 422}


def test_no_line_of_the_log_holds_anything_of_a_patient(written: Written) -> None:
    forbidden = [CANARY, BIRTH, quote(CANARY)]
    forbidden += [base64.b64encode(canary(name).encode()).decode()[:20] for name in ("document",)]
    forbidden += [base64.b64encode(f"%PDF-1.4 {CANARY}".encode()).decode()[:20]]

    for name in forbidden:
        assert name.casefold() not in written.output.casefold()


def test_no_line_of_the_log_holds_a_secret_or_a_token(written: Written) -> None:
    for secret in written.secrets:
        assert len(secret) > 20
        assert secret not in written.output
        assert secret[:20] not in written.output or secret.startswith("eyJ")
    assert "eyJ" not in written.output


def test_no_line_of_the_log_holds_a_secret_of_a_webhook(tmp_path: Path) -> None:
    settings: dict[str, Mapping[str, Any]] = {
        "logs": {"level": "debug", "format": "json"},
        "webhooks": {"allow_networks": ["127.0.0.1/32"]},
    }
    with ServiceProcess(tmp_path, settings=settings) as service, Receiver() as receiver:
        lab = service.integrator("Lab")
        receiver.answer(Reply(status=200, echo=True))
        endpoint = lab.request("POST", "/webhooks/v1/endpoints", {"url": receiver.url}).json
        lab.request("POST", f"/webhooks/v1/endpoints/{endpoint['id']}/verify")
        lab.register(canary_body())
        delivered = receiver.wait(2)[-1]
        output = written_by(service)

    sent = [delivered.headers[name] for name in ("authorization", "webhook-signature")]
    for secret in (*sent, endpoint["signing_secret"], endpoint["bearer_token"]):
        assert secret.rpartition(" ")[2] not in output


def test_no_metric_holds_anything_of_a_patient_a_client_or_a_tenant(written: Written) -> None:
    assert 'fhirpub_registrations_total{outcome="created"' in written.metrics
    for name in (CANARY, BIRTH, quote(CANARY), *written.ids, *written.secrets):
        assert name.casefold() not in written.metrics.casefold()


def test_no_refusal_holds_a_value_of_the_request(written: Written) -> None:
    for name, answer in written.answers:
        if answer.status >= 400:
            for item in (CANARY, BIRTH, *written.secrets):
                assert item.encode() not in answer.body, name


def test_no_fault_happened(written: Written) -> None:
    warnings = {line["event"] for line in written.lines if line["level"] == "warning"}

    assert warnings == {"other content under a registered identifier"}
    assert {line["level"] for line in written.lines} <= {"debug", "info", "warning"}


# One event, one line (CWE-117).


def _nasty_requests(service: ServiceProcess, lab: Integrator) -> int:
    """Send line breaks and terminal codes wherever requests may carry them; return the count."""
    as_latin = NASTY.encode().decode("latin-1")
    printable = re.sub(r"[\r\n]", "", as_latin)
    upper = "".join(name for name in as_latin if name > "\x7f")
    authorization = f"Authorization: Bearer {lab.token}"
    exchanges = [
        raw.request(service, f"GET /nowhere/{upper}", authorization),
        raw.request(service, f"GET {BASE}/{upper}", authorization),
        raw.request(service, f"GET /nowhere/{quote(NASTY)}", authorization),
        raw.request(service, f"GET {BASE}/{quote(NASTY)}", authorization),
        raw.request(service, f"GET /nowhere/{printable}", authorization),
        raw.request(service, f"GET {BASE}/{printable}", authorization),
        raw.request(service, f"GET /nowhere/{as_latin}", authorization),
        raw.request(service, f"GET {BASE}?{quote(NASTY)}={quote(NASTY)}", authorization),
        raw.request(service, "GET /nowhere", f"X-Request-Id: {printable}", authorization),
        raw.request(service, "GET /nowhere", f"User-Agent: {printable}", authorization),
        raw.request(service, "GET /metadata", f"Authorization: Bearer {printable}"),
        raw.request(service, f"{'N' * 20} /nowhere", authorization),
    ]
    form = {"client_id": NASTY, "client_secret": NASTY, "grant_type": "client_credentials"}
    for record in ({**form, "audience": NASTY}, {**form, "grant_type": NASTY}):
        service.request("POST", "/oauth/token", urlencode(record).encode(), FORM)
    for record in (changed(conclusion=NASTY), changed(status=NASTY), changed(**{NASTY: NASTY})):
        lab.register(record)
    return len(exchanges)


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_text_of_a_request_begins_a_line_of_its_own(tmp_path: Path, form: str) -> None:
    settings = {"logs": {"level": "debug", "format": form}}
    with ServiceProcess(tmp_path, settings=settings) as service:
        asked = _nasty_requests(service, service.integrator("Lab"))
        output = written_by(service)

    lines = output.removesuffix("\n").split("\n")
    assert len(lines) > asked
    for line in lines:
        assert line.isprintable(), line
        assert re.match(r'\{.*"event":.*\}$' if form == "json" else r"\d{4}-\d\d-\d\dT", line)
        texts = json.loads(line).values() if form == "json" else [line]
        assert all(text.isprintable() for text in texts if isinstance(text, str)), line


LIBRARY = """
import logging
import sys
from fhirpub.runtime.logging import configure, logger

configure(level="debug", form=sys.argv[1])
nasty = sys.argv[2]
logger().info("own", text=nasty, number=1)
logging.getLogger("asyncio").error("library: %s", nasty)
logging.getLogger("tornado.general").warning("library: %s", nasty, extra={"more": nasty})
logging.getLogger("tornado.access").info("too low to be logged: %s", nasty)
"""


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_library_that_logs_such_a_text_writes_one_line_too(form: str) -> None:
    words = [sys.executable, "-c", LIBRARY, form, NASTY]

    done = subprocess.run(words, capture_output=True, check=True)

    lines = done.stderr.decode().removesuffix("\n").split("\n")
    assert len(lines) == 3
    for line in lines:
        assert line.isprintable()
        texts = json.loads(line).values() if form == "json" else [line]
        assert all(text.isprintable() for text in texts if isinstance(text, str))


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_line_is_one_write_so_that_those_of_several_workers_stay_apart(form: str) -> None:
    # keeps the writes separate
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        words = [sys.executable, "-c", LIBRARY, form, "x"]
        subprocess.run(words, stderr=theirs.fileno(), check=True)
        written = [ours.recv(65_536) for _ in range(3)]

    assert [chunk.count(b"\n") for chunk in written] == [1, 1, 1]
    assert all(chunk.endswith(b"\n") for chunk in written)


@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&-"])
def test_without_standard_error_a_line_goes_nowhere(closed: str) -> None:
    script = f'exec "$0" -c "$1" json x {closed}'

    words = ["sh", "-c", script, sys.executable, LIBRARY]
    done = subprocess.run(words, capture_output=True, check=True)

    assert (done.stdout, done.stderr) == (b"", b"")


CLOSED = """
import io
import logging
from fhirpub.runtime.logging import configure, logger

stream = io.StringIO()
configure(level="debug", form="text", stream=stream)
stream.close()
logger().info("own")
logging.getLogger("asyncio").error("library")
"""


def test_a_line_for_a_stream_that_was_closed_goes_nowhere() -> None:
    done = subprocess.run([sys.executable, "-c", CLOSED], capture_output=True, check=True)

    assert (done.stdout, done.stderr) == (b"", b"")


FAULT = """
import logging
import sys
from fhirpub.runtime.logging import configure

configure(level="debug", form=sys.argv[1])
body = sys.argv[2]
try:
    raise ValueError(body)
except ValueError:
    logging.getLogger("asyncio").exception("never retrieved: %s", body)
"""


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_library_that_logs_a_fault_names_its_kind_and_no_more(form: str) -> None:
    words = [sys.executable, "-c", FAULT, form, f"{CANARY}\n{CANARY}"]

    done = subprocess.run(words, capture_output=True, check=True, text=True)

    assert CANARY not in done.stderr
    assert "ValueError" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_of_the_log_prevents_no_answer(tmp_path: Path) -> None:
    (tmp_path / "stderr.txt").symlink_to("/dev/full")

    with ServiceProcess(tmp_path) as service:
        statuses = [
            service.request("GET", "/metadata").status,
            service.request("POST", "/oauth/token", b"", FORM).status,
        ]
        service.terminate()

        assert service.wait(10) == 0
    assert statuses == [401, 400]


def test_a_log_that_is_not_read_holds_no_request(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stderr.txt")
    reading = os.open(tmp_path / "stderr.txt", os.O_RDONLY | os.O_NONBLOCK)

    with ServiceProcess(tmp_path, settings={"logs": {"format": "json"}}) as service:
        lab = service.integrator("Lab")
        statuses = [lab.get(f"{BASE}?_count=1").status for _ in range(600)]
        text = b""
        while text.count(b'"status":200') < 600:
            with suppress(BlockingIOError):
                text += os.read(reading, 65_536)
        service.terminate()
        service.wait()
    os.close(reading)

    assert set(statuses) == {200}
    assert len(text) > 2 * 65_536  # far more than a pipe holds


def test_a_status_is_a_number_in_lines_of_text_too(tmp_path: Path) -> None:
    settings: dict[str, Mapping[str, Any]] = {
        "logs": {"level": "debug"},
        "fhir": {"metadata_public": True},
    }
    with ServiceProcess(tmp_path, settings=settings) as service:
        service.request("GET", "/metadata")
        output = written_by(service)

    assert re.findall(r"answered .* status=(\S+)", output) == ["200"]


def test_refusals_without_a_valid_token_fill_no_disk(tmp_path: Path) -> None:
    with ServiceProcess(tmp_path, settings={"logs": {"format": "json"}}) as service:
        flood = (
            f"GET {BASE} HTTP/1.1\r\nHost: x\r\n\r\n",
            f"GET {BASE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x.y.z\r\n\r\n",
            "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n",
        )
        last = b"GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        for _ in range(5):
            raw.talk(service, "".join(flood).encode() * 40 + last)
        for _ in range(100):
            raw.talk(service, b"no request\r\n\r\n")
            service.request("POST", "/oauth/token", b"grant_type=x", FORM)
        lab = service.integrator("Lab")
        for _ in range(30):
            lab.get(f"{BASE}/{UNKNOWN_ID}")
        output = written_by(service)

    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    without = [line for line in lines if line["event"] == "refused" and "client" not in line]
    assert {line["status"] for line in without} == {400, 401, 404}
    assert len(without) <= 2 * 6 * LINES_PER_MINUTE  # in at most two minutes
    assert {line["reason"] for line in without if line["status"] == 401} == {
        "no Authorization header",
        "base64url",
    }
    assert len(lines) <= len(without) + 40
    assert sum(line["event"] == "refused" and "client" in line for line in lines) == 30
