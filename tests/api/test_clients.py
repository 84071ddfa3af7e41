"""Third-party clients: OAuth by authlib and requests-oauthlib, FHIR by fhirpy."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from fhirpy import AsyncFHIRClient, SyncFHIRClient
from fhirpy.base.exceptions import (
    AuthorizationError,
    MultipleResourcesFound,
    OperationOutcome,
    ResourceNotFound,
)
from oauthlib.oauth2 import BackendApplicationClient  # type: ignore[import-untyped]
from requests_oauthlib import (  # type: ignore[import-untyped]
    OAuth2Session as RequestsOAuth2Session,
)

from fhirpub.testing.service import Integrator, RunningService
from tests.bodies import SYSTEM, document, register_body, report, self_contained

TYPE = "DiagnosticReport"


@pytest.fixture
def token_url(service: RunningService) -> str:
    return f"{service.base_url}/oauth/token"


@pytest.fixture
def fhir(service: RunningService, lab: Integrator) -> SyncFHIRClient:
    return SyncFHIRClient(f"{service.base_url}/fhir/r4", authorization=f"Bearer {lab.token}")


@pytest.fixture
def patching(service: RunningService, lab: Integrator) -> SyncFHIRClient:
    """A client for fhirpy's own PATCH, whose body does not name its type (docs/integrators.md)."""
    return SyncFHIRClient(
        f"{service.base_url}/fhir/r4",
        authorization=f"Bearer {lab.token}",
        extra_headers={
            "Content-Type": "application/merge-patch+json",
            "Prefer": "return=representation",
        },
    )


@pytest.fixture
def twenty_five(fhir: SyncFHIRClient) -> list[str]:
    """Return the ids of twenty-five reports."""
    return [register(fhir, f"page-{number}") for number in range(25)]


def register(fhir: SyncFHIRClient, value: str, **changes: Any) -> str:
    """Register with fhirpy and return the report's id."""
    answer = fhir.resources(TYPE).execute("$register", data=register_body(value, **changes))
    return str(answer["parameter"][0]["resource"]["id"])


def to_create(fhir: SyncFHIRClient, value: str, **changes: Any) -> Any:
    """Return a fhirpy resource that contains its parts."""
    body = self_contained(value, **changes)
    return fhir.resource(body.pop("resourceType"), **body)


@pytest.fixture(params=[None, "client_secret_basic", "client_secret_post"])
def session(request: pytest.FixtureRequest, lab: Integrator) -> Iterator[OAuth2Session]:
    with OAuth2Session(
        lab.client_id, lab.client_secret, token_endpoint_auth_method=request.param
    ) as opened:
        yield opened


def test_authlib_gets_a_token_and_registers_with_it(
    service: RunningService, session: OAuth2Session, token_url: str
) -> None:
    audience = service.config.auth.audience

    token = session.fetch_token(token_url, grant_type="client_credentials", audience=audience)
    answer = session.post(
        f"{service.base_url}/fhir/r4/{TYPE}/$register", json=register_body("authlib")
    )

    assert (token["token_type"], token["expires_in"]) == ("Bearer", 86_400)
    assert answer.status_code == 201
    assert session.get(answer.headers["Location"]).json()["status"] == "final"


def test_authlib_learns_why_it_gets_no_token(
    session: OAuth2Session, service: RunningService, token_url: str
) -> None:
    session.client_secret = "wrong"
    audience = service.config.auth.audience

    with pytest.raises(OAuthError) as refused:
        session.fetch_token(token_url, grant_type="client_credentials", audience=audience)

    assert refused.value.error == "invalid_client"


def test_authlib_learns_that_the_audience_is_missing(
    session: OAuth2Session, token_url: str
) -> None:
    with pytest.raises(OAuthError) as refused:
        session.fetch_token(token_url, grant_type="client_credentials")

    assert refused.value.error == "invalid_request"
    assert "audience" in refused.value.description


@pytest.mark.parametrize("in_body", [{}, {"include_client_id": True}])
def test_requests_oauthlib_gets_a_token(
    service: RunningService,
    lab: Integrator,
    token_url: str,
    monkeypatch: pytest.MonkeyPatch,
    in_body: dict[str, bool],
) -> None:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    with RequestsOAuth2Session(client=BackendApplicationClient(lab.client_id)) as session:
        token = session.fetch_token(
            token_url,
            client_secret=lab.client_secret,
            audience=service.config.auth.audience,
            **in_body,
        )
        answer = session.get(f"{service.base_url}/fhir/r4/metadata")

    assert token["token_type"] == "Bearer"
    assert answer.json()["fhirVersion"] == "4.0.1"


def test_fhirpy_registers_and_reads(fhir: SyncFHIRClient) -> None:
    report_id = register(fhir, "fhirpy")

    read = fhir.get(TYPE, report_id)
    resource = fhir.reference(TYPE, report_id).to_resource()

    assert read["conclusion"] == resource["conclusion"] == report("fhirpy")["conclusion"]
    assert read["presentedForm"][0]["data"] == document()["data"]
    assert resource["subject"].to_resource()["name"][0]["family"] == "López"
    assert resource["performer"][0].to_resource()["name"] == "Laboratorio Uno"


def test_fhirpy_creates_a_report_that_contains_its_parts(fhir: SyncFHIRClient) -> None:
    created = to_create(fhir, "created").create()

    assert created.id == fhir.resources(TYPE).search(identifier=f"{SYSTEM}|created").get().id


def test_fhirpy_gets_what_is_there_instead_of_creating(fhir: SyncFHIRClient) -> None:
    wanted = fhir.resources(TYPE).search(identifier=f"{SYSTEM}|once")

    first, made = wanted.get_or_create(to_create(fhir, "once"))
    second, made_again = wanted.get_or_create(to_create(fhir, "other"))
    third = to_create(fhir, "other").create(identifier=f"{SYSTEM}|once")

    assert (made, made_again) == (True, False)
    assert first.id == second.id == third.id


def test_fhirpy_validates(fhir: SyncFHIRClient) -> None:
    good, bad = to_create(fhir, "valid"), to_create(fhir, "valid", category=None)

    assert good.is_valid()
    assert not bad.is_valid()
    assert fhir.resources(TYPE).count() == 0


def test_fhirpy_reads_versions_and_their_history(fhir: SyncFHIRClient) -> None:
    resource = fhir.reference(TYPE, register(fhir, "versions")).to_resource()
    resource["conclusion"] = "otherwise"
    resource.save(fields=["resourceType", "conclusion"])

    first = resource.execute("_history/1", method="get")
    history = resource.execute("_history", method="get")

    assert first["conclusion"] == report("versions")["conclusion"]
    assert [entry["resource"]["meta"]["versionId"] for entry in history["entry"]] == ["2", "1"]


def test_fhirpy_finds_by_identifier(fhir: SyncFHIRClient) -> None:
    report_id = register(fhir, "found")
    register(fhir, "other")

    found = fhir.resources(TYPE).search(identifier=f"{SYSTEM}|found")

    assert found.count() == 1
    assert [resource.id for resource in found.fetch()] == [report_id]
    assert found.get().id == report_id
    assert [resource.id for resource in found.limit(1).fetch()] == [report_id]


@pytest.mark.parametrize(
    "criteria",
    [
        {"status": "amended,final", "category": "HM"},
        {"patient__identifier": "AAB123456", "status__not": "unknown"},
        {"patient__Patient__identifier": "AAB123456"},
        {"date__ge": dt.date(2026, 11, 20), "date__lt": dt.date(2026, 11, 21)},
        {"issued__lt": dt.datetime(2026, 11, 21, tzinfo=dt.UTC)},
        {"performer__missing": False},
    ],
)
def test_fhirpy_finds_by_several_parameters(
    fhir: SyncFHIRClient, criteria: dict[str, Any]
) -> None:
    report_id = register(fhir, "several")
    register(fhir, "older", effectiveDateTime="2025-11-20T10:00:00Z", status="unknown")

    found = fhir.resources(TYPE).search(**criteria).sort("-date").limit(1).fetch()

    assert [resource.id for resource in found] == [report_id]


def test_fhirpy_gets_the_patients_with_the_reports(fhir: SyncFHIRClient) -> None:
    register(fhir, "included")

    bundle = fhir.resources(TYPE).include(TYPE, "patient").fetch_raw()

    assert [entry["resource"]["resourceType"] for entry in bundle["entry"]] == [TYPE, "Patient"]


def test_fhirpy_gets_the_elements_it_names(fhir: SyncFHIRClient) -> None:
    register(fhir, "elements")

    (found,) = fhir.resources(TYPE).elements("conclusion").fetch()

    assert found["conclusion"] == report("elements")["conclusion"]
    assert "presentedForm" not in found


def test_fhirpy_follows_the_pages(fhir: SyncFHIRClient, twenty_five: list[str]) -> None:
    reports = fhir.resources(TYPE)

    assert len(reports.fetch()) == 20
    assert sorted(resource.id for resource in reports.fetch_all()) == sorted(twenty_five)
    assert sorted(resource.id for resource in reports.limit(4)) == sorted(twenty_five)


async def test_fhirpy_async_follows_the_pages(
    service: RunningService, lab: Integrator, twenty_five: list[str]
) -> None:
    client = AsyncFHIRClient(f"{service.base_url}/fhir/r4", authorization=f"Bearer {lab.token}")

    found = await client.resources(TYPE).limit(7).fetch_all()

    assert sorted(async_f_h_i_r_resource.id for async_f_h_i_r_resource in found) == sorted(
        twenty_five
    )


def test_fhirpy_patches_if_it_names_the_type(fhir: SyncFHIRClient) -> None:
    report_id = register(fhir, "patched")

    fhir.execute(
        f"{TYPE}/{report_id}",
        method="patch",
        data={"resourceType": TYPE, "status": "amended", "conclusion": "otherwise"},
    )

    read = fhir.get(TYPE, report_id)
    assert (read["status"], read["conclusion"]) == ("amended", "otherwise")
    assert read["meta"]["versionId"] == "2"


def test_fhirpy_saves_some_fields_if_the_type_is_among_them(fhir: SyncFHIRClient) -> None:
    resource = fhir.reference(TYPE, register(fhir, "saved")).to_resource()
    resource["conclusion"] = "otherwise"

    resource.save(fields=["resourceType", "conclusion"])

    assert fhir.get(TYPE, resource.id)["conclusion"] == "otherwise"


def test_fhirpys_own_patch_without_the_type_is_refused_with_the_reason(
    fhir: SyncFHIRClient,
) -> None:
    resource = fhir.reference(TYPE, register(fhir, "refused")).to_resource()

    with pytest.raises(OperationOutcome) as refused:
        resource.patch(conclusion="otherwise")

    assert TYPE in str(refused.value)
    assert fhir.get(TYPE, resource.id)["meta"]["versionId"] == "1"


def test_fhirpy_patches_by_merge_patch(fhir: SyncFHIRClient, patching: SyncFHIRClient) -> None:
    resource = patching.reference(TYPE, register(fhir, "merged")).to_resource()

    resource.patch(status="amended", conclusion="otherwise")
    patching.patch(TYPE, resource.id, conclusion=None)

    read = fhir.get(TYPE, resource.id)
    assert (resource["status"], resource["conclusion"]) == ("amended", "otherwise")
    assert (read["status"], "conclusion" in read) == ("amended", False)


def test_fhirpy_patches_the_one_that_a_search_finds(
    fhir: SyncFHIRClient, patching: SyncFHIRClient
) -> None:
    report_id = register(fhir, "found-and-patched")
    register(fhir, "not-patched")

    wanted = patching.resources(TYPE).search(identifier=f"{SYSTEM}|found-and-patched")
    patched = wanted.patch(conclusion="otherwise")

    assert (patched.id, patched["conclusion"]) == (report_id, "otherwise")


def test_fhirpy_refreshes(fhir: SyncFHIRClient) -> None:
    resource = fhir.reference(TYPE, register(fhir, "refreshed")).to_resource()
    fhir.execute(
        f"{TYPE}/{resource.id}",
        method="patch",
        data={"resourceType": TYPE, "status": "amended"},
    )

    resource.refresh()

    assert resource["status"] == "amended"


def test_fhirpy_understands_refusals(fhir: SyncFHIRClient, service: RunningService) -> None:
    stranger = SyncFHIRClient(f"{service.base_url}/fhir/r4", authorization="Bearer nobody")

    with pytest.raises(ResourceNotFound):
        fhir.get(TYPE, "00000000-0000-4000-8000-000000000000")
    with pytest.raises(AuthorizationError):
        stranger.get(TYPE, "00000000-0000-4000-8000-000000000000")
    with pytest.raises(OperationOutcome) as refused:
        fhir.resources(TYPE).execute("$register", data=register_body("x", status="amended"))
    assert refused.value.resource["issue"][0]["expression"] == [
        "Parameters.parameter[2].resource.status"
    ]


def test_fhirpy_reports_a_conflict(
    fhir: SyncFHIRClient, service: RunningService, lab: Integrator
) -> None:
    careful = SyncFHIRClient(
        f"{service.base_url}/fhir/r4",
        authorization=f"Bearer {lab.token}",
        extra_headers={"If-Match": 'W/"7"'},
    )
    path = f"{TYPE}/{register(fhir, 'conflict')}"

    # fhirpy's exception for 412
    with pytest.raises(MultipleResourcesFound, match="target version 7"):
        careful.execute(path, method="patch", data={"resourceType": TYPE, "status": "amended"})
