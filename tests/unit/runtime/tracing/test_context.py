"""The header traceparent, as W3C Trace Context (level 1) defines it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.runtime.tracing.context import TraceContext

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("flags", "is_sampled"), [("00", False), ("01", True), ("02", False), ("ff", True)]
)
def test_a_header_names_the_trace_and_the_span_of_the_caller(
    flags: str, *, is_sampled: bool
) -> None:
    assert TraceContext.parse([f"00-{TRACE}-{SPAN}-{flags}"]) == TraceContext(
        TRACE, SPAN, is_sampled
    )


def test_a_header_of_a_later_version_may_have_more_fields() -> None:
    assert TraceContext.parse([f"01-{TRACE}-{SPAN}-01-more"]) == TraceContext(
        TRACE, SPAN, is_sampled=True
    )


@pytest.mark.parametrize(
    "sent",
    [
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"0-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        f"01-{TRACE}-{SPAN}-01-{'x' * 500}",
        f"00-{TRACE[1:]}-{SPAN}-01",
        "",
    ],
)
def test_a_header_that_is_not_exactly_right_is_ignored(sent: str) -> None:
    assert TraceContext.parse([sent]) is None


def test_of_several_headers_none_counts() -> None:
    assert TraceContext.parse([f"00-{TRACE}-{SPAN}-01"] * 2) is None
    assert TraceContext.parse([]) is None


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8), st.booleans())
def test_what_is_written_is_read_again(trace: bytes, span: bytes, is_sampled: bool) -> None:  # noqa: FBT001
    context = TraceContext(trace.hex(), span.hex(), is_sampled)

    expected = context if any(trace) and any(span) else None
    assert TraceContext.parse([context.header]) == expected
