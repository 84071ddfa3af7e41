from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fhirpub.web.message.content_disposition import disposition

PDF = "application/pdf"


@pytest.mark.parametrize(
    ("title", "content_type", "expected"),
    [
        ("Blood count", PDF, 'inline; filename="Blood count.pdf"'),
        ("count.PDF", PDF, 'inline; filename="count.PDF"'),
        ("", PDF, 'inline; filename="document.pdf"'),
        ("../../etc/passwd", PDF, 'inline; filename="etc passwd.pdf"'),
        ("x" * 101, PDF, f'inline; filename="{"x" * 100}.pdf"'),
        ("x", "no/such-type", 'inline; filename="x"'),
        ("x", "text/plain; charset=utf-8", 'inline; filename="x.txt"'),
        ("x", " text/plain ; charset=utf-8", 'inline; filename="x.txt"'),
        (
            "Análisis",
            PDF,
            "inline; filename=\"An_lisis.pdf\"; filename*=UTF-8''An%C3%A1lisis.pdf",
        ),
    ],
)
def test_a_document_is_saved_under_its_title(title: str, content_type: str, expected: str) -> None:
    assert disposition(title, content_type) == expected


@given(st.text(), st.sampled_from([PDF, "", ";", "a/b"]))
def test_no_title_breaks_the_header(title: str, content_type: str) -> None:
    header = disposition(title, content_type)

    assert header.isascii()
    assert header.isprintable()
    assert header.count('"') == 2
