"""The names of the elements in which a repetition differs from what is registered."""

from __future__ import annotations

from typing import Any

import pytest

from fhirpub.fhir.strict_json import dumps
from fhirpub.interactions.repetition.difference import differing_elements
from fhirpub.storage.contract import Version
from fhirpub.testing.samples import a_version
from tests.bodies import patient, report

META = {"versionId": "1", "lastUpdated": "2026-11-20T10:00:00.000Z"}


def stored(of_patient: dict[str, Any] | None = None, **changes: Any) -> Version:
    resource = report("R-1", **{"meta": META, **changes})
    person = patient(**{"meta": META, **(of_patient or {})})
    return a_version(body=dumps(resource), parts=dumps({"patient": person}))


@pytest.mark.parametrize(
    ("other", "names"),
    [
        (stored(), ()),
        (stored(meta={**META, "lastUpdated": "2026-11-21T10:00:00.000Z"}), ()),
        (stored(meta={**META, "tag": [{"code": "x"}]}), ("meta",)),
        (stored(conclusion="MALIGNANT"), ("conclusion",)),
        (stored(conclusion=None), ("conclusion",)),
        (stored(_conclusion={"id": "c"}, conclusion="x"), ("conclusion",)),
        (stored(effectiveDateTime="2026-11-20T11:00:00+01:00"), ()),
        (stored({"birthDate": "1951-01-01"}), ("patient.birthDate",)),
        (stored({"deceasedDateTime": "2026-11-20T11:00:00+01:00"}), ("patient.deceasedDateTime",)),
        (stored({"meta": {**META, "lastUpdated": "2026-11-21T10:00:00.000Z"}}), ()),
        (
            a_version(body=stored(status="partial").body, parts=b"{}"),
            ("patient", "status"),
        ),
    ],
)
def test_the_elements_that_differ_are_named(other: Version, names: tuple[str, ...]) -> None:
    assert differing_elements(stored(), other) == names
    assert differing_elements(other, stored()) == names


def test_what_the_digest_does_not_count_is_not_named() -> None:
    first = stored({"deceasedDateTime": "2026-11-20T10:00:00Z"})
    second = stored({"deceasedDateTime": "2026-11-20T11:00:00+01:00"})

    assert differing_elements(first, second) == ()
