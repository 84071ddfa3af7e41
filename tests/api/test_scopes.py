"""The permissions of a token's scopes where they are enforced (D-23)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import pytest

from fhirpub.config.settings import AuthConfig, Config, PluginsConfig
from fhirpub.testing.service import Answer, Integrator, RunningService
from tests.bodies import PDF, SYSTEM, register_body, self_contained

BASE = "/fhir/r4/DiagnosticReport"
UNKNOWN_REPORT = f"{BASE}/00000000-0000-4000-8000-000000000000"
CONDITION = f"identifier={SYSTEM}|S-1"
PATCH = {"resourceType": "DiagnosticReport", "status": "amended"}
ClientWith = Callable[[str], Integrator]


@pytest.fixture(scope="module")
def publisher(strict: RunningService) -> Integrator:
    """A client that has every permission, and has published a report."""
    publisher = strict.integrator(scopes=("system/*.cruds",))
    publisher.register(register_body("S-1"))
    return publisher


@pytest.fixture
def client_with(strict: RunningService, publisher: Integrator) -> ClientWith:
    """Return another client of the publisher's tenant with some letters of a scope."""
    return lambda letters: strict.another_client(
        publisher.tenant, scopes=(f"system/DiagnosticReport.{letters}",)
    )


def create(lab: Integrator) -> Answer:
    return lab.request("POST", BASE, self_contained("S-2"), {"If-None-Exist": CONDITION})


def update(lab: Integrator) -> Answer:
    headers = {"Prefer": "return=representation"}
    return lab.request("PATCH", f"{BASE}?{CONDITION}", PATCH, headers)


@pytest.mark.parametrize(
    ("letter", "method", "path"),
    [
        ("c", "POST", f"{BASE}/$register"),
        ("c", "POST", f"{BASE}/$validate"),
        ("c", "POST", BASE),
        ("r", "GET", UNKNOWN_REPORT),
        ("r", "GET", f"{UNKNOWN_REPORT}/_history"),
        ("u", "PATCH", UNKNOWN_REPORT),
        ("s", "GET", BASE),
        ("s", "GET", f"{BASE}/_history"),
        ("s", "POST", f"{BASE}/_search"),
    ],
)
def test_each_interaction_demands_its_scope(
    client_with: ClientWith, letter: str, method: str, path: str
) -> None:
    others = "cruds".replace(letter, "")

    assert client_with(letter).request(method, path, b"{}").status != 403
    assert client_with(others).request(method, path, b"{}").status == 403


def test_a_token_without_the_scope_is_challenged_as_such(client_with: ClientWith) -> None:
    answer = client_with("r").request("POST", f"{BASE}/$register", b"{}")

    challenge = answer.headers["www-authenticate"]
    assert challenge == (
        'Bearer realm="fhirpub", error="insufficient_scope", '
        'error_description="the access token has no scope for this: system/DiagnosticReport.c", '
        'scope="system/DiagnosticReport.c"'
    )


def named_scope(answer: Answer) -> str:
    """Return the scope that a refusal names in its challenge."""
    assert answer.status == 403
    return answer.headers["www-authenticate"].partition(' scope="')[2].rstrip('"')


def test_a_refused_search_names_its_scope(client_with: ClientWith) -> None:
    assert named_scope(client_with("c").get(BASE)) == "system/DiagnosticReport.s"


def test_a_refused_search_of_the_audit_trail_names_its_scope(client_with: ClientWith) -> None:
    answer = client_with("cruds").get("/fhir/r4/AuditEvent")

    assert named_scope(answer) == "system/AuditEvent.s"


def test_a_refused_condition_of_create_names_both_rights(client_with: ClientWith) -> None:
    assert named_scope(create(client_with("c"))) == "system/DiagnosticReport.cs"


def test_a_refused_include_names_both_rights(client_with: ClientWith) -> None:
    answer = client_with("s").get(f"{BASE}?_include=DiagnosticReport:patient")

    assert named_scope(answer) == "system/DiagnosticReport.rs"


@pytest.mark.parametrize(
    ("method", "scope"), [("GET", "webhooks.read"), ("POST", "webhooks.write")]
)
def test_a_refusal_about_webhooks_names_the_scope(
    client_with: ClientWith, method: str, scope: str
) -> None:
    answer = client_with("cruds").request(method, "/webhooks/v1/endpoints", b"{}")

    assert named_scope(answer) == scope


@pytest.mark.parametrize(("letters", "status"), [("cr", 403), ("crs", 200)])
def test_a_condition_of_create_is_a_search(
    client_with: ClientWith, letters: str, status: int
) -> None:
    assert create(client_with(letters)).status == status


@pytest.mark.parametrize(("letters", "status"), [("ru", 403), ("rus", 200)])
def test_a_condition_of_an_update_is_a_search(
    client_with: ClientWith, letters: str, status: int
) -> None:
    assert update(client_with(letters)).status == status


def test_a_client_without_read_is_not_shown_what_create_finds(client_with: ClientWith) -> None:
    answer = create(client_with("cs"))

    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["location"]


def test_a_client_without_read_is_not_shown_what_was_updated(client_with: ClientWith) -> None:
    answer = update(client_with("us"))

    assert (answer.status, answer.body) == (204, b"")
    assert "preference-applied" not in answer.headers


@pytest.mark.parametrize(("letters", "status"), [("s", 403), ("rs", 200)])
def test_parts_of_reports_are_included_for_clients_that_may_read_reports(
    client_with: ClientWith, letters: str, status: int
) -> None:
    reader = client_with(letters)
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    by_url = reader.get(f"{BASE}?_include=DiagnosticReport:patient")
    again = reader.get(f"{BASE}?_include:iterate=DiagnosticReport:patient")
    by_form = reader.request("POST", f"{BASE}/_search", b"_include=*", form)

    assert (by_url.status, again.status, by_form.status) == (status, status, status)


@pytest.fixture(scope="module")
def of_two_types(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service of two types that demands scopes."""
    plugins = PluginsConfig(enabled=["diagnosticreport", "observation"])
    config = Config(auth=AuthConfig(enforce_scopes=True), plugins=plugins)
    with RunningService(tmp_path_factory.mktemp("types"), config=config) as running:
        yield running


@pytest.mark.parametrize(
    ("scope", "status"),
    [
        ("system/Observation.r", 403),
        ("system/DiagnosticReport.r", 200),
        ("system/*.r", 200),
    ],
)
def test_parts_and_documents_of_a_report_are_for_clients_that_may_read_reports(
    of_two_types: RunningService, scope: str, status: int
) -> None:
    publisher = of_two_types.integrator(scopes=("system/*.cruds",))
    location = publisher.register(register_body("S-3")).headers["location"]
    report = publisher.get(location).json
    documents = (hashlib.sha256(PDF).hexdigest(), f"{report['id']}.1.1")

    reader = of_two_types.another_client(publisher.tenant, scopes=(scope,))

    for path in (report["subject"]["reference"], *(f"Binary/{name}" for name in documents)):
        assert reader.get(f"/fhir/r4/{path}").status == status


def test_the_right_to_what_came_with_reports_is_one_of_its_own(
    of_two_types: RunningService,
) -> None:
    publisher = of_two_types.integrator(scopes=("system/*.cruds",))
    location = publisher.register(register_body("S-4")).headers["location"]
    patient = publisher.get(location).json["subject"]["reference"]
    document = f"Binary/{hashlib.sha256(PDF).hexdigest()}"

    of_patients, of_documents = (
        of_two_types.another_client(publisher.tenant, scopes=(f"system/{name}.r",))
        for name in ("Patient", "Binary")
    )

    assert of_patients.get(f"/fhir/r4/{patient}").status == 200
    assert of_patients.get(f"/fhir/r4/{document}").status == 403
    assert of_documents.get(f"/fhir/r4/{document}").status == 200
    assert of_documents.get(f"/fhir/r4/{patient}").status == 403
