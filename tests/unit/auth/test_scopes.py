from __future__ import annotations

import pytest

from fhirpub.auth.scopes import narrow, permits


@pytest.mark.parametrize(
    ("scope", "letters"),
    [
        ("system/DiagnosticReport.cruds", "cruds"),
        ("system/DiagnosticReport.rs", "rs"),
        ("system/DiagnosticReport.c", "c"),
        ("system/*.rs", "rs"),
        ("system/*.*", "cruds"),
        ("system/DiagnosticReport.read", "rs"),
        ("system/DiagnosticReport.write", "cud"),
        ("system/DiagnosticReport.*", "cruds"),
        ("system/Patient.cruds", ""),
        ("user/DiagnosticReport.cruds", ""),
        ("patient/*.*", ""),
        ("system/DiagnosticReport.", ""),
        ("system/DiagnosticReport.sr", ""),
        ("system/DiagnosticReport.rr", ""),
        ("system/DiagnosticReport.rs?category=lab", ""),
        ("system/DiagnosticReport.readwrite", ""),
        ("xsystem/DiagnosticReport.cruds", ""),
        ("system/DiagnosticReport.cruds\n", ""),
        ("system/diagnosticReport.cruds", ""),
        ("openid", ""),
    ],
)
def test_a_scope_permits_exactly_its_letters(scope: str, letters: str) -> None:
    permitted = [
        character for character in "cruds" if permits((scope,), "DiagnosticReport", character)
    ]

    assert "".join(permitted) == letters


def test_scopes_add_up_and_none_permit_nothing() -> None:
    scopes = ("system/DiagnosticReport.c", "system/*.rs", "system/DiagnosticReport.u")

    assert [permits(scopes, "DiagnosticReport", character) for character in "cruds"] == [
        True,
        True,
        True,
        False,
        True,
    ]
    assert not permits(scopes, "Patient", "c")
    assert not permits((), "DiagnosticReport", "r")


def test_wanted_scopes_are_those_that_the_held_ones_cover() -> None:
    held = ("system/*.rs", "system/DiagnosticReport.cruds", "launch")

    wanted = narrow(
        held,
        [
            "system/Patient.read",
            "system/DiagnosticReport.*",
            "system/Patient.cruds",
            "system/*.cruds",
            "launch",
            "openid",
            "launch",
        ],
    )

    assert wanted == ("system/Patient.read", "system/DiagnosticReport.*", "launch")


def test_a_wildcard_does_not_stand_for_the_audit_trail() -> None:
    assert not permits(("system/*.cruds",), "AuditEvent", "r")
    assert permits(("system/AuditEvent.rs",), "AuditEvent", "r")
    assert narrow(("system/*.cruds",), ("system/AuditEvent.rs", "system/*.rs")) == ("system/*.rs",)
