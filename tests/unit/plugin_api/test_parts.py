"""What the rules for patients allow: codes, which are fewer than FHIR's."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.fhir.terminology import Terminology
from fhirpub.plugin_api import Entry, RuleContext
from fhirpub.plugin_api.parts import patient_rules

TERMINOLOGY = Terminology.load()


def said_about(patient: dict[str, Any], *, unknown: bool = False) -> list[str]:
    """Return what errors of the rules say about a patient."""
    context = RuleContext(
        tenant_id="t",
        today="2026-11-25",
        terminology=TERMINOLOGY,
        allow_gender_unknown=unknown,
    )
    found = patient_rules(Entry({"resourceType": "Patient", **patient}, "Patient"), context)
    return [issue.diagnostics for issue in found if issue.severity == "error"]


@pytest.mark.parametrize(
    ("gender", "unknown", "said"),
    [
        ("female", False, []),
        ("male", False, []),
        ("other", False, []),
        ("other", True, []),
        ("", True, ["must be one of male, female, other, unknown"]),
        ("unknown", True, []),
        ("unknown", False, ["must be one of male, female, other"]),
        ("F", False, ["must be one of male, female, other; did you mean female?"]),
        ("Unknown", True, ["must be one of male, female, other, unknown; did you mean unknown?"]),
        (5, False, []),  # the structure is wrong, which is reported anyway
    ],
)
def test_unknown_is_a_gender_only_by_the_setting(
    gender: Any, *, unknown: bool, said: list[str]
) -> None:
    assert said_about({"gender": gender}, unknown=unknown) == said


@pytest.mark.parametrize(
    ("telecom", "said"),
    [
        ({"system": "email", "value": "x", "use": "home"}, []),
        ({"system": "phone", "value": "x", "use": "mobile"}, []),
        ({"use": "work"}, []),
        ({"system": "phone"}, []),
        ({"value": "x"}, ["must be one of email, phone"]),
        ({"system": "fax", "value": "x"}, ["must be one of email, phone"]),
        ({"system": "phone", "use": "old"}, ["must be one of home, work, mobile"]),
        (
            {"system": "pager", "use": "temp", "value": "x"},
            ["must be one of email, phone", "must be one of home, work, mobile"],
        ),
    ],
)
def test_a_telecom_is_an_email_or_a_phone(telecom: dict[str, Any], said: list[str]) -> None:
    assert said_about({"telecom": [telecom]}) == said
