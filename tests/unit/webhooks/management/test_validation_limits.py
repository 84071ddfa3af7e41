"""Fields of an endpoint at their limits, and the sentences by which others are refused."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import InvalidContent
from fhirpub.problems import ContentProblem, OperationProblem
from fhirpub.runtime.clock import now_ms
from fhirpub.webhooks.management.event_types import EventTypes
from fhirpub.webhooks.management.validation import (
    NEW,
    NEW_SECRET,
    TEST,
    refuse_unknown_fields,
    settings_of,
    validate_endpoint,
)
from fhirpub.webhooks.transport.sender import Sender
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT

EVENTS = EventTypes.of([DIAGNOSTIC_REPORT])
OWNER = "11111111-1111-4111-8111-111111111111"
ANOTHER = "22222222-2222-4222-8222-222222222222"
PRIVATE = "https://10.0.0.1/hook"
SECRET = "whsec_" + base64.b64encode(bytes(24)).decode()
GRACE = "grace_seconds: must be a whole number from 0 to 604800"
PATTERNS = "event_types: must be a list of 1 to 50 names or patterns"
TOKEN = "bearer_token: must be of 1 to 1024 visible ASCII characters, without blanks"

Validate = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def validate() -> Iterator[Validate]:
    """Validate fields; a private network is open to one tenant."""
    with asyncio.Runner() as runner:
        opened = WebhooksConfig(allow_networks=[f"10.0.0.1 tenant={OWNER}"])
        sender = Sender(opened, clock=now_ms)

        def validated(fields: Any, *, tenant: str = OWNER, **options: Any) -> dict[str, Any]:
            known = (*NEW, *NEW_SECRET, *TEST)
            return runner.run(
                validate_endpoint(
                    fields,
                    known=known,
                    tenant=tenant,
                    sender=sender,
                    event_types=EVENTS,
                    **options,
                )
            )

        yield validated
        runner.run(sender.close())


def refused(validate: Validate, fields: Any, **options: Any) -> list[str]:
    """Return the places and sentences by which fields are refused."""
    with pytest.raises(InvalidContent) as caught:
        validate(fields, **options)
    return [f"{issue.expression}: {issue.diagnostics}" for issue in caught.value.issues]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"grace_seconds": 0},
        {"grace_seconds": 604_800},
        {"event_types": ["*"]},
        {"event_types": ["*"] * 50},
        {"event_types": ["diagnostic_report.*", "endpoint.test"]},
        {"event_type": "endpoint.test"},
        {"event_type": "diagnostic_report.erased"},
        {"description": ""},
        {"description": "ü" * 200},
        {"bearer_token": "~"},
        {"bearer_token": "!" * 1024},
        {"signing_secret": SECRET},
        *({"payload": value} for value in ("standard", "id-only")),
        *({"ordering": value} for value in ("none", "per_resource", "strict")),
    ],
    ids=str,
)
def test_a_value_at_its_limit_is_taken_as_it_is(
    validate: Validate, fields: dict[str, Any]
) -> None:
    assert validate(fields) == fields


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        *(({"grace_seconds": value}, GRACE) for value in (-1, 604_801, True, 1.0, "1", None)),
        *(({"event_types": value}, PATTERNS) for value in ([], ["*"] * 51, "*", ("*",), None)),
        ({"event_types": ["*", 1]}, "event_types[1]: must be a string"),
        ({"event_type": None}, "event_type: must be a string"),
        ({"event_type": ["endpoint.test"]}, "event_type: must be a string"),
        (
            {"event_type": "endpoint.verification"},
            "event_type: is sent by a verification alone",
        ),
        (
            {"event_type": "endpoint.tst"},
            "event_type: is not an event of this service; did you mean endpoint.test?",
        ),
        ({"payload": "all"}, "payload: must be one of standard, id-only"),
        ({"payload": None}, "payload: must be one of standard, id-only"),
        ({"ordering": "fifo"}, "ordering: must be one of none, per_resource, strict"),
        ({"description": "x" * 201}, "description: has more than 200 characters"),
        ({"description": "\t"}, "description: holds characters that cannot be shown"),
        ({"description": None}, "description: is required"),
        ({"description": 1}, "description: must be a string"),
        ({"url": None}, "url: is required"),
        ({"url": ["https://a.example"]}, "url: must be a string"),
        *(({"bearer_token": text}, TOKEN) for text in ("", "a b", "a\n", "ü", "\x7f", "x" * 1025)),
        ({"bearer_token": None}, "bearer_token: is required"),
        (
            {"signing_secret": "secret"},
            "signing_secret: is not usable: a signing secret begins with whsec_",
        ),
        (
            {"signing_secret": "whsec_" + base64.b64encode(bytes(23)).decode()},
            "signing_secret: is not usable: a signing secret has 24 to 64 bytes",
        ),
        ({"signing_secret": 1}, "signing_secret: must be a string"),
    ],
    ids=str,
)
def test_a_value_beyond_its_limit_is_refused_with_what_it_must_be(
    validate: Validate, fields: dict[str, Any], sentence: str
) -> None:
    assert refused(validate, fields) == [sentence]


def test_each_pattern_that_is_wrong_is_named_by_its_place(validate: Validate) -> None:
    patterns = ["endpoint.tst", "*", None, "diagnostic_reprt.*"]

    assert refused(validate, {"event_types": patterns}) == [
        "event_types[0]: is not an event of this service; did you mean endpoint.test?",
        "event_types[2]: must be a string",
        "event_types[3]: is not an event of this service; did you mean diagnostic_report.*?",
    ]


def test_all_that_is_wrong_is_refused_at_once(validate: Validate) -> None:
    fields = {
        "x": 1,
        "event_types": [],
        "event_type": 1,
        "payload": 1,
        "ordering": 1,
        "grace_seconds": -1,
        "description": 1,
        "bearer_token": 1,
        "signing_secret": 1,
        "url": PRIVATE,
    }

    found = refused(validate, fields, tenant=ANOTHER)

    assert {one.partition(": ")[0] for one in found} == fields.keys()
    assert len(found) == len(fields)
    assert found[0].startswith("x: is not a field here; ")
    assert found[-1].startswith("url: ")


@pytest.mark.parametrize("fields", [None, [], "url", [["url", "x"]]])
def test_what_is_no_object_is_refused_as_another_body(validate: Validate, fields: Any) -> None:
    with pytest.raises(InvalidContent) as caught:
        validate(fields)

    (issue,) = caught.value.issues
    assert issue.diagnostics == "the body must be a JSON object"
    assert (issue.expression, issue.details) == ("", ContentProblem.BODY_UNEXPECTED)


def test_a_wrong_value_and_an_unknown_field_are_different_problems(validate: Validate) -> None:
    with pytest.raises(InvalidContent) as caught:
        validate({"x": 1, "ordering": ""})

    assert [(issue.severity, issue.details) for issue in caught.value.issues] == [
        ("error", OperationProblem.FIELD_UNKNOWN),
        ("error", OperationProblem.FIELD_INVALID),
    ]


def test_a_network_is_open_to_its_tenant_alone(validate: Validate) -> None:
    assert validate({"url": PRIVATE})["url"] == PRIVATE
    for tenant in (ANOTHER, ""):
        (sentence,) = refused(validate, {"url": PRIVATE}, tenant=tenant)
        assert sentence == "url: names an address, a port or a scheme to which nothing is sent"


def test_only_an_operator_may_name_a_sink(validate: Validate) -> None:
    fields = {"url": "sink:archive"}

    (ours,) = refused(validate, fields, trusted=True)
    (theirs,) = refused(validate, fields)

    assert ours == "url: names a sink that no enabled plugin has; there are: none"
    assert "sink" not in theirs


def test_the_fields_that_were_sent_stay_as_they_are(validate: Validate) -> None:
    fields = {"url": "HTTPS://10.0.0.1:443/hook", "payload": "standard"}

    values = validate(fields)

    assert values == {"url": PRIVATE, "payload": "standard"}
    assert fields["url"] == "HTTPS://10.0.0.1:443/hook"


def test_an_unknown_field_is_refused_with_the_nearest_or_with_all() -> None:
    near, far = refuse_unknown_fields({"orderin": 0, "url": 0, "zzzzz": 0}, ("url", "ordering"))

    assert (near.expression, near.diagnostics) == (
        "orderin",
        "is not a field here; did you mean ordering?",
    )
    assert (far.expression, far.diagnostics) == (
        "zzzzz",
        "is not a field here; known are url, ordering",
    )


def test_settings_are_what_may_be_changed_under_the_names_of_the_record() -> None:
    values = {
        "url": PRIVATE,
        "event_types": ["b.*", "a.b", "b.*"],
        "payload": "id-only",
        "ordering": "strict",
        "description": "",
        "bearer_token": "t",
        "signing_secret": SECRET,
        "grace_seconds": 1,
    }

    assert settings_of(values) == {
        "url": PRIVATE,
        "events": ("b.*", "a.b"),
        "payload": "id-only",
        "ordering": "strict",
        "description": "",
    }


def test_what_was_not_sent_is_no_setting() -> None:
    assert settings_of({}) == {}
    assert settings_of({"description": "x"}) == {"description": "x"}
