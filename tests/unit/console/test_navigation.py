"""The navigation shows what the person of a session may see, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fhirpub.auth.caller import Caller
from fhirpub.config.settings import AuthConfig
from fhirpub.console.navigation import navigation
from tests.unit.console.test_visit import CALLER, a_session


def sections(caller: Caller | None, *, enforced: bool = True, has_audit: bool = True) -> list[str]:
    services = SimpleNamespace(
        types={"DiagnosticReport": None, "Specimen": None},
        context=SimpleNamespace(searched=["DiagnosticReport", "Specimen", "Patient"]),
        audit=object() if has_audit else None,
    )
    auth = replace(AuthConfig(), enforce_scopes=enforced)
    console: Any = SimpleNamespace(services=services, config=SimpleNamespace(auth=auth))
    return [entry.section for entry in navigation(console, a_session(caller))]


def with_scopes(*scopes: str, count: bool = False) -> Caller:
    return replace(CALLER, scopes=scopes, scopes_count=count)


def test_without_a_session_there_is_no_navigation() -> None:
    assert navigation(cast("Any", None), None) == []


def test_an_operator_has_the_entries_of_operators_alone() -> None:
    assert sections(None) == [
        *("start", "tenants", "clients", "endpoints", "keys", "erasures", "audit", "operations"),
    ]


@pytest.mark.parametrize(
    ("scopes", "expected"),
    [
        ((), ["start"]),
        (("system/DiagnosticReport.s",), ["start", "DiagnosticReport", "Patient"]),
        (("system/DiagnosticReport.r",), ["start"]),
        (("system/Patient.s",), ["start", "Patient"]),
        (("system/*.rs",), ["start", "DiagnosticReport", "Specimen", "Patient"]),
        (("webhooks.read",), ["start", "endpoints"]),
        (("webhooks.write",), ["start"]),
        (("system/AuditEvent.rs",), ["start", "accesses"]),
    ],
)
def test_a_person_sees_what_the_scopes_of_the_client_permit(
    scopes: tuple[str, ...], expected: list[str]
) -> None:
    assert sections(with_scopes(*scopes)) == expected


def test_without_enforced_scopes_all_is_seen_but_accesses() -> None:
    everything = ["start", "DiagnosticReport", "Specimen", "Patient", "endpoints"]

    assert sections(with_scopes(), enforced=False) == everything


def test_the_scopes_of_a_person_count_where_others_do_not() -> None:
    assert sections(with_scopes(count=True), enforced=False) == ["start"]


def test_accesses_are_not_shown_without_an_audit_trail() -> None:
    assert sections(with_scopes("system/AuditEvent.rs"), has_audit=False) == ["start"]


def test_entries_lead_to_pages_of_the_console() -> None:
    services = SimpleNamespace(types={}, context=SimpleNamespace(searched=["Patient"]), audit=None)
    auth = replace(AuthConfig(), enforce_scopes=False)
    console: Any = SimpleNamespace(services=services, config=SimpleNamespace(auth=auth))

    shown = {one.title: one.path for one in navigation(console, a_session(CALLER))}
    operators = {one.title: one.path for one in navigation(console, a_session(None))}
    services.audit = cast("Any", object())
    *_others, accesses = navigation(console, a_session(with_scopes("system/AuditEvent.s")))

    assert shown == {
        "Start": "/console/",
        "Patient": "/console/resources/Patient",
        "Endpoints": "/console/endpoints",
    }
    assert operators["Tenants"] == "/console/operations/tenants"
    assert operators["All operations"] == "/console/operations"
    assert operators["Overview"] == "/console/"
    assert (accesses.title, accesses.path) == ("Accesses", "/console/accesses")
