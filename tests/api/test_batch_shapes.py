"""Batches of any shape: never a fault, and one response for each entry."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fhirpub.testing.service import Answer, Integrator
from tests.batches import BASE, TYPE, UNKNOWN, bundle, entry, registering, status
from tests.bodies import register_body, self_contained

_METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD", "OPTIONS")
_URLS = (
    *(TYPE, f"{TYPE}/{UNKNOWN}", f"{TYPE}/$register", f"{TYPE}/$validate", "metadata", "/", "."),
    *("..", "//", "?", f"{TYPE}?_id=1", f"{TYPE}?_count=x", "http://x", "urn:uuid:1", "%", "%2F"),
    *(f"{TYPE}/_history", f"{TYPE}/{UNKNOWN}/_history/1", "Binary/1", "Patient/1", "Bundle"),
)
_TEXTS = st.text(max_size=12) | st.sampled_from([*_METHODS, *_URLS, "batch", 'W/"1"', "*"])
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_CONDITIONS = ("ifMatch", "ifNoneMatch", "ifModifiedSince", "ifNoneExist", "x")
_REQUESTS = st.fixed_dictionaries(
    {"method": st.sampled_from(_METHODS) | _VALUES, "url": st.sampled_from(_URLS) | _VALUES},
    optional=dict.fromkeys(_CONDITIONS, _TEXTS | _VALUES),
)
_RESOURCES = st.sampled_from(
    [
        *({}, {"resourceType": TYPE}, {"resourceType": "Parameters", "parameter": []}, bundle()),
        *(register_body("R-1"), self_contained("R-2"), {"resourceType": TYPE, "status": "final"}),
        {"resourceType": "Binary", "contentType": "application/json-patch+json", "data": "W10="},
    ]
)
_ENTRIES = _VALUES | st.fixed_dictionaries(
    {"request": _REQUESTS | _VALUES},
    optional={"resource": _RESOURCES | _VALUES, "fullUrl": _TEXTS | _VALUES, "search": _VALUES},
)


def _sent(lab: Integrator, body: Any) -> Answer:
    return lab.request("POST", BASE, json.dumps(body).encode())


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(_ENTRIES, max_size=5))
def test_every_entry_has_a_response_and_none_is_a_fault(
    lab: Integrator, entries: list[Any]
) -> None:
    answer = _sent(lab, bundle(*entries, registering("R-1")))

    assert answer.status == 200
    answers = answer.json["entry"]
    assert len(answers) == len(entries) + 1
    assert all(200 <= status(one) < 500 for one in answers)
    assert status(answers[-1]) == 201
    assert all("outcome" in one["response"] for one in answers if status(one) >= 400)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(st.sampled_from(["resourceType", "type", "entry", "x", "id"]), _VALUES))
def test_a_bundle_of_any_shape_is_answered_or_refused(
    lab: Integrator, changes: dict[str, Any]
) -> None:
    answer = _sent(lab, bundle(entry("GET", "metadata"), **changes))

    assert answer.status in (200, 400)
