"""Fields of an endpoint: accepted, or refused with all their problems."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fhirpub.config.webhooks import WebhooksConfig
from fhirpub.errors import MAX_ISSUES, InvalidContent
from fhirpub.runtime.clock import now_ms
from fhirpub.webhooks.management.event_types import EventTypes
from fhirpub.webhooks.management.validation import (
    NEW,
    NEW_SECRET,
    refuse_unknown_fields,
    validate_endpoint,
)
from fhirpub.webhooks.transport.sender import Sender
from fhirpub_diagnosticreport.rules import DIAGNOSTIC_REPORT

KNOWN = EventTypes.of([DIAGNOSTIC_REPORT])
PUBLIC = "https://192.88.98.1/Hook"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)
Validate = Callable[[Any], dict[str, Any]]
NAMES = st.sampled_from([name for name in (*NEW, *NEW_SECRET) if name != "url"])


@pytest.fixture(scope="module")
def validate() -> Iterator[Validate]:
    """Validate fields, with one sender for all tests."""
    with asyncio.Runner() as runner:
        sender = Sender(WebhooksConfig(), clock=now_ms)
        yield lambda fields: runner.run(
            validate_endpoint(
                fields,
                known=(*NEW, *NEW_SECRET),
                tenant="",
                sender=sender,
                event_types=KNOWN,
            )
        )
        runner.run(sender.close())


def places(validate: Validate, fields: Any) -> set[str]:
    with pytest.raises(InvalidContent) as caught:
        validate(fields)
    return {issue.expression for issue in caught.value.issues}


def test_a_url_is_kept_in_its_canonical_form(validate: Validate) -> None:
    assert validate({"url": PUBLIC.replace("https", "HTTPS").replace("/Hook", ":443/Hook")}) == {
        "url": PUBLIC
    }


def test_the_url_is_validated_together_with_the_rest(validate: Validate) -> None:
    assert places(validate, {"url": "https://10.0.0.1/", "payload": "all", "x": 1}) == {
        *("url", "payload", "x"),
    }


def test_an_unknown_field_is_reported_with_the_nearest(validate: Validate) -> None:
    with pytest.raises(InvalidContent, match=r"tokken: is not a field here.*bearer_token"):
        validate({"tokken": "x"})


@pytest.mark.parametrize("fields", [None, [], "url", 1])
def test_what_is_no_object_is_refused(fields: Any, validate: Validate) -> None:
    assert places(validate, fields) == {""}


@pytest.mark.parametrize("text", ["a\nb", "a\x00", chr(0x202E)])
def test_a_description_is_of_what_can_be_shown(text: str, validate: Validate) -> None:
    assert places(validate, {"description": text}) == {"description"}


def test_a_description_may_be_in_any_script(validate: Validate) -> None:
    assert validate({"description": "Station 3, 病棟"})


@pytest.mark.parametrize("patterns", [[], ["*"] * 51, "*", None, [None], [["*"]], ["*", "a.b"]])
def test_event_types_are_a_list_of_known_patterns(patterns: Any, validate: Validate) -> None:
    assert places(validate, {"event_types": patterns})


@settings(max_examples=50)
@given(st.dictionaries(NAMES | st.text(max_size=12), JSON, max_size=5))
def test_whatever_comes_is_taken_or_refused(validate: Validate, fields: dict[str, Any]) -> None:
    fields.pop("url", None)

    with suppress(InvalidContent):
        assert validate(fields) == fields


def test_no_more_unknown_fields_are_checked_than_are_reported() -> None:
    fields = {f"orderin{number}": 0 for number in range(4_000)}

    assert len([*refuse_unknown_fields(fields, NEW)]) == MAX_ISSUES
