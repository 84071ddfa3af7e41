from __future__ import annotations

import pytest

from fhirpub.auth.scopes import gives_something, intersect, is_scope, narrow, permits
from tests.collector import computing_less_than


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

    assert wanted == (
        "system/Patient.read",
        "system/DiagnosticReport.*",
        "system/Patient.rs",
        "system/*.rs",
        "system/DiagnosticReport.cruds",
        "launch",
    )


@pytest.mark.parametrize(
    ("wanted", "granted"),
    [
        ("system/*.read", ["system/DiagnosticReport.rs", "system/Patient.r"]),
        ("system/*.write", ["system/DiagnosticReport.cu"]),
        ("system/*.*", ["system/DiagnosticReport.crus", "system/Patient.r"]),
        ("system/DiagnosticReport.write", ["system/DiagnosticReport.cu"]),
        ("system/DiagnosticReport.cruds", ["system/DiagnosticReport.crus"]),
        ("system/Patient.read", ["system/Patient.r"]),
        ("system/Patient.write", []),
        ("system/DiagnosticReport.rs?category=lab", []),
        ("user/*.read", []),
    ],
)
def test_of_what_is_wanted_the_part_is_left_that_is_held(wanted: str, granted: list[str]) -> None:
    held = ("system/DiagnosticReport.crus", "system/Patient.r", "system/AuditEvent.rs")

    assert list(narrow(held, (wanted,))) == granted


def test_what_both_allow_is_named_once() -> None:
    held = ("system/*.rs", "system/DiagnosticReport.cruds")

    assert intersect(held, ("system/DiagnosticReport.read",)) == ("system/DiagnosticReport.read",)
    assert intersect(held, ("system/*.cud",)) == ("system/DiagnosticReport.cud",)


def test_the_most_scopes_of_a_request_are_narrowed_within_a_turn_of_the_loop() -> None:
    held = [f"system/A{chr(65 + n // 26)}{chr(97 + n % 26)}.r" for n in range(100)]
    letters = [
        c + r + u + d + s
        for c in ("c", "")
        for r in ("r", "")
        for u in ("u", "")
        for d in ("d", "")
        for s in ("s", "")
    ]
    wanted = [f"system/*.{form}" for form in (*letters, "read", "write", "*")] * 20

    with computing_less_than(0.5):  # 0.004 s
        narrow(held, wanted)


def test_a_wildcard_does_not_stand_for_the_audit_trail() -> None:
    assert not permits(("system/*.cruds",), "AuditEvent", "r")
    assert permits(("system/AuditEvent.rs",), "AuditEvent", "r")
    assert narrow(("system/*.cruds",), ("system/AuditEvent.rs", "system/*.rs")) == ("system/*.rs",)


def test_of_a_wildcard_the_types_that_are_held_for_more_are_named_beside_it() -> None:
    held = ("system/*.r", "system/Patient.rs", "system/Encounter.r")

    assert narrow(held, ["system/*.rs"]) == ("system/*.r", "system/Patient.rs")


@pytest.mark.parametrize(
    ("text", "is_one"), [("system/*.rs", True), ("x", True), ("", False), ("a b", False)]
)
def test_a_scope_is_one_word(text: str, *, is_one: bool) -> None:
    assert is_scope(text) is is_one


@pytest.mark.parametrize(
    ("text", "gives"),
    [("webhooks.read", True), ("system/*.rs", True), ("system/*.", False), ("openid", False)],
)
def test_a_scope_of_another_service_gives_nothing(text: str, *, gives: bool) -> None:
    assert gives_something(text) is gives
